"""What runs and where, as data: recipe and environment, the table of nodes, the DAG, fingerprints and preflight."""
