"""The names by which artifacts are read are those by which they were written."""

import pytest
from tfx.components.example_validator import executor as example_validator
from tfx.components.schema_gen import executor as schema_gen
from tfx.components.statistics_gen import executor as statistics_gen
from tfx.utils import path_utils

from components import data_gate, string_lengths
from components.evaluation import settings as evaluation
from components.infra_validator import settings as infra_validator
from components.tflite import settings as tflite
from components.trainer import callbacks, card
from metadata.contents import places
from pipeline import worker


@pytest.mark.parametrize(
    ("read", "written"),
    [
        (places.SCHEMA_FILE, schema_gen.DEFAULT_FILE_NAME),
        (places.STATISTICS_FILE, statistics_gen.DEFAULT_FILE_NAME),
        (places.ANOMALIES_FILE, example_validator.DEFAULT_FILE_NAME),
        (places.VERDICT_FILE, data_gate.VERDICT_FILE),
        (places.SUMMARY_FILE, evaluation.SUMMARY_FILE),
        (places.CARD_FILE, card.PLACE),
        (places.STRING_LENGTHS, string_lengths.NAME),
        (places.FAILURE_FILE, worker.FAILURE_FILE),
        (places.INSIGHTS_FILE, evaluation.INSIGHTS_FILE),
        (places.HISTORY_FILE, callbacks.HISTORY_FILE),
        (places.SERVING_MODEL_FOLDER, path_utils.serving_model_dir("")),
        (places.INFRA_REPORT_FILE, infra_validator.REPORT_FILE),
        (places.TFLITE_REPORT_FILE, tflite.REPORT_FILE),
    ],
)
def test_each_is_the_writers_name(read: str, written: str) -> None:
    assert read == written
