"""Malformed protocol buffers and HTTP/2 frames, drawn from a seeded generator."""

from __future__ import annotations

from random import Random
from typing import Any

import tensorflow as tf
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message
from tensorflow_serving.apis.classification_pb2 import ClassificationRequest
from tensorflow_serving.apis.get_model_metadata_pb2 import GetModelMetadataRequest
from tensorflow_serving.apis.get_model_status_pb2 import GetModelStatusRequest
from tensorflow_serving.apis.inference_pb2 import MultiInferenceRequest
from tensorflow_serving.apis.model_management_pb2 import ReloadConfigRequest
from tensorflow_serving.apis.predict_pb2 import PredictRequest
from tensorflow_serving.apis.regression_pb2 import RegressionRequest

from benchmarks.serving.malformed_http import MODEL, mutated_bytes
from contracts.protobuf import is_repeated

SIZES = (0, 1, 2, 3, 255, 2**16, 2**31 - 1, 2**31, 2**40, 2**62, 2**63 - 1, -1, -(2**63))
METHODS = {
    "PredictionService/Predict": PredictRequest,
    "PredictionService/Classify": ClassificationRequest,
    "PredictionService/Regress": RegressionRequest,
    "PredictionService/MultiInference": MultiInferenceRequest,
    "PredictionService/GetModelMetadata": GetModelMetadataRequest,
    "ModelService/GetModelStatus": GetModelStatusRequest,
    "ModelService/HandleReloadConfigRequest": ReloadConfigRequest,
}
# A model without a name.
REFUSED_CONFIG = b"\x0a\x04\x0a\x02\x0a\x00"
NAMES = (
    "",
    MODEL,
    "other",
    "x",
    "words",
    "classify",
    "regress",
    "upper",
    "number",
    "types",
    "serving_default",
    "y",
    "é",
)
NUMBERS = (0, 1, 3, 7, 14, 19, 20, 23, 101, *SIZES)


def grpc_request(random: Random) -> tuple[str, bytes]:
    """A method's path, and bytes that it should refuse."""
    method = random.choice(tuple(METHODS))
    request = _valid(random, METHODS[method]())
    for _ in range(random.randint(1, 4)):
        _mutated_message(random, request)
    data = bytes(request.SerializeToString())
    chance = random.random()
    if chance < 0.3:
        data = mutated_bytes(random, data)
    elif chance < 0.35:
        data = random.randbytes(random.randrange(200))
    if method.endswith("HandleReloadConfigRequest"):
        data = REFUSED_CONFIG if _unloads(data) else data
    return f"/tensorflow.serving.{method}", data


def frames(random: Random) -> bytes:
    """Bytes for a bare socket that are not gRPC, or are malformed HTTP/2."""
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5)
    noise = random.randbytes(random.randrange(300))
    start = random.choice((b"", preface, preface[: random.randrange(30)], b"GET / HTTP/1.1\r\n\r\n"))
    return start + random.choice((noise, len(noise).to_bytes(3, "big") + random.randbytes(6) + noise))


def _unloads(data: bytes) -> bool:
    """Whether this is a valid configuration, which would rightly unload the model that the other requests use."""
    try:
        config = ReloadConfigRequest.FromString(data).config
    except DecodeError:
        return False
    return config.WhichOneof("config") == "model_config_list" and all(
        model.name for model in config.model_config_list.config
    )


def _valid(random: Random, request: Any) -> Any:
    """The request, filled in as by a good client."""
    if isinstance(request, MultiInferenceRequest):
        for method in ("classify", "regress"):
            request.tasks.add(
                method_name=f"tensorflow/serving/{method}", model_spec={"name": MODEL, "signature_name": method}
            )
    elif not isinstance(request, ReloadConfigRequest):
        request.model_spec.name = MODEL
    if isinstance(request, PredictRequest):
        name, signature, values = random.choice(
            (("x", "", [1.0, 2.0]), ("words", "upper", [b"a", b"b"]), ("words", "number", [b"1"]))
        )
        request.model_spec.signature_name = signature
        request.inputs[name].CopyFrom(tf.make_tensor_proto(values))
    elif isinstance(request, GetModelMetadataRequest):
        request.metadata_field.append("signature_def")
    elif hasattr(request, "input"):
        example = request.input.example_list.examples.add()
        example.features.feature["x"].float_list.value.append(0.5)
        if hasattr(request, "model_spec"):
            request.model_spec.signature_name = "classify" if isinstance(request, ClassificationRequest) else "regress"
    return request


def _mutated_message(random: Random, message: Message) -> None:
    """Sets, clears or repeats one field of the message or of one below it."""
    present = [(field, value) for field, value in message.ListFields() if field.message_type is not None]
    if present and random.random() < 0.7:
        field, value = random.choice(present)
        below = _below(field, value)
        if below and random.random() < 0.8:
            _mutated_message(random, random.choice(below))
        elif is_repeated(field) and below and not _is_map(field):
            value.extend([below[0]] * random.choice((1, 2, 300)))
        else:
            message.ClearField(field.name)
        return
    if message.DESCRIPTOR.fields:
        _set(random, message, random.choice(message.DESCRIPTOR.fields))


def _below(field: FieldDescriptor, value: Any) -> list[Message]:
    if _is_map(field):
        return [entry for entry in value.values() if isinstance(entry, Message)]
    return list(value) if is_repeated(field) else [value]


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def _set(random: Random, message: Message, field: FieldDescriptor) -> None:
    value = getattr(message, field.name)
    if _is_map(field):
        if field.message_type.fields_by_name["value"].message_type is not None:
            value[random.choice(NAMES)].SetInParent()
    elif field.message_type is not None:
        target = value.add() if is_repeated(field) else value
        target.SetInParent()
    elif is_repeated(field):
        value.extend([_scalar(random, field)] * random.choice((1, 1, 2, 300)))
    else:
        setattr(message, field.name, _scalar(random, field))


def _scalar(random: Random, field: FieldDescriptor) -> Any:
    kind = field.cpp_type
    if kind == FieldDescriptor.CPPTYPE_STRING:
        text = random.choice((*NAMES, "n" * 2000, "\x00"))
        return text if field.type == FieldDescriptor.TYPE_STRING else random.choice((text.encode(), b"\xff" * 9))
    if kind in (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE):
        return random.choice((0.0, -1.5, 3e38, float("nan"), float("inf")))
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        return random.random() < 0.5
    if kind == FieldDescriptor.CPPTYPE_ENUM:
        return random.choice([value.number for value in field.enum_type.values])
    number = random.choice(NUMBERS)
    bits = 32 if kind in (FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_UINT32) else 64
    if kind in (FieldDescriptor.CPPTYPE_UINT32, FieldDescriptor.CPPTYPE_UINT64):
        return number % 2**bits
    return max(-(2 ** (bits - 1)), min(number, 2 ** (bits - 1) - 1))
