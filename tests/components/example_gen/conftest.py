"""The fixture that runs our ingest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ingest_helpers import run_executor

Ingest = Callable[..., tuple[Any, Any]]


@pytest.fixture
def ingest(tmp_path: Path) -> Ingest:
    """Runs our executor: `ingest(path, span=…, **settings)` returns its two artifacts."""

    def run(path: Path | str, span: int | None = None, **settings: Any) -> tuple[Any, Any]:
        return run_executor({"path": str(path), **settings}, tmp_path, span)

    return run
