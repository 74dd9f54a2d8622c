"""Out-of-range flags are refused before anything starts."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from serving.settings import ServerSettings


def test_the_defaults_are_tensorflow_servings() -> None:
    settings = ServerSettings()
    assert (settings.port, settings.rest_api_port, settings.rest_api_timeout_in_ms) == (8500, 0, 30_000)
    assert (settings.max_num_load_retries, settings.load_retry_interval_micros) == (5, 60_000_000)
    assert (settings.file_system_poll_wait_seconds, settings.enable_model_warmup) == (1, True)


@pytest.mark.parametrize(
    "flags",
    [
        {"port": 65536},
        {"rest_api_timeout_in_ms": 0},
        {"file_system_poll_wait_seconds": -1},
        {"max_num_load_retries": -1},
        {"load_timeout_seconds": 0},
        {"tensorflow_inter_op_parallelism": -1},
        {"model_bas_path": "/models"},
    ],
)
def test_flags_out_of_range_and_unknown_ones_are_refused(flags: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=next(iter(flags))):
        ServerSettings(**flags)
