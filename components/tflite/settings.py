"""The settings under `tflite:` in a recipe."""

from typing import Literal

from pydantic import Field

from contracts.settings import Settings

Quantization = Literal["none", "dynamic", "float16", "int8", "int8_with_float_fallback"]

MODEL_FILE = "model.tflite"
"""The name that TF Serving's `--prefer_tflite_model` looks for beside a saved_model.pb."""


class TFLiteSettings(Settings):
    """Whether and how the SavedModel is converted to a TF Lite model.

    Attributes:
        quantization: `none` makes no TF Lite model. `dynamic`: weights int8, activations float32. `float16`: weights
            float16. `int8`: weights and activations int8; refused if an op stays in float32.
            `int8_with_float_fallback`: the same, but ops that cannot be quantized stay in float32.
        max_accuracy_loss: How far the TF Lite model's accuracy on the `eval` split may fall below the SavedModel's for
            it still to be pushed; a fraction, so 0.01 is one percentage point.
        representative_rows: The number of rows of the `train` split, evenly spaced over it, that determine the ranges
            of int8 activations.
        threads: The interpreter's threads, in the judgement and so in the recorded latency.
    """

    quantization: Quantization = "none"
    max_accuracy_loss: float = Field(default=0.01, ge=0, le=1)
    representative_rows: int = Field(default=200, ge=1)
    threads: int = Field(default=1, ge=1)
