"""Folders of images, one per class, and scikit-learn's digits."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ingest_helpers import image_rows, pixels, read_splits, rejected_rows
from PIL import Image

from components.example_gen import images_source, shards
from components.example_gen.files import resolve
from components.example_gen.settings import DataSettings
from components.example_gen.sources import columns_of
from contracts.errors import BadRowError, DataError, SettingsError

Ingest = Callable[..., tuple[Any, Any]]
DIGITS = "package:sklearn/datasets/data/digits.csv.gz"
MEND = (
    "\nMend or remove the file, or set `data.on_bad_row: set_aside` to go on without such files and have them listed."
)


def encoded(shade: int, format_: str = "PNG", side: int = 2) -> bytes:
    """An image of one color: (shade, 0, 255)."""
    file = io.BytesIO()
    Image.new("RGB", (side, side), (shade, 0, 255)).save(file, format_)
    return file.getvalue()


def put(folder: Path, files: dict[str, bytes]) -> None:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def test_a_folder_of_classes(ingest: Ingest, tmp_path: Path) -> None:
    files = {
        "dogs/b.png": encoded(1),
        "dogs/é.JPEG": encoded(2, "JPEG"),
        "cats/a.gif": encoded(3, "GIF"),
        "bats/a.bmp": encoded(4, "BMP"),
    }
    put(tmp_path / "photos", files)
    put(tmp_path / "photos", {".DS_Store": b"x", "_notes/a.png": b"x", "cats/.hidden.png": b"x"})
    examples, rejected = ingest("photos", splits={"train": 1})
    images = image_rows(examples)["train"]
    assert {name: image for name, (_, _, image) in images.items()} == files
    assert {name: row[:2] for name, row in images.items()} == {
        "bats/a.bmp": (0, "bats"),
        "cats/a.gif": (1, "cats"),
        "dogs/b.png": (2, "dogs"),
        "dogs/é.JPEG": (2, "dogs"),
    }
    assert pixels(images["dogs/b.png"][2]) == [[[1, 0, 255]] * 2] * 2
    assert pixels(images["bats/a.bmp"][2]) == [[[4, 0, 255]] * 2] * 2
    assert json.loads(examples.get_string_custom_property("class_names")) == ["bats", "cats", "dogs"]
    assert (examples.get_int_custom_property("num_rows"), rejected.num_rows) == (4, 0)


def test_class_ids_are_those_of_the_whole_input_in_every_shard(
    ingest: Ingest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "photos", {f"{kind}/{i}.png": encoded(i) for kind in ("ant", "bee", "cow") for i in range(4)})
    one_shard, _ = ingest("photos", splits={"train": 2, "eval": 1})
    for module in (images_source, shards):
        monkeypatch.setattr(module, "SHARD_BYTES", 2 * len(encoded(0)))
    cut, _ = ingest("photos", splits={"train": 2, "eval": 1})
    assert len(list(Path(cut.uri, "Split-train").iterdir())) == 6
    assert read_splits(cut) == read_splits(one_shard)
    labels = {row[:2] for images in image_rows(cut).values() for row in images.values()}
    assert labels == {(0, "ant"), (1, "bee"), (2, "cow")}
    assert json.loads(cut.get_string_custom_property("class_names")) == ["ant", "bee", "cow"]


def test_a_table_has_no_class_names(ingest: Ingest, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("a\n1\n")
    assert not ingest("data.csv")[0].has_custom_property("class_names")


def noise(format_: str) -> bytes:
    """An image that does not shrink to a few bytes."""
    file = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (32, 32, 3), np.uint8)).save(file, format_)
    return file.getvalue()


TRUNCATED = "found a damaged image (image file is truncated"
FAULTS = [
    (b"", "found an empty file, expected a PNG, JPEG, GIF or BMP image"),
    (b"no image\n", "found no image, expected PNG, JPEG, GIF or BMP"),
    (noise("WEBP"), "found a WEBP image, expected PNG, JPEG, GIF or BMP"),
    (noise("PNG")[:-100], TRUNCATED),
    (
        noise("PNG")[:-4],
        "found a damaged image (the end is missing), expected PNG, JPEG, GIF or BMP that decodes to the",
    ),
    (noise("PNG")[:-13] + b"\0" + noise("PNG")[-12:], "found a damaged image (broken PNG file (bad header checksum in"),
    (noise("JPEG")[:-100], TRUNCATED),
    (noise("GIF")[:-100], TRUNCATED),
    (noise("BMP")[:-100], TRUNCATED),
]


@pytest.mark.parametrize(("data", "reason"), FAULTS)
def test_a_file_that_is_no_whole_image(ingest: Ingest, tmp_path: Path, data: bytes, reason: str) -> None:
    put(tmp_path / "photos", {"cats/1.png": encoded(1), "cats/2.png": data, "dogs/3.png": encoded(3)})
    with pytest.raises(BadRowError) as caught:
        ingest("photos")
    file = tmp_path / "photos" / "cats" / "2.png"
    assert str(caught.value).startswith(f"{file}: {reason}")
    assert str(caught.value).endswith(MEND)

    examples, rejected = ingest("photos", on_bad_row="set_aside", splits={"train": 1})
    (entry,) = rejected_rows(rejected)
    assert entry.pop("reason").startswith(reason)
    assert entry == {"file": str(file), "line": None, "column": None, "raw": None}
    assert rejected.num_rows == 1
    assert image_rows(examples)["train"].keys() == {"cats/1.png", "dogs/3.png"}


def test_a_bmp_with_a_palette_which_tensorflow_misreads(ingest: Ingest, tmp_path: Path) -> None:
    file = io.BytesIO()
    Image.new("RGB", (2, 2), (1, 2, 3)).quantize(4).save(file, "BMP")
    put(tmp_path / "photos", {"cats/1.bmp": file.getvalue()})
    with pytest.raises(
        BadRowError, match=r"found a BMP with a palette of [248] bits a pixel, expected one of 24 or 32"
    ):
        ingest("photos")


def test_a_file_beside_the_classes(ingest: Ingest, tmp_path: Path) -> None:
    put(tmp_path / "photos", {"cats/1.png": encoded(1), "README.md": b"hello"})
    reason = "lies directly in the data folder, expected a sub-folder that is named as its class"
    with pytest.raises(BadRowError) as caught:
        ingest("photos", format="images")
    assert str(caught.value) == f"{tmp_path}/photos/README.md: {reason}{MEND}"
    _, rejected = ingest("photos", format="images", on_bad_row="set_aside")
    assert [entry["reason"] for entry in rejected_rows(rejected)] == [reason]


def test_nothing_but_bad_files(ingest: Ingest, tmp_path: Path) -> None:
    put(tmp_path / "photos", {"cats/1.png": b"x", "cats/2.png": b"y"})
    with pytest.raises(DataError, match=r"All 2 rows of .*/photos were set aside, expected at least one good row\."):
        ingest("photos", on_bad_row="set_aside")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["1.png", "2.png"], "/photos has no sub-folders with files, expected one sub-folder of images for each class"),
        (
            ["cats/1.png", "cats/tabby/2.png"],
            "/photos holds files at different depths: cats/1.png, cats/tabby/2.png; expected one sub-folder for each",
        ),
        (["train/cats/1.png"], "/photos holds train/cats/1.png, expected one sub-folder for each class and images in"),
    ],
)
def test_a_folder_that_is_laid_out_otherwise(ingest: Ingest, tmp_path: Path, names: list[str], message: str) -> None:
    put(tmp_path / "photos", dict.fromkeys(names, encoded(1)))
    with pytest.raises(DataError) as caught:
        ingest("photos", format="images")
    assert message in str(caught.value)


def test_splits_above_the_classes_by_patterns(ingest: Ingest, tmp_path: Path) -> None:
    names = ["train/cats/1.png", "train/dogs/1.png", "train/dogs/2.png", "test/bats/9.png", "test/cats/1.png"]
    put(tmp_path / "photos", {name: encoded(i) for i, name in enumerate(names)})
    examples, _ = ingest("photos", splits={"train": "train/*/*", "eval": "test/*/*"})
    labels = {split: {name: row[:2] for name, row in images.items()} for split, images in image_rows(examples).items()}
    assert labels == {
        "train": {"train/cats/1.png": (1, "cats"), "train/dogs/1.png": (2, "dogs"), "train/dogs/2.png": (2, "dogs")},
        "eval": {"test/bats/9.png": (0, "bats"), "test/cats/1.png": (1, "cats")},
    }


def test_a_moved_image_changes_the_digest_of_the_input(ingest: Ingest, tmp_path: Path) -> None:
    put(tmp_path / "photos", {"cats/1.png": encoded(1), "dogs/2.png": encoded(2)})
    before = ingest("photos")[0].get_string_custom_property("input_digest")
    assert ingest("photos")[0].get_string_custom_property("input_digest") == before
    os.rename(tmp_path / "photos/cats/1.png", tmp_path / "photos/dogs/1.png")
    assert ingest("photos")[0].get_string_custom_property("input_digest") != before


def test_formats_and_columns_are_told_without_reading_an_image(tmp_path: Path) -> None:
    put(tmp_path / "photos", {"cats/1.png": b"x"})
    code = """
import sys
from components.example_gen.files import resolve
from components.example_gen.settings import DataSettings
from components.example_gen.sources import columns_of
for path in ("photos", "package:sklearn/datasets/data/digits.csv.gz"):
    inputs = resolve(DataSettings(path=path), sys.argv[1])
    print(inputs.format, columns_of(inputs))
print(sorted({"PIL", "tfx", "tensorflow", "apache_beam", "sklearn"} & set(sys.modules)))
"""
    result = subprocess.run([sys.executable, "-c", code, tmp_path], check=True, capture_output=True, text=True)
    names = "['image', 'label', 'class', 'name']"
    assert result.stdout == f"images {names}\ndigits {names}\n[]\n"


def test_cifar_100_is_refused(tmp_path: Path) -> None:
    put(tmp_path, {"cifar-100-python.tar.gz": b""})
    with pytest.raises(
        SettingsError, match=r"data.path names .*/cifar-100-python.tar.gz, which is CIFAR-100; expected"
    ):
        resolve(DataSettings(path="cifar-100-python.tar.gz", format="cifar10"), tmp_path)


def test_the_digits_are_those_of_scikit_learn(ingest: Ingest) -> None:
    from sklearn.datasets import load_digits

    digits = load_digits()
    examples, rejected = ingest(DIGITS, splits={"train": 2, "eval": 1})
    splits = image_rows(examples)
    images = splits["train"] | splits["eval"]
    assert (len(images), len(splits["train"]) + len(splits["eval"]), rejected.num_rows) == (1_797, 1_797, 0)
    assert images["digits.csv.gz:1"][:2] == (0, "0")
    assert [images[f"digits.csv.gz:{i}"][0] for i in range(1, 1_798)] == digits.target.tolist()
    for row in (1, 900, 1_797):
        expected = np.floor(digits.images[row - 1] * 255 / 16 + 0.5)
        assert np.array_equal(np.array(pixels(images[f"digits.csv.gz:{row}"][2])), expected[:, :, None])
    assert expected.max() == 255
    assert json.loads(examples.get_string_custom_property("class_names")) == [str(digit) for digit in range(10)]


@pytest.mark.parametrize("line", ["1,2,3", ",".join(["0"] * 64 + ["10"]), ",".join(["17"] + ["0"] * 64), "a" * 9])
def test_a_line_that_is_no_digit(ingest: Ingest, tmp_path: Path, line: str) -> None:
    good = ",".join(["16"] * 64 + ["9"])
    (tmp_path / "digits.csv.gz").write_bytes(gzip.compress(f"{good}\n{line}\n".encode()))
    with pytest.raises(BadRowError) as caught:
        ingest("digits.csv.gz")
    reason = "found no digit, expected 64 pixels from 0 to 16 and a digit, divided by commas"
    assert f"{tmp_path}/digits.csv.gz, line 2: {reason}\n" in str(caught.value)
    examples, rejected = ingest("digits.csv.gz", on_bad_row="set_aside", splits={"all": 1})
    (entry,) = rejected_rows(rejected)
    assert (entry["line"], entry["reason"], entry["raw"]) == (2, reason, f"{line}\n")
    ((label, name, image),) = image_rows(examples)["all"].values()
    assert (label, name, pixels(image)) == (9, "9", [[[255]] * 8] * 8)


def test_columns_need_no_good_image(tmp_path: Path) -> None:
    put(tmp_path / "photos", {"cats/1.png": b"x"})
    assert columns_of(resolve(DataSettings(path="photos/*/*.png"), tmp_path)) == ["image", "label", "class", "name"]
