"""The pipeline on Kubeflow Pipelines: one container task per node, each calling `millrace node run`."""
