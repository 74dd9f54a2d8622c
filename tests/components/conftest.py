"""Fixtures that make TFX artifacts of a few rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiny_recipe
from tfx.types import standard_artifacts
from tiny_artifacts import Tiny, execute, new_artifact, new_examples

from components.transform.component import Executor


@pytest.fixture
def artifact(tmp_path: Path) -> Callable[..., Any]:
    """Makes artifacts: `artifact(Model)`."""
    return lambda artifact_class, **properties: new_artifact(tmp_path / "artifacts", artifact_class, **properties)


@pytest.fixture
def examples(tmp_path: Path) -> Callable[..., Any]:
    """Makes raw Examples: `examples(train=rows, eval=rows)`."""
    return lambda **splits: new_examples(tmp_path / "artifacts", splits)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    """Our Transform, run once."""
    folder = tmp_path_factory.mktemp("tiny")
    schema = new_artifact(folder, standard_artifacts.Schema)
    Path(schema.uri, "schema.pbtxt").write_text(tiny_recipe.SCHEMA)
    raw = new_examples(folder, {"train": tiny_recipe.TRAIN, "eval": tiny_recipe.EVAL})
    graph = new_artifact(folder, standard_artifacts.TransformGraph)
    transformed = new_artifact(folder, standard_artifacts.Examples)
    inputs = {"examples": [raw], "schema": [schema]}
    outputs = {"transform_graph": [graph], "transformed_examples": [transformed]}
    execute(Executor, inputs, outputs, {"preprocessing_fn": "tiny_recipe.preprocessing_fn"})
    return Tiny(inputs, transformed, graph.uri)
