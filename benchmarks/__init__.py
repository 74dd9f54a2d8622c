"""Every number that the README claims, as a command; see README.md beside this file."""
