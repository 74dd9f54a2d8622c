"""What runs and where, as data: recipes and environments, the table of nodes, the DAG, fingerprints, preflight."""
