"""The pipeline on Kubeflow Pipelines: one container task a node, each calling `millrace node run`."""
