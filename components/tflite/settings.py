"""The settings under `tflite:` in a recipe."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from contracts.settings import Settings

Quantization = Literal["none", "float32", "dynamic", "float16", "int8", "int8_with_float_fallback"]

InferenceType = Literal["float32", "int8", "uint8"]

MODEL_FILE = "model.tflite"
"""The name that TF Serving's `--prefer_tflite_model` looks for beside a saved_model.pb."""


class TFLiteSettings(Settings):
    """Whether and how the SavedModel is converted to a TF Lite model.

    Attributes:
        quantization: `none` makes no TF Lite model. `float32`: not quantized. `dynamic`: weights int8, activations
            float32. `float16`: weights float16. `int8`: weights and activations int8; refused if an op stays in
            float32. `int8_with_float_fallback`: the same, but ops that cannot be quantized stay in float32.
        inference_input_type: The type of inputs that are float32 in the SavedModel, as of TensorFlow's TFLiteConverter;
            `int8` and `uint8` go with quantization to int8, for devices without floating-point arithmetic: the caller
            then divides by the input's scale and adds its zero point. Inputs of integers keep their type.
        inference_output_type: The same of outputs.
        max_accuracy_loss: How far the TF Lite model's accuracy on the `eval` split may fall below the SavedModel's for
            it still to be pushed; a fraction, so 0.01 is one percentage point.
        representative_rows: The number of rows of the `train` split, evenly spaced over it, that determine the ranges
            of int8 activations.
        threads: The interpreter's threads, in the judgement and so in the recorded latency.
    """

    quantization: Quantization = "none"
    inference_input_type: InferenceType = "float32"
    inference_output_type: InferenceType = "float32"
    max_accuracy_loss: float = Field(default=0.01, ge=0, le=1)
    representative_rows: int = Field(default=200, ge=1)
    threads: int = Field(default=1, ge=1)

    @model_validator(mode="after")
    def _integers_are_quantized(self) -> TFLiteSettings:
        types = {
            "inference_input_type": self.inference_input_type,
            "inference_output_type": self.inference_output_type,
        }
        integer = [f"{name} {value}" for name, value in types.items() if value != "float32"]
        if integer and not self.quantization.startswith("int8"):
            raise ValueError(
                f"{' and '.join(integer)} goes with quantization int8 or int8_with_float_fallback; "
                f"received {self.quantization}"
            )
        return self
