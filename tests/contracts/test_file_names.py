"""We read TFX's files by the names under which TFX writes them."""

import pytest
from tfx.components.example_validator import executor as example_validator
from tfx.components.schema_gen import executor as schema_gen
from tfx.components.statistics_gen import executor as statistics_gen
from tfx.utils import path_utils

from contracts import file_names


@pytest.mark.parametrize(
    ("read", "written"),
    [
        (file_names.SCHEMA_FILE, schema_gen.DEFAULT_FILE_NAME),
        (file_names.STATISTICS_FILE, statistics_gen.DEFAULT_FILE_NAME),
        (file_names.ANOMALIES_FILE, example_validator.DEFAULT_FILE_NAME),
        (file_names.SERVING_MODEL_FOLDER, path_utils.serving_model_dir("")),
    ],
)
def test_each_is_the_name_that_tfx_writes(read: str, written: str) -> None:
    assert read == written
