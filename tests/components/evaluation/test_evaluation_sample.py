"""The sample of predictions that an evaluation keeps."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_model_analysis as tfma
from tensorflow_model_analysis.proto import config_pb2
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

from components.evaluation import recording, sample, tfma_run
from contracts.file_names import SAMPLE_FILE
from serving.models import warm_up

ROWS = [f"row {number}".encode() for number in range(10)]
CHOSEN = sorted(ROWS, key=lambda row: hashlib.sha256(row).digest())[:3]


def batch(rows: list[bytes], **outputs: Any) -> dict[str, Any]:
    scores = np.array([[float(row.split()[1])] for row in rows], np.float32)
    predictions = {name: make(scores) for name, make in outputs.items()}
    return recording.with_digests({"input": np.array(rows, object), "predictions": predictions})


def same(scores: Any) -> Any:
    return scores


def kept(batches: list[dict[str, Any]], model: str | None, folder: Path) -> list[tuple[bytes, dict[str, Any]]]:
    """The sample as rows and answers, after Beam."""
    with beam.Pipeline() as pipeline:
        _ = (
            pipeline
            | beam.Create(batches)
            | recording.Record([sample.sample_recorder(str(folder / SAMPLE_FILE), 3, model)])
        )
    logs = [log.predict_log for log in map(PredictionLog.FromString, warm_up.read_records(folder / SAMPLE_FILE))]
    assert {log.request.model_spec.signature_name for log in logs} == {"serving_default"}
    return [
        (row, {name: tf.make_ndarray(tensor)[place] for name, tensor in log.response.outputs.items()})
        for log in logs
        for place, row in enumerate(log.request.inputs["examples"].string_val)
    ]


def test_the_sample_is_the_same_whatever_the_batches(tmp_path: Path) -> None:
    batches = [batch(ROWS[:4], score=same), batch(ROWS[4:], score=same)]
    found = kept(batches, None, tmp_path)
    assert [row for row, _ in found] == CHOSEN
    for row, outputs in found:
        np.testing.assert_array_equal(outputs["score"], [float(row.split()[1])])
    assert [row for row, _ in kept([batch(ROWS[::-1], score=same)], None, tmp_path)] == CHOSEN


def test_of_two_models_the_candidate_is_kept(tmp_path: Path) -> None:
    batches = [batch(ROWS, candidate=same, baseline=lambda scores: scores + 100)]
    found = kept(batches, "candidate", tmp_path)
    # An only output has no name.
    assert [outputs[""].item() for _, outputs in found] == [float(row.split()[1]) for row in CHOSEN]


def test_texts_are_kept(tmp_path: Path) -> None:
    found = kept([batch(ROWS, label=lambda scores: np.array([b"x"] * len(scores), object))], None, tmp_path)
    assert [outputs["label"] for _, outputs in found] == [b"x"] * 3


def test_rows_share_a_log_where_their_answers_have_the_same_shapes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sample, "LOG_ROWS", 2)
    wide = batch(ROWS[:2], score=lambda scores: np.tile(scores, [1, 3]))
    recorder = sample.sample_recorder(str(tmp_path / SAMPLE_FILE), 10, None)
    recorder.write(recorder.read(batch(ROWS[2:7], score=same))[:5] + recorder.read(wide))
    logs = [PredictionLog.FromString(record).predict_log for record in warm_up.read_records(tmp_path / SAMPLE_FILE)]
    assert [tf.make_ndarray(log.response.outputs["score"]).shape for log in logs] == [(2, 1), (2, 1), (1, 1), (2, 3)]


def test_a_sample_has_no_more_bytes_than_it_may(tmp_path: Path) -> None:
    choices = [(number, b"x" * 10, {}) for number in range(5)]
    kept = sample.smallest([choices[3:], choices[:3]], 4, max_bytes=35)
    assert [digest for digest, _, _ in kept] == [0, 1, 2]
    assert sample.smallest([choices], 2, max_bytes=35) == choices[:2]


def test_tfma_s_extractors_get_one_more_before_the_batches_are_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["ExtractPredictions", "ExtractUnbatchedInputs", "ExtractSliceKeys"]
    assert names[1] == tfma_run.unbatch_extractor.UNBATCH_EXTRACTOR_STAGE_NAME
    own = [tfma.extractors.Extractor(stage_name=name, ptransform=beam.Map(same)) for name in names]
    monkeypatch.setattr(tfma_run.model_eval_lib, "default_extractors", lambda **_options: list(own))
    recorders = [sample.sample_recorder("folder/sample", 2, None)]
    config = config_pb2.EvalConfig(model_specs=[config_pb2.ModelSpec()])
    extractors = tfma_run.extractors(None, config, recorders)
    assert [extractor.stage_name for extractor in extractors] == [names[0], tfma_run.STAGE, *names[1:]]
    assert list(extractors[1].ptransform._recorders) == recorders
    config.model_specs[0].example_weight_key = "weight"
    extractors = tfma_run.extractors(None, config, recorders)
    assert [extractor.stage_name for extractor in extractors] == [
        names[0],
        tfma_run.WEIGHTS_STAGE,
        tfma_run.STAGE,
        *names[1:],
    ]
