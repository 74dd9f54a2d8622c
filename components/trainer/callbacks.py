"""What training tells the outside world while it goes on."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import tf_keras

PROGRESS_VARIABLE = "MILLRACE_PROGRESS"
"""Names the environment variable with the file that training writes its progress to; unset, it writes none."""


class ProgressFile(tf_keras.callbacks.Callback):
    """Keeps a small JSON file with epoch, epochs and the latest metrics, for the live table of a run."""

    def __init__(self, path: Path, epochs: int) -> None:
        super().__init__()
        self._path = path
        self._epochs = epochs
        self._epoch = 0

    @classmethod
    def from_environment(cls, epochs: int) -> list[ProgressFile]:
        """One callback where a run wants to know, none otherwise."""
        path = os.environ.get(PROGRESS_VARIABLE)
        return [cls(Path(path), epochs)] if path else []

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Keras's hook."""
        self._epoch = epoch + 1

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Keras's hook; called once for each `steps_per_execution` steps."""
        self._write(logs)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Keras's hook."""
        self._write(logs)

    def _write(self, logs: dict[str, Any] | None) -> None:
        metrics = {name: float(value) for name, value in (logs or {}).items()}
        staging = self._path.with_suffix(".tmp")
        staging.write_text(json.dumps({"epoch": self._epoch, "epochs": self._epochs, "metrics": metrics}))
        os.replace(staging, self._path)
