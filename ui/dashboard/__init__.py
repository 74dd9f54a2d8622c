"""The metadata store as live pages: a read-only web server on this machine. See docs/dashboard.md."""
