"""What lies beside an exported model: warm-up requests, class names, the card."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
import tiny_recipe
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog
from tiny_artifacts import Tiny

from components.trainer import export, features, train
from contracts import model_card

FACTS = {"epochs": 2, "strategy": "one_device"}
METRICS = {"loss": 0.25, "auc": None}


@pytest.fixture(scope="module")
def folder(tiny: Tiny, model: tf_keras.Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model saved with all there is."""
    place = tmp_path_factory.mktemp("saved")
    options = export.Options(
        embedding_layer="score",
        raw_examples=tiny.serialized("eval"),
        class_names=["small", "big ünd"],
        validation_metrics=METRICS,
        training=FACTS,
    )
    export.save(model, tiny.output, "big", str(place), options)
    return place


def logs(folder: Path, kind: str) -> list[Any]:
    """The requests of the warm-up; `kind` is `predict` or `classify`."""
    records = tf.data.TFRecordDataset(str(folder / export.WARM_UP_REQUESTS)).as_numpy_iterator()
    every = [PredictionLog.FromString(record) for record in records]
    return [getattr(log, f"{kind}_log").request for log in every if log.HasField(f"{kind}_log")]


def requests(folder: Path) -> list[Any]:
    return logs(folder, "predict")


def test_the_warm_up_asks_the_model_for_real_rows(folder: Path, tiny: Tiny, model: tf_keras.Model) -> None:
    loaded = tf.saved_model.load(str(folder))
    transformed = tiny.tensors(tiny.transformed, "eval")
    wanted = model({name: transformed[name] for name in model.input_names}, training=False).numpy()
    replayed = []
    for request in requests(folder):
        inputs = {name: tf.make_ndarray(tensor) for name, tensor in request.inputs.items()}
        # TensorFlow Serving refuses a request whose dtypes are not exactly the signature's.
        signature = loaded.signatures[request.model_spec.signature_name]
        specs = signature.structured_input_signature[1]
        assert {name: tensor.dtype for name, tensor in request.inputs.items()} == {
            name: spec.dtype.as_datatype_enum for name, spec in specs.items()
        }
        [found] = signature(**{name: tf.constant(values) for name, values in inputs.items()}).values()
        replayed.append((request.model_spec.signature_name, len(found)))
        np.testing.assert_allclose(found, wanted[: len(found)], rtol=1e-6)
    assert replayed == [("serving_default", 1), ("predict", 1), ("serving_default", 16), ("predict", 16)]


def test_the_warm_up_has_no_labels(folder: Path) -> None:
    rows = [row for request in requests(folder) for row in request.inputs["examples"].string_val]
    assert len(rows) == 17
    for row in rows:
        assert set(tf.train.Example.FromString(row).features.feature) == {"id", "fare", "company"}
    asked = [(one.model_spec.signature_name, one.input.example_list.examples) for one in logs(folder, "classify")]
    assert [(name, len(examples)) for name, examples in asked] == [("classify", 1), ("classify", 16)]
    assert [example.SerializeToString(deterministic=True) for _, examples in asked for example in examples] == rows


def test_fewer_rows_than_a_batch_are_asked_for_once(tiny: Tiny, model: tf_keras.Model, tmp_path: Path) -> None:
    export.save(model, tiny.output, "big", str(tmp_path), export.Options(raw_examples=tiny.serialized("eval")[:1]))
    assert [request.model_spec.signature_name for request in requests(tmp_path)] == ["serving_default", "predict"]


def test_the_first_rows_of_files_are_read(tiny: Tiny) -> None:
    [examples] = tiny.inputs["examples"]
    files = sorted(str(path) for path in Path(examples.uri, "Split-eval").iterdir())
    assert len(export.read_warm_up_rows(files)) == 16
    [row] = export.read_warm_up_rows(files, 1)
    assert tf.train.Example.FromString(row).features.feature["id"].int64_list.value == [120]
    assert export.read_warm_up_rows([]) == []


def test_class_names_are_listed_by_id(folder: Path) -> None:
    assert (folder / export.LABELS).read_text(encoding="utf-8") == "small\nbig ünd\n"


def test_without_rows_and_names_there_is_a_card_alone(tiny: Tiny, model: tf_keras.Model, tmp_path: Path) -> None:
    export.save(model, tiny.output, "big", str(tmp_path))
    assert [path.name for path in (tmp_path / "assets.extra").iterdir()] == ["card.json"]
    read = model_card.read_card(tmp_path)
    assert (read.class_names, read.embedding_layer, read.training, read.validation_metrics) == (None, None, {}, {})


def test_the_card_says_what_the_model_is(folder: Path, tiny: Tiny, model: tf_keras.Model) -> None:
    read = model_card.read_card(folder)
    assert (read.name, read.label, read.embedding_layer) == (model.name, "big", "score")
    assert read.task == "binary"
    assert read.num_parameters == 4  # three numbers and a bias
    assert (read.class_names, read.training, read.validation_metrics) == (["small", "big ünd"], FACTS, METRICS)
    assert timedelta(0) <= datetime.now(timezone.utc) - read.created < timedelta(hours=1)
    assert read.versions["python"] == ".".join(map(str, sys.version_info[:3]))
    assert read.versions["tensorflow"] == tf.__version__
    assert read.versions["tf_keras"] == tf_keras.__version__
    assert set(read.versions) == {"python", "millrace", "tensorflow", "tf_keras", "tensorflow-transform", "tfx"}
    schema = tiny.output.raw_metadata.schema.SerializeToString(deterministic=True)
    assert read.schema_sha256 == hashlib.sha256(schema).hexdigest()


def test_the_card_says_how_to_ask(folder: Path) -> None:
    signatures = model_card.read_card(folder).signatures
    served = {"score": model_card.Tensor(dtype="float32", shape=[None, 1])}
    assert signatures["predict"] == model_card.Signature(
        inputs={
            "fare": model_card.Tensor(dtype="float32", shape=[None], feature="fare", missing="NaN"),
            "company": model_card.Tensor(dtype="string", shape=[None], feature="company", missing=""),
        },
        outputs=served,
    )
    assert signatures["serving_default"] == model_card.Signature(
        inputs={"examples": model_card.Tensor(dtype="string", shape=[None])}, outputs=served
    )
    assert signatures["predict_transformed"].inputs["id"] == model_card.Tensor(
        dtype="int64", shape=[None], feature="id"
    )
    assert signatures["embedding"].outputs == {"embedding": model_card.Tensor(dtype="float32", shape=[None, 1])}
    loaded = tf.saved_model.load(str(folder)).signatures
    assert {name: set(signature.inputs) for name, signature in signatures.items()} == {
        name: set(function.structured_input_signature[1]) for name, function in loaded.items()
    }
    assert {name: set(signature.outputs) for name, signature in signatures.items()} == {
        name: set(function.structured_outputs) for name, function in loaded.items()
    }


def test_a_card_is_read_without_tensorflow(folder: Path) -> None:
    script = f"""if True:
        import sys
        from pathlib import Path
        from contracts import model_card
        print(model_card.read_card(Path({str(folder)!r})).label, "tensorflow" in sys.modules)
    """
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "big False\n"


def test_the_last_epoch_s_validation_metrics_are_kept() -> None:
    history = {"loss": [3.0, 2.0], "val_loss": [5.0, 4.0], "val_auc": [0.5, float("nan")]}
    assert train.last_validation_metrics(history) == {"loss": 4.0, "auc": None}


def test_a_recipe_may_decide_what_is_served() -> None:
    recipe = ModuleType("model")
    assert export.serving_outputs_of(recipe, {"top": 2}) is None
    recipe.serving_outputs = lambda outputs, params: {"y": outputs["x"] * params["top"]}  # type: ignore[attr-defined]
    found = export.serving_outputs_of(recipe, {"top": 2})
    assert found is not None
    assert found({"x": 21}) == {"y": 42}


def test_a_model_in_half_precision_can_be_saved(tiny: Tiny, tmp_path: Path) -> None:
    tf_keras.mixed_precision.set_global_policy("mixed_bfloat16")
    try:
        schema = tiny.output.transformed_metadata.schema
        half = tiny_recipe.build_model(features.from_schema(schema, "big"), {"dtype": "mixed_bfloat16"})
        export.save(half, tiny.output, "big", str(tmp_path))
    finally:
        tf_keras.mixed_precision.set_global_policy("float32")
    loaded = tf.saved_model.load(str(tmp_path))
    [found] = loaded.signatures["serving_default"](examples=tf.constant(tiny.serialized("eval"))).values()
    transformed = tiny.tensors(tiny.transformed, "eval")
    wanted = half({name: transformed[name] for name in half.input_names}, training=False)
    assert (found.dtype, wanted.dtype) == (tf.float32, tf.bfloat16)
    np.testing.assert_allclose(found, tf.cast(wanted, tf.float32), rtol=1e-2)
