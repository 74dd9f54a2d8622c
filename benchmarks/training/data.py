"""What the trainings of the benchmarks learn from: the pipeline itself is run up to its Transform."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks import millrace

BATCHES = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch")
CLASSES = 10
EVAL_ROWS = 128
CHANNELS_FIRST = (3, 32, 32)


def noise_images(folder: Path, rows: int) -> dict[str, str]:
    """Transformed images of 32x32 pixels and 3 channels, as many as `rows` to train on: noise about a class's color.

    They come as CIFAR-10's binary files. How fast a network learns does not depend on what is in the images.

    Returns:
        Where they are: `train` and `eval`, folders of TFRecords, and `graph`, the transform graph.
    """
    batches = folder / "cifar-10-batches-bin"
    batches.mkdir(parents=True)
    random = np.random.default_rng(1)
    Path(batches, "batches.meta.txt").write_text("\n".join(map(str, range(CLASSES))) + "\n", encoding="utf-8")
    for name in BATCHES:
        count = EVAL_ROWS if name == BATCHES[-1] else rows // (len(BATCHES) - 1)
        labels = random.integers(0, CLASSES, (count, 1), np.uint8)
        pixels = random.integers(0, 128, (count, np.prod(CHANNELS_FIRST)), np.uint8) + labels * 12
        Path(batches, f"{name}.bin").write_bytes(np.hstack([labels, pixels.astype(np.uint8)]).tobytes())
    return _transformed(
        folder,
        "cifar10",
        f"data.path={batches}",
        "data.splits={train: data_batch_*, eval: test_batch}",
        "transform.params={height: 32, width: 32, channels: 3}",
    )


def digits(folder: Path) -> dict[str, str]:
    """scikit-learn's digits, split and transformed as the cifar10 recipe says; see `noise_images`."""
    return _transformed(folder, "cifar10")


def taxi_trips(folder: Path) -> dict[str, str]:
    """The taxi recipe's rows, transformed; see `noise_images`."""
    return _transformed(folder, "taxi")


def _transformed(folder: Path, recipe: str, *overrides: str) -> dict[str, str]:
    runs = folder / recipe
    millrace.run(recipe, millrace.write_environment(runs), folder, *overrides, recipe=recipe, last_node="Transform")
    examples = millrace.output(runs, recipe, "Transform", "transformed_examples").uri
    graph = millrace.output(runs, recipe, "Transform", "transform_graph").uri
    return {"train": f"{examples}/Split-train", "eval": f"{examples}/Split-eval", "graph": graph}
