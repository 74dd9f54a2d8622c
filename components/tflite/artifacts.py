"""The artifact type of the TF Lite node."""

from tfx.types import artifact


class TFLiteModel(artifact.Artifact):
    """A folder with `report.json` and, where the SavedModel was converted, `model.tflite`.

    Properties: `blessed`, 1 where the model may be pushed, else 0; `quantization`; and, where there is a model, its
    `size_bytes` with metadata and labels, `accuracy` and `saved_model_accuracy` on the `eval` split (fractions), and
    `latency_ms`, the median of invocations with a single row on the machine that the node ran on.
    """

    TYPE_NAME = "TFLiteModel"
    PROPERTIES = {  # noqa: RUF012  # TFX's own form
        "size_bytes": artifact.Property(type=artifact.PropertyType.INT),
        "accuracy": artifact.Property(type=artifact.PropertyType.FLOAT),
        "saved_model_accuracy": artifact.Property(type=artifact.PropertyType.FLOAT),
        "latency_ms": artifact.Property(type=artifact.PropertyType.FLOAT),
        "quantization": artifact.Property(type=artifact.PropertyType.STRING),
        "blessed": artifact.Property(type=artifact.PropertyType.INT),
    }
