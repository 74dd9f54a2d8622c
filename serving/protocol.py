"""What TensorFlow Serving's protocol defines for server and clients alike: names, headers, signatures."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Generic, TypeVar

Spec = TypeVar("Spec")

DEFAULT_SIGNATURE = "serving_default"
SIGNATURE_FIELD = "signature_def"
CLASSIFY = "tensorflow/serving/classify"
REGRESS = "tensorflow/serving/regress"
# The JSON key for bytes that are not UTF-8 text.
B64 = "b64"

REQUEST_ID_HEADER = "x-request-id"
AUTHORIZATION_HEADER = "authorization"
BEARER = "Bearer "


@dataclasses.dataclass(frozen=True)
class Signature(Generic[Spec]):
    """One way to call a model.

    Attributes:
        name: Such as `serving_default`.
        method_name: Such as `tensorflow/serving/predict`.
        inputs: Name -> specification of each input.
        outputs: Name -> specification of each output.
    """

    name: str
    method_name: str
    inputs: Mapping[str, Spec]
    outputs: Mapping[str, Spec]
