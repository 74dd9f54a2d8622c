"""One module a page: what it shows, read from the store; templates/dashboard/ says how."""
