"""The commands of `millrace`, a module for each group; cli.py registers them."""
