"""A trained model of the digits and one of a table, as inputs of the TF Lite node."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tflite_models
from tflite_models import TRAIN_ROWS, Case
from tiny_artifacts import new_artifact

from components.artifacts import TFLiteModel
from components.tflite.component import TFLite
from components.tflite.settings import TFLiteSettings

Execute = Callable[..., Any]


@pytest.fixture(scope="session")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """The digits: train 1,400 rows, eval 397."""
    images, labels = tflite_models.digits()
    train = {"image": images[:TRAIN_ROWS], "digit": labels[:TRAIN_ROWS]}
    evaluation = {"image": images[TRAIN_ROWS:], "digit": labels[TRAIN_ROWS:]}
    save_model = partial(tflite_models.save_digits_model, tflite_models.digits_model())
    folder = tmp_path_factory.mktemp("digits")
    return tflite_models.new_case(folder, save_model, tflite_models.DIGITS_SPEC, "digit", train=train, eval=evaluation)


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """A table: big where fare > 1, except in one row out of ten."""
    fare = np.linspace(0.0, 2.0, 200, dtype=np.float32)
    big = (fare > 1.0).astype(np.int64)
    big[::10] = 1 - big[::10]
    columns = {"fare": fare, "company": np.arange(200) % 7, "big": big, "weight": fare}
    folder = tmp_path_factory.mktemp("table")
    save_model, spec = tflite_models.save_table_model, tflite_models.TABLE_SPEC
    return tflite_models.new_case(folder, save_model, spec, "big", train=columns, eval=columns)


@pytest.fixture
def execute(tmp_path: Path) -> Execute:
    """Runs the executor: `execute(case, quantization="int8")`; returns the TFLiteModel artifact."""

    def run(case: Case, **settings: Any) -> Any:
        model = new_artifact(tmp_path / "artifacts", TFLiteModel)
        text = TFLiteSettings.model_validate(settings).model_dump_json()
        properties = {"name": "small", "label": case.label, "output": "", "settings": text}
        TFLite.EXECUTOR_SPEC.executor_class().Do(case.inputs, {"tflite_model": [model]}, properties)
        return model

    return run
