"""The tiny recipe, whose training is interrupted once.

`params` name the epoch, counted from 0, before which it happens, the index of the task that it happens to (-1 without a
cluster), how (`kill` or `raise`), and a file that remembers that it did.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tf_keras
import tiny_recipe


class Interruption(tf_keras.callbacks.Callback):
    """Ends the process, or raises."""

    def __init__(self, params: Mapping[str, Any]) -> None:
        super().__init__()
        self._wanted = params

    def on_epoch_begin(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        memory = Path(self._wanted["memory"])
        task = json.loads(os.environ.get("TF_CONFIG") or '{"task": {"index": -1}}')["task"]["index"]
        if epoch != self._wanted["epoch"] or task != self._wanted["task"] or memory.exists():
            return
        memory.touch()
        if self._wanted["how"] == "raise":
            raise InterruptedError
        print("about to die", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)


class WithInterruption:
    """A model's own callback. Not a model itself: Keras changes the bases of a class that is made functional."""

    wanted: Mapping[str, Any]

    def fit(self, *arguments: Any, callbacks: Sequence[Any], **named: Any) -> Any:
        fit: Any = super().fit  # type: ignore[misc]
        return fit(*arguments, callbacks=[*callbacks, Interruption(self.wanted)], **named)


class Interrupted(WithInterruption, tf_keras.Model):
    """A functional model whose training is interrupted once."""


def build_model(features: Sequence[Any], params: Mapping[str, Any]) -> tf_keras.Model:
    """The tiny recipe's model, of this class."""
    tiny = tiny_recipe.build_model(features, {})
    model = Interrupted(tiny.input, tiny.output)
    model.wanted = dict(params)
    return model


compile_arguments = tiny_recipe.compile_arguments
