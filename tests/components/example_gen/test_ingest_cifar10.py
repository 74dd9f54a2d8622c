"""CIFAR-10 in the four forms in which users have it, as small files of the same layout."""

from __future__ import annotations

import io
import json
import pickle
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pytest
from ingest_helpers import image_rows, pixels, read_splits

from components.example_gen import cifar10_source, shards
from components.example_gen.files import resolve
from components.example_gen.settings import DataSettings
from contracts.errors import DataError

Ingest = Callable[..., tuple[Any, Any]]
Batches = dict[str, tuple[list[int], npt.NDArray[np.uint8]]]
CLASSES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
BATCHES = ["data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"]
FORMS = ["cifar-10-binary.tar.gz", "cifar-10-batches-bin", "cifar-10-python.tar.gz", "cifar-10-batches-py"]
SPLITS = {"train": "data_batch_*", "eval": "test_batch*"}


def pickled(content: object) -> bytes:
    """Returns a pickle as Python 2's NumPy wrote CIFAR-10: text and bytes are both its `str`."""
    return b"\x80\x02" + python2(content) + b"."


def python2(value: Any) -> bytes:
    if isinstance(value, str | bytes):
        data = value.encode() if isinstance(value, str) else value
        return b"T" + len(data).to_bytes(4, "little") + data
    if isinstance(value, bool | None):
        return {True: b"\x88", False: b"\x89", None: b"N"}[value]
    if isinstance(value, int):
        return b"J" + value.to_bytes(4, "little", signed=True)
    if isinstance(value, tuple):
        return b"(" + b"".join(map(python2, value)) + b"t"
    if isinstance(value, list):
        return b"](" + b"".join(map(python2, value)) + b"e"
    if isinstance(value, dict):
        return b"}(" + b"".join(python2(key) + python2(item) for key, item in value.items()) + b"u"
    dtype = value.dtype.str
    pickled_dtype = b"cnumpy\ndtype\n" + python2((dtype[1:], 0, 1)) + b"R"
    pickled_dtype += python2((3, dtype[0], None, None, None, -1, -1, 0)) + b"b"
    array = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n" + python2((0,)) + python2("b") + b"tR"
    state = python2(1) + python2(value.shape) + pickled_dtype + python2(False) + python2(value.tobytes())
    return array + b"(" + state + b"tb"


def batches(records: int = 3) -> Batches:
    """Batches whose labels and pixels all differ: (records, 3072), all red values first."""
    random = np.random.default_rng(0)
    return {
        name: (
            [(number + i) % 10 for i in range(records)],
            random.integers(0, 256, (records, 3072), dtype=np.uint8),
        )
        for number, name in enumerate(BATCHES)
    }


def members(form: str, contents: Batches) -> dict[str, bytes]:
    if "bin" in form:
        files = {
            f"{name}.bin": b"".join(bytes([label]) + row.tobytes() for label, row in zip(labels, rows, strict=True))
            for name, (labels, rows) in contents.items()
        }
        return files | {"batches.meta.txt": "\n".join([*CLASSES, "", ""]).encode(), "readme.html": b"<html>"}
    files = {
        name: pickled({b"batch_label": b"x", b"labels": labels, b"data": rows, b"filenames": [b"a.png"] * len(rows)})
        for name, (labels, rows) in contents.items()
    }
    return files | {"batches.meta": pickled({b"label_names": CLASSES, b"num_vis": 3072}), "readme.html": b"<html>"}


def store(folder: Path, form: str, files: dict[str, bytes]) -> None:
    if not form.endswith(".tar.gz"):
        (folder / form).mkdir()
        for name, data in files.items():
            (folder / form / name).write_bytes(data)
        return
    with tarfile.open(folder / form, "w:gz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(f"cifar-10-batches/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_rows(ingest: Ingest, tmp_path: Path, form: str) -> None:
    contents = batches()
    store(tmp_path, form, members(form, contents))
    examples, rejected = ingest(form, splits=SPLITS)
    splits = image_rows(examples)
    expected = {f"{batch}:{i + 1}": (batch, i) for batch in BATCHES for i in range(3)}
    assert splits["train"].keys() == {name for name, (batch, _) in expected.items() if batch != "test_batch"}
    assert splits["eval"].keys() == {"test_batch:1", "test_batch:2", "test_batch:3"}
    for name, (label, class_, image) in (splits["train"] | splits["eval"]).items():
        batch, i = expected[name]
        assert (label, class_) == (contents[batch][0][i], CLASSES[contents[batch][0][i]])
        assert pixels(image) == contents[batch][1][i].reshape(3, 32, 32).transpose(1, 2, 0).tolist()
    assert json.loads(examples.get_string_custom_property("class_names")) == CLASSES
    assert rejected.num_rows == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([form, "outputs"])


def test_red_green_and_blue_are_in_their_places(ingest: Ingest, tmp_path: Path) -> None:
    contents = batches()
    contents["test_batch"][1][0] = np.repeat([250, 100, 5], 1024)
    contents["test_batch"][1][0][1] = 77  # The red value of row 0, column 1.
    store(tmp_path, FORMS[1], members(FORMS[1], contents))
    image = pixels(image_rows(ingest(FORMS[1], splits=SPLITS)[0])["eval"]["test_batch:1"][2])
    assert (image[0][0], image[0][1], image[1][0]) == ([250, 100, 5], [77, 100, 5], [250, 100, 5])


def test_batches_through_beam(ingest: Ingest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store(tmp_path, FORMS[2], members(FORMS[2], batches()))
    one_shard, _ = ingest(FORMS[2])
    monkeypatch.setattr(shards, "SHARD_BYTES", 1)
    cut, _ = ingest(FORMS[2])
    assert len(list(Path(cut.uri, "Split-all").iterdir())) == 6
    assert read_splits(cut) == read_splits(one_shard)


def test_a_folder_names_the_files_that_count(tmp_path: Path) -> None:
    store(tmp_path, FORMS[3], members(FORMS[3], batches()))
    inputs = resolve(DataSettings(path=FORMS[3]), tmp_path)
    assert (inputs.format, [file.name for file in inputs.files]) == ("cifar10", [*BATCHES, "batches.meta"])


@pytest.mark.parametrize("form", FORMS)
def test_a_missing_member(ingest: Ingest, tmp_path: Path, form: str) -> None:
    files = members(form, batches())
    missing = next(name for name in files if name.startswith("data_batch_4"))
    store(tmp_path, form, {name: data for name, data in files.items() if name != missing})
    with pytest.raises(DataError) as caught:
        ingest(form)
    assert f"{tmp_path}/{form} lacks {missing}, expected data_batch_1" in str(caught.value)
    assert "as in CIFAR-10; it holds " in str(caught.value)


def encoded_keys(content: dict[str, object]) -> dict[bytes, object]:
    return {key.encode(): value for key, value in content.items()}


def batch_of(**content: object) -> bytes:
    fields: dict[str, object] = {"labels": [0], "data": np.zeros((1, 3072), np.uint8)}
    return pickled(encoded_keys(fields | content))


WRONG = [
    (FORMS[0], "data_batch_2.bin", b"\0" * 3074, "found 3,074 bytes, expected records of 3,073 bytes, 1 for the label"),
    (FORMS[1], "data_batch_2.bin", b"", "found 0 bytes, expected records of 3,073 bytes"),
    (FORMS[0], "test_batch.bin", b"\0" * 3073 + b"\x0a" * 3073, "record 2: found the label 10, expected 0 to 9."),
    (FORMS[1], "batches.meta.txt", b"cat\ndog\n", "found 2 class names, expected 10."),
    (FORMS[2], "batches.meta", pickled({b"label_names": [b"cat"]}), "found 1 class names, expected 10."),
    (FORMS[2], "batches.meta", pickled({b"fine": 1}), "found [b'fine'], expected a dictionary with 'label_names'."),
    (FORMS[3], "test_batch", batch_of(labels=[-1]), "record 1: found the label -1, expected 0 to 9."),
    (FORMS[3], "test_batch", batch_of(labels=[1, 2]), "found 'labels' that are not a list of 1 whole numbers."),
    (FORMS[3], "test_batch", batch_of(labels=["1"]), "found 'labels' that are not a list of 1 whole numbers."),
    (
        FORMS[3],
        "test_batch",
        batch_of(data=np.zeros((1, 3071), np.uint8)),
        "found the shape (1, 3071) as 'data', expected an array of (records, 3,072).",
    ),
    (FORMS[3], "test_batch", batch_of(data=[1]), "found a list as 'data', expected an array of (records, 3,072)."),
    (FORMS[3], "test_batch", pickled([1]), "found ['list'], expected a dictionary with 'data', 'labels'."),
    (FORMS[2], "test_batch", batch_of()[:-9], "test_batch is not a CIFAR-10 pickle: "),
    (FORMS[2], "test_batch", b"", "test_batch is not a CIFAR-10 pickle: Ran out of input."),
    (
        FORMS[2],
        "test_batch",
        batch_of(data=np.zeros((1, 3072), np.float32)),
        "it holds an array of b'f4', expected uint8.",
    ),
]


@pytest.mark.parametrize(("form", "name", "data", "message"), WRONG)
def test_what_is_wrong_in_a_member(
    ingest: Ingest, tmp_path: Path, form: str, name: str, data: bytes, message: str
) -> None:
    store(tmp_path, form, members(form, batches()) | {name: data})
    with pytest.raises(DataError) as caught:
        ingest(form)
    assert str(caught.value).startswith(f"{tmp_path}/{form}, {name}")
    assert message in str(caught.value)


def test_a_damaged_archive(ingest: Ingest, tmp_path: Path) -> None:
    store(tmp_path, FORMS[0], members(FORMS[0], batches(30)))
    archive = tmp_path / FORMS[0]
    archive.write_bytes(archive.read_bytes()[:-50_000])
    with pytest.raises(DataError, match=r"cifar-10-binary.tar.gz cannot be read as a tar archive: "):
        ingest(FORMS[0])
    archive.write_bytes(b"<html>Not found</html>")
    with pytest.raises(DataError, match=r"cifar-10-binary.tar.gz cannot be read as a tar archive: "):
        ingest(FORMS[0])


class Touch:
    """An attacker's pickle: calls a function with arguments of its own."""

    def __init__(self, file: Path) -> None:
        self._file = str(file)

    def __reduce__(self) -> tuple[Any, tuple[str, str]]:
        return open, (self._file, "w")


def test_a_pickle_cannot_call_anything(ingest: Ingest, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    store(tmp_path, FORMS[3], members(FORMS[3], batches()) | {"test_batch": pickle.dumps({b"data": Touch(victim)})})
    with pytest.raises(DataError, match=r"it names _?io\.open, expected only arrays and plain values\."):
        ingest(FORMS[3])
    assert not victim.exists()


@pytest.mark.parametrize(
    "name", ["builtins.eval", "os.system", "numpy.load", "numpy.core.multiarray.scalar", "_codecs.decode"]
)
def test_a_pickle_names_nothing_but_arrays(name: str) -> None:
    module, _, function = name.rpartition(".")
    with pytest.raises(cifar10_source.UnsafePickleError, match=f"it names {name}, expected only arrays"):
        cifar10_source.load_pickle(f"c{module}\n{function}\n(tR.".encode())


def python_3(file: bytes, text: str, protocol: int) -> bytes:
    """A CIFAR-10 file as Python 3 writes it after reading Python 2's text as `text`: "bytes" or "latin1"."""
    return pickle.dumps(pickle.loads(file, encoding=text), protocol)  # noqa: S301 (written above)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("text", ["bytes", "latin1"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_batches_written_anew_by_python_3(
    ingest: Ingest, tmp_path: Path, text: str, protocol: int, order: Literal["C", "F"]
) -> None:
    contents = batches(2)
    files = {
        name: data if name == "readme.html" else python_3(data, text, protocol)
        for name, data in members(FORMS[3], contents).items()
    }
    labels, rows = contents["test_batch"]
    # Pixels that were transposed in between are stored column by column.
    content = {"labels": labels, "data": np.asarray(rows, order=order)}
    files["test_batch"] = pickle.dumps(content if text == "latin1" else encoded_keys(content), protocol)
    store(tmp_path, FORMS[3], files)
    rows_read = image_rows(ingest(FORMS[3], splits=SPLITS)[0])["eval"]
    for i, (label, class_, image) in enumerate(rows_read[f"test_batch:{i + 1}"] for i in range(2)):
        assert (label, class_) == (labels[i], CLASSES[labels[i]])
        assert pixels(image) == rows[i].reshape(3, 32, 32).transpose(1, 2, 0).tolist()


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_python_3_s_arrays_of_other_numbers_are_refused(protocol: int) -> None:
    data = pickle.dumps({"data": np.zeros((1, 3072), np.int64)}, protocol)
    with pytest.raises(cifar10_source.UnsafePickleError, match=r"it holds an array of 'i8', expected uint8"):
        cifar10_source.load_pickle(data)


def test_python_3_s_bytes_may_be_in_no_other_codec() -> None:
    with pytest.raises(cifar10_source.UnsafePickleError, match=r"it holds text in 'zlib', expected latin1"):
        cifar10_source.load_pickle(b"c_codecs\nencode\n(Va\nVzlib\ntR.")


def test_two_archives_are_refused(tmp_path: Path) -> None:
    for form in (FORMS[0], FORMS[2]):
        store(tmp_path, form, members(form, batches(1)))
    with pytest.raises(DataError, match=r"data.path matches 2 files and folders, expected one CIFAR-10 archive or"):
        resolve(DataSettings(path="cifar-10-*.tar.gz"), tmp_path)
