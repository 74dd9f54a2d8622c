"""The commands behind every number that the README claims; see README.md beside this file."""
