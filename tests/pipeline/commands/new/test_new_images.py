"""What `millrace new` makes of images: folders of classes, and tables with a column of paths."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image

from contracts.errors import BadRowError, SettingsError
from pipeline.commands.new import files
from pipeline.commands.new.images import ImageCell, seen_size, splits_of_folders
from pipeline.commands.new.plan import Plan
from pipeline.commands.new.survey import survey
from pipeline.plan.recipe import RecipeSettings

IMAGES = 60


def write_image(path: Path, number: int, gray: bool = False) -> None:
    """An image of 12 x 10 pixels, each of which is another for another number."""
    shape = (12, 10) if gray else (12, 10, 3)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.random.default_rng(number).integers(0, 255, shape, np.uint8)).save(path)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    for number in range(IMAGES):
        write_image(tmp_path / "photos" / ("cat" if number % 3 else "dog") / f"{number}.png", number)
    return tmp_path


def look(folder: Path, path: str, label: str | None = None, yes: bool = False) -> Plan:
    return survey(
        "mine", "millrace new …", path, [label] if label else [], folder, lambda question, default: default or yes
    )


def test_a_folder_of_classes(photos: Path) -> None:
    (photos / "photos" / "dog" / "broken.jpg").write_bytes(b"no image")
    plan = look(photos, "photos")
    assert plan.data == {"path": "photos", "on_bad_row": "set_aside"}
    assert (plan.task.label, plan.task.classes, plan.task.counts) == ("class", ("cat", "dog"), (40, 20))
    assert [(c.name, c.use, c.why) for c in plan.columns] == [
        ("image", "image", "seen as 12 x 10 pixels in color"),
        ("label", "left out", "the number of the class"),
        ("name", "left out", "the image's file"),
    ]
    [note] = [note for note in plan.notes if "readable" in note]
    assert note.startswith("1 row without a readable image: left out (data.on_bad_row); the first: ")
    assert note.endswith("photos/dog/broken.jpg: found no image, expected PNG, JPEG, GIF or BMP")

    text = files.features_py(plan)
    assert 'Image("image", height=12, width=10, channels=3),' in text
    assert 'LABEL = Classes("class", ["cat", "dog"])' in text
    settings = RecipeSettings.model_validate(yaml.safe_load(files.recipe_yaml(plan)))
    assert settings.trainer.params == {
        "model": "network",
        "members": 1,
        "hidden_units": [],
        "learning_rate": 0.003,
        "weight_decay": 0.01,
        "max_shift": 1,
        "horizontal_flip": False,
    }
    assert settings.trainer.precision == "auto"
    assert "def augment(" in files.model_py(plan)
    assert "def train(" not in files.model_py(plan)
    assert "image_domain { minimum_supported_image_fraction: 1.0 }" in files.schema_pbtxt(plan)
    assert "The same answer for every row" in files.readme(plan)


def test_the_bar_is_the_most_frequent_class(photos: Path) -> None:
    plan = look(photos, "photos")
    area, accuracy = plan.measured
    assert (area.name, area.value, area.bar(1000)) == ("AUC", 0.5, 0.5)
    assert accuracy.name == "BinaryAccuracy"
    # Two of three are cats, in the training split, too, but for a few.
    assert accuracy.bar(1000) == pytest.approx(accuracy.value, abs=5e-4)
    assert 0.55 < accuracy.value < 0.8
    assert plan.metrics["AUC"]["max_loss"] > 0


def test_mirroring_is_asked_for(photos: Path) -> None:
    assert look(photos, "photos", yes=True).params["horizontal_flip"] is True


def test_a_table_with_paths_beside_other_columns(photos: Path) -> None:
    rows = [f"photos/{'cat' if n % 3 else 'dog'}/{n}.png,{n % 7}.5,{'cat' if n % 3 else 'dog'}" for n in range(IMAGES)]
    (photos / "rows.csv").write_text("\n".join(["photo,weight,kind", *rows, "none.png,1.5,cat"]), encoding="utf-8")
    plan = look(photos, "rows.csv", "kind")
    assert plan.data["columns"] == {"photo": "image"}
    assert plan.data["on_bad_row"] == "set_aside"
    assert {column.name: column.use for column in plan.columns} == {"photo": "image", "weight": "number"}
    assert "members" not in plan.params
    assert "from components.tabular.features import Image, Numbers, transformed" in files.features_py(plan)


def test_paths_that_lead_nowhere_are_refused_with_the_first(tmp_path: Path) -> None:
    rows = "".join(f"pictures/{n}.png,{'ab'[n % 2]}\n" for n in range(30))
    (tmp_path / "rows.csv").write_text("photo,kind\n" + rows, encoding="utf-8")
    with pytest.raises(BadRowError, match=r"line 2, column 'photo': found 'pictures/0.png', which cannot be read"):
        look(tmp_path, "rows.csv", "kind")


def test_a_table_needs_a_label(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n3,4\n", encoding="utf-8")
    with pytest.raises(SettingsError, match=r"received no --label for rows\.csv, expected one of its columns: a, b"):
        look(tmp_path, "rows.csv")


def test_images_are_seen_whole_and_no_larger_than_cifar10s() -> None:
    cells = np.full(3, None)
    cells[0], cells[1] = ImageCell(480, 640, 3, b""), ImageCell(480, 640, 1, b"")
    assert seen_size(cells) == (24, 32, 3)
    cells[0] = cells[1] = ImageCell(8, 8, 1, b"")
    assert seen_size(cells) == (8, 8, 1)


@pytest.mark.parametrize(
    ("names", "splits"),
    [
        (["train/a/1.png", "test/a/2.png"], {"splits": {"train": "train/*", "eval": "test/*"}}),
        (["Train/a/1.png", "val/a/2.png"], {"splits": {"train": "Train/*", "eval": "val/*"}}),
        (["a/1.png", "b/2.png"], {}),
        (["train/a/1.png", "other/a/2.png"], {}),
    ],
)
def test_folders_of_splits(names: list[str], splits: dict[str, dict[str, str]]) -> None:
    assert splits_of_folders(names) == splits
