"""The Pusher, and the folder of versions that it writes: whole, checked, reversible."""
