"""Embeddings as TensorBoard's projector reads them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tf_keras
from google.protobuf import text_format
from tensorboard.plugins import projector as tensorboard_projector

from components.trainer.callback_settings import TensorBoardSettings
from components.trainer.projector import Projector
from contracts.errors import TrainingError


def no_vocabulary(name: str) -> list[bytes]:
    """As TFTransformOutput, of the vocabulary `companies` alone."""
    if name != "companies":
        raise ValueError(name)
    return [b"Blue\tCab", b"Taxi \xc3\x84"]


GRAPH: Any = SimpleNamespace(vocabulary_by_name=no_vocabulary)


def model() -> tf_keras.Model:
    ids = tf_keras.Input([2], dtype="int64", name="company")
    vectors = tf_keras.layers.Embedding(4, 3, name="company_embedding")(ids)
    return tf_keras.Model(ids, tf_keras.layers.Dense(1, name="score")(vectors))


def projected(folder: Path, **layers: dict[str, Any]) -> Projector:
    settings = TensorBoardSettings.model_validate({"embeddings": layers}).embeddings
    made = model()
    callback = Projector(settings, made, GRAPH, str(folder))
    callback.on_train_end()
    return callback


def test_each_row_has_its_word(tmp_path: Path) -> None:
    callback = projected(tmp_path, company_embedding={"vocabulary": "companies", "first_id": 1})
    folder = tmp_path / "tensorboard"
    config = text_format.Parse((folder / "projector_config.pbtxt").read_text(), tensorboard_projector.ProjectorConfig())
    [embedding] = config.embeddings
    assert embedding.tensor_name == "company_embedding"
    [weights] = callback._layers["company_embedding"].get_weights()
    np.testing.assert_allclose(np.loadtxt(folder / embedding.tensor_path, delimiter="\t"), weights, rtol=1e-5)
    assert (folder / embedding.metadata_path).read_text().splitlines() == ["#0", "Blue Cab", "Taxi Ä", "#3"]


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        (
            {"company_embeding": {}},
            "trainer.callbacks.tensorboard.embeddings names the layer 'company_embeding', which the model does not "
            "have. Did you mean company_embedding?",
        ),
        (
            {"score": {}},
            "trainer.callbacks.tensorboard.embeddings names the layer 'score', whose weights have the shapes (3, 1), "
            "(1,), expected one matrix, [ids, size].",
        ),
        (
            {"company_embedding": {"vocabulary": "company"}},
            "trainer.callbacks.tensorboard.embeddings.company_embedding names the vocabulary 'company', which the "
            "transform graph does not have.",
        ),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, layers: dict[str, Any], message: str) -> None:
    with pytest.raises(TrainingError) as caught:
        projected(tmp_path, **layers)
    assert str(caught.value).splitlines()[0] == message
