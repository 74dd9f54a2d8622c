"""A user trains on images: the digits that come with scikit-learn, then a folder of their own."""

from __future__ import annotations

import base64
import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
from copied_project import Project
from PIL import Image
from sklearn.datasets import load_digits

SHORT = ("--set", "trainer.epochs=3", "--set", "evaluator.metrics={SparseCategoricalAccuracy: {lower_bound: 0.8}}")

PREDICT = """
import base64, json, sys
import tensorflow as tf

images = [base64.b64decode(line) for line in sys.stdin]
loaded = tf.saved_model.load(sys.argv[1])
outputs = loaded.signatures["predict"](image=tf.constant(images))
print(json.dumps({name: tensor.numpy().tolist() for name, tensor in outputs.items()}))
"""


def png(pixels: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(file, "PNG")
    return file.getvalue()


def predicted(model: Path, images: list[bytes]) -> dict[str, np.ndarray]:
    """The pushed model's outputs for encoded images, computed in a process without the project."""
    scored = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PREDICT, str(model)],
        input="\n".join(base64.b64encode(image).decode() for image in images),
        capture_output=True,
        text=True,
        check=True,
        cwd=model.parent,
    )
    return {name: np.array(values) for name, values in json.loads(scored.stdout).items()}


def newest_model(project: Project) -> Path:
    return max((project.folder / "artifacts" / "serving" / "cifar10").iterdir())


def test_digits_then_a_folder_of_ones_own(project: Project) -> None:
    finished = project.millrace("run", "cifar10", *SHORT)
    assert finished.code == 0, finished.output + finished.errors
    assert "cifar10: which class is in the image?\n" in finished.output
    assert "Evaluation on 573 rows" in finished.output
    assert any(line.startswith("class=9") for line in finished.output.splitlines())

    _the_recipes_own_node(project, finished.output)

    insights = project.insights("cifar10")
    assert (insights["task"], insights["rows_kept"]) == ("multiclass", 573)
    assert insights["classes"] == [str(digit) for digit in range(10)]
    worst = insights["worst"][0]
    assert worst["features"]["image"][0]["image"].startswith("data:image/png;base64,")
    assert worst["label"] == worst["features"]["class"][0]

    digits = load_digits()
    outputs = predicted(newest_model(project), [png(image * 255 // 16) for image in digits.images[:100]])
    assert outputs["probabilities"].shape == (100, 10)
    np.testing.assert_allclose(outputs["probabilities"].sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_array_equal(outputs["class_ids"], outputs["probabilities"].argmax(axis=1))
    assert (outputs["class_ids"] == digits.target[:100]).mean() > 0.8

    _a_folder_of_ones_own(project)


def _the_recipes_own_node(project: Project, output: str) -> None:
    """SampleImages in components.py has run, is explained, and its drawing is in the report."""
    assert ["SampleImages", "done"] in [line.split()[:2] for line in output.splitlines()]
    why = project.millrace("why", "SampleImages", "--recipe", "cifar10")
    assert why.output == "SampleImages ran because it had never run to its end before.\n"
    [report] = (project.folder / "artifacts" / "logs").glob("cifar10-*/report.html")
    text = report.read_text(encoding="utf-8")
    assert '<img src="data:image/svg+xml;base64,' in text
    assert 'alt="images of each class (SampleImages)"' in text


def _a_folder_of_ones_own(project: Project) -> None:
    """Two classes of color images of different sizes: light above, light below."""
    random = np.random.default_rng(0)
    for number in range(120):
        pixels = random.integers(0, 60, (12, 10 + number % 5, 3))
        light = slice(0, 6) if number % 2 else slice(6, 12)
        pixels[light] += 150
        file = project.folder / "photos" / ("above" if number % 2 else "below") / f"{number}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(png(pixels))
    command = ["run", "cifar10", *SHORT]
    for setting in (
        "data.path=photos",
        "transform.params={height: 12, width: 12, channels: 3}",
        "trainer.batch_size=8",
        "trainer.epochs=8",
        "trainer.optimization.learning_rate_schedule.warmup_steps=5",
    ):
        command += ["--set", setting]

    refused = project.millrace(*command)
    assert refused.code == 1
    assert "The data have 2 classes (above, below), but the model has 10 outputs." in refused.errors

    finished = project.millrace(*command, "--set", "trainer.params.num_classes=2")
    assert finished.code == 0, finished.output + finished.errors
    labels = newest_model(project) / "assets.extra" / "labels.txt"
    assert labels.read_text(encoding="utf-8") == "above\nbelow\n"
    assert project.insights("cifar10")["confusion"]["labels"] == ["above", "below"]
    above = np.concatenate([np.full((6, 12, 3), 200), np.full((6, 12, 3), 30)])
    outputs = predicted(newest_model(project), [png(above), png(above[::-1])])
    assert outputs["class_ids"].tolist() == [0, 1]
