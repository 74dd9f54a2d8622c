"""The commands of `millrace` that have a module of their own; cli.py has the others and registers all."""
