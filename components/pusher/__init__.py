"""The Pusher and the folder of versions that it writes: each whole, checked and reversible."""
