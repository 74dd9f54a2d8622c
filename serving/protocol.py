"""What TensorFlow Serving's protocol fixes for server and clients alike: names, headers, what a signature is."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Generic, TypeVar

Spec = TypeVar("Spec")

DEFAULT_SIGNATURE = "serving_default"
SIGNATURE_FIELD = "signature_def"
CLASSIFY = "tensorflow/serving/classify"
REGRESS = "tensorflow/serving/regress"
# The key of bytes in JSON that are not UTF-8 text.
B64 = "b64"

REQUEST_ID_HEADER = "x-request-id"
AUTHORIZATION_HEADER = "authorization"
BEARER = "Bearer "


@dataclasses.dataclass(frozen=True)
class Signature(Generic[Spec]):
    """One way to ask a model.

    Attributes:
        name: Such as `serving_default`.
        method_name: Such as `tensorflow/serving/predict`.
        inputs: What is known of each input, by its name.
        outputs: What is known of each output, by its name.
    """

    name: str
    method_name: str
    inputs: Mapping[str, Spec]
    outputs: Mapping[str, Spec]
