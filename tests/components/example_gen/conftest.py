"""The fixture that runs our ingest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from ingest_helpers import run_executor

Ingest = Callable[..., tuple[Any, Any]]


@pytest.fixture
def ingest(tmp_path: Path) -> Ingest:
    """Runs our executor: `ingest(path, span=…, labels=…, **settings)` returns its two artifacts.

    There is one split unless `splits` says otherwise: with more, few rows would leave one empty, which is refused.
    """

    def run(path: Path | str, span: int | None = None, labels: Sequence[str] = (), **settings: Any) -> tuple[Any, Any]:
        return run_executor({"path": str(path), "splits": {"all": 1}, **settings}, tmp_path, span, labels)

    return run
