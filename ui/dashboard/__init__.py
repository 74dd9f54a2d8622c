"""The metadata store as live pages, from a read-only local web server. See docs/dashboard.md."""
