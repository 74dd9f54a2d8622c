"""A run as one page: the report that every run leaves, and the run's page in the dashboard."""
