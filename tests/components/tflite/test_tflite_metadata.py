"""The metadata, read back by hand from the bytes: offsets and numbers as flatbuffers and the schema define them."""

from __future__ import annotations

import io
import shutil
import struct
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from tensorflow.lite.tools import flatbuffer_utils
from tflite_models import Case
from tfx.types import standard_artifacts
from tiny_artifacts import new_artifact

from components.tflite import convert, metadata
from components.tflite.metadata import Description
from contracts.errors import ExportError

Execute = Callable[..., Any]
NAME, DESCRIPTION = 0, 1


class Table:
    """A table of a flatbuffer."""

    def __init__(self, data: bytes, position: int) -> None:
        self.data, self.position = data, position

    @classmethod
    def root(cls, data: bytes) -> Table:
        return cls(data, struct.unpack_from("<I", data, 0)[0])

    def number(self, slot: int, form: str) -> Any:
        position = self._field(slot)
        return struct.unpack_from(form, self.data, position)[0] if position else 0

    def text(self, slot: int) -> str:
        start, length = self._vector(slot)
        return self.data[start : start + length].decode()

    def table(self, slot: int) -> Table:
        return Table(self.data, self._follow(self._field(slot)))

    def tables(self, slot: int) -> list[Table]:
        start, length = self._vector(slot)
        return [Table(self.data, self._follow(start + 4 * index)) for index in range(length)]

    def floats(self, slot: int) -> tuple[float, ...]:
        start, length = self._vector(slot)
        return struct.unpack_from(f"<{length}f", self.data, start)

    def _field(self, slot: int) -> int:
        vtable = self.position - struct.unpack_from("<i", self.data, self.position)[0]
        [size] = struct.unpack_from("<H", self.data, vtable)
        offset = struct.unpack_from("<H", self.data, vtable + 4 + 2 * slot)[0] if 4 + 2 * slot < size else 0
        return self.position + offset if offset else 0

    def _follow(self, position: int) -> int:
        return int(position + struct.unpack_from("<I", self.data, position)[0])

    def _vector(self, slot: int) -> tuple[int, int]:
        position = self._field(slot)
        if not position:
            return 0, 0
        start = self._follow(position)
        return start + 4, struct.unpack_from("<I", self.data, start)[0]


def described(content: bytes) -> Table:
    parsed = flatbuffer_utils.convert_bytearray_to_object(content)
    [entry] = [entry for entry in parsed.metadata if entry.name == b"TFLITE_METADATA"]
    data = bytes(parsed.buffers[entry.buffer].data)
    assert data[4:8] == b"M001"
    return Table.root(data)


def tensors(content: bytes) -> tuple[dict[str, Table], dict[str, Table]]:
    """Inputs and outputs by name."""
    [graph] = described(content).tables(3)
    return tuple({table.text(NAME): table for table in graph.tables(slot)} for slot in (2, 3))  # type: ignore[return-value]


@pytest.fixture(scope="module")
def plain(digits: Case) -> bytes:
    return convert.convert(digits.saved_model, "dynamic", lambda: iter(()))


LABELS = tuple("abcdefghij")
DIGITS = Description("digits", "A text.", {"image": (0.0, 255.0)}, "probabilities", LABELS)


def test_the_model_names_itself(plain: bytes) -> None:
    table = described(metadata.add_metadata(plain, DIGITS))
    assert (table.text(NAME), table.text(DESCRIPTION), table.text(7)) == ("digits", "A text.", "1.0.0")
    [graph] = table.tables(3)
    assert graph.text(NAME) == "predict_transformed"


def test_an_image_is_described_with_its_range_size_and_normalization(plain: bytes) -> None:
    inputs, _ = tensors(metadata.add_metadata(plain, DIGITS))
    assert list(inputs) == ["image"]
    stats = inputs["image"].table(5)
    assert (stats.floats(0), stats.floats(1)) == ((255.0,), (0.0,))
    content = inputs["image"].table(3)
    assert content.number(0, "<B") == 2  # ImageProperties
    properties = content.table(1)
    assert properties.number(0, "<b") == 2  # GRAYSCALE
    size = properties.table(1)
    assert (size.number(0, "<I"), size.number(1, "<I")) == (8, 8)
    [unit] = inputs["image"].tables(4)
    assert unit.number(0, "<B") == 1  # NormalizationOptions
    assert (unit.table(1).floats(0), unit.table(1).floats(1)) == ((0.0,), (1.0,))


def test_labels_are_named_for_the_scores_axis_and_the_class_ids_values(plain: bytes) -> None:
    _, outputs = tensors(metadata.add_metadata(plain, DIGITS))
    kinds = {}
    for name, table in outputs.items():
        [file] = table.tables(6)
        kinds[name] = (file.text(NAME), file.number(2, "<b"))
        assert table.table(3).number(0, "<B") == 1  # FeatureProperties
    assert kinds == {"probabilities": ("labels.txt", 2), "class_ids": ("labels.txt", 3)}


def test_the_order_is_that_of_the_models_tensors(plain: bytes) -> None:
    content = metadata.add_metadata(plain, DIGITS)
    parsed = flatbuffer_utils.convert_bytearray_to_object(content)
    names = {tensor.tensorIndex: tensor.name.decode() for tensor in parsed.signatureDefs[0].outputs}
    assert list(tensors(content)[1]) == [names[index] for index in parsed.subgraphs[0].outputs]


def test_the_labels_can_be_unzipped_from_the_model_which_still_runs(plain: bytes) -> None:
    content = metadata.add_metadata(plain, DIGITS)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.namelist() == ["labels.txt"]
        assert archive.read("labels.txt").decode().splitlines() == list(LABELS)
    runner = tf.lite.Interpreter(model_content=content).get_signature_runner("predict_transformed")
    assert set(runner.get_output_details()) == {"probabilities", "class_ids"}


def test_the_same_model_gives_the_same_bytes(plain: bytes) -> None:
    assert metadata.add_metadata(plain, DIGITS) == metadata.add_metadata(plain, DIGITS)


def test_without_labels_there_is_no_archive(plain: bytes) -> None:
    content = metadata.add_metadata(plain, replace(DIGITS, labels=()))
    assert not zipfile.is_zipfile(io.BytesIO(content))
    assert [table.tables(6) for table in tensors(content)[1].values()] == [[], []]


def test_labels_must_be_as_many_as_classes(plain: bytes) -> None:
    with pytest.raises(ExportError) as caught:
        metadata.add_metadata(plain, replace(DIGITS, labels=LABELS[:9]))
    assert str(caught.value) == (
        "the SavedModel names 9 classes (a, b, c, …), and its output 'probabilities' has 10.\n"
        "Give assets.extra/labels.txt as many class names as the model has classes."
    )


def test_the_node_writes_the_saved_models_labels_and_the_range_of_bytes(digits: Case, execute: Execute) -> None:
    model = execute(digits, quantization="int8", representative_rows=20)
    content = Path(model.uri, "model.tflite").read_bytes()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.read("labels.txt").decode().splitlines() == [f"digit {digit}" for digit in range(10)]
    assert tensors(content)[0]["image"].table(5).floats(0) == (255.0,)
    assert described(content).text(NAME) == "small"
    assert described(content).text(DESCRIPTION) == ("Quantization: int8. Input ranges are those of 20 training rows.")


def test_the_node_writes_the_ranges_of_the_training_rows(table: Case, execute: Execute) -> None:
    model = execute(table, quantization="dynamic")
    inputs, outputs = tensors(Path(model.uri, "model.tflite").read_bytes())
    ranges = {name: (tensor.table(5).floats(1), tensor.table(5).floats(0)) for name, tensor in inputs.items()}
    assert ranges == {"fare": ((0.0,), (2.0,)), "company": ((0.0,), (6.0,))}
    assert {tensor.table(3).number(0, "<B") for tensor in inputs.values()} == {1}  # FeatureProperties
    assert list(outputs) == ["probability"]


def test_one_probability_has_no_labels(table: Case, execute: Execute, tmp_path: Path) -> None:
    model = new_artifact(tmp_path, standard_artifacts.Model)
    folder = Path(model.uri, "Format-Serving")
    shutil.copytree(table.saved_model, folder)
    (folder / "assets.extra").mkdir()
    (folder / "assets.extra" / "labels.txt").write_text("small\nbig\n")
    tflite_model = execute(Case(folder, {**table.inputs, "model": [model]}, table.label), quantization="dynamic")
    content = Path(tflite_model.uri, "model.tflite").read_bytes()
    assert tensors(content)[1]["probability"].tables(6) == []
    assert not zipfile.is_zipfile(io.BytesIO(content))
