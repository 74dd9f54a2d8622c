"""The sections of a run's page: each reads what its template shows."""
