"""Runs a compiled pipeline spec's own commands as local processes, in the spec's order, as parallel as it allows."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.run import warm
from pipeline.schedule.kubeflow.steps import Source, Step, filled_command
from pipeline.schedule.kubeflow.task import ATTEMPT_VARIABLE, EXIT_AGAIN
from pipeline.schedule.kubeflow.watch import TaskState, View

POLL_SECONDS = 0.5
LAST_LINES = 5


@dataclass
class _Progress:
    """The progress of a step."""

    step: Step
    state: str = "waiting"
    began: float = 0.0
    ended: float = 0.0
    error: str | None = None
    outputs: dict[str, Any] = field(default_factory=dict)


class Rehearsal:
    """One rehearsal.

    Args:
        steps: The steps of the spec.
        names: The steps' names for users, by key.
        folder: Where the launcher's files and the logs go.
        environment_name: The environment that replaces the cluster's in the commands.
        at_once: How many commands may run at a time.
    """

    def __init__(
        self, steps: Sequence[Step], names: Mapping[str, str], folder: Path, environment_name: str, at_once: int
    ) -> None:
        self._names = names
        self._folder = folder
        self._environment_name = environment_name
        self._at_once = at_once
        self._stopping = threading.Event()
        self._all = {step.key: _Progress(step) for step in steps}

    def run(self, view: View) -> list[TaskState]:
        """Runs the steps until all have ended.

        Returns:
            How each ended.

        Raises:
            KeyboardInterrupt: The user stopped it; what ran was stopped with it.
        """
        with view, ThreadPoolExecutor(self._at_once) as pool:
            running: set[Future[None]] = set()
            try:
                while running or self._waiting():
                    running |= {pool.submit(self._work, progress) for progress in self._begin()}
                    view.show(self.states())
                    running -= wait(running, POLL_SECONDS, FIRST_COMPLETED).done if running else set()
            except KeyboardInterrupt:
                self._stopping.set()
                raise
            view.show(self.states())
        return self.states()

    def states(self) -> list[TaskState]:
        """The state of each step, without those skipped by a condition."""
        now = time.monotonic()
        states = []
        for key, name in self._names.items():
            if key not in self._all or (self._all[key].state == "skipped" and self._all[key].step.condition):
                continue
            progress = self._all[key]
            seconds = (progress.ended or now) - progress.began if progress.began else None
            states.append(TaskState(name, progress.state, seconds, progress.error))
        return states

    def _waiting(self) -> bool:
        return any(progress.state == "waiting" for progress in self._all.values())

    def _begin(self) -> list[_Progress]:
        """Starts or skips the steps that no longer wait for anything.

        Returns:
            The steps to run.
        """
        chosen = []
        for progress in self._all.values():
            before = [self._all[key].state for key in progress.step.upstream]
            if progress.state != "waiting" or any(state in ("waiting", "running") for state in before):
                continue
            if progress.step.always or (all(state == "done" for state in before) and self._met(progress.step)):
                progress.state, progress.began = "running", time.monotonic()
                chosen.append(progress)
            else:
                progress.state = "skipped"
        return chosen

    def _met(self, step: Step) -> bool:
        return step.condition is None or self._value(step.condition[0]) == step.condition[1]

    def _value(self, source: Source) -> Any:
        return source.value if source.step is None else self._all[source.step].outputs[source.output]

    def _work(self, progress: _Progress) -> None:
        try:
            progress.error = self._attempts(progress)
            progress.state = "failed" if progress.error else "done"
        except Exception as error:
            progress.error, progress.state = f"{type(error).__name__}: {error}", "failed"
        progress.ended = time.monotonic()

    def _attempts(self, progress: _Progress) -> str | None:
        """Runs a command until it succeeds, fails for good, or runs out of attempts; returns its error or None."""
        pause = progress.step.backoff_seconds
        for attempt in range(progress.step.retries + 1):
            code = self._attempt(progress, attempt)
            if code == 0:
                return (
                    None
                    if set(progress.step.parameters) <= set(progress.outputs)
                    else "its output parameters are missing"
                )
            again = code in EXIT_AGAIN or code < 0
            if not again or attempt == progress.step.retries or self._stopping.wait(pause):
                break
            pause *= progress.step.backoff_factor
        lines = [line for line in self._log(progress.step).read_text(errors="replace").splitlines() if line.strip()]
        return "\n".join([f"exit code {code}; {self._log(progress.step)}", *lines[-LAST_LINES:]])

    def _attempt(self, progress: _Progress, attempt: int) -> int:
        executor_input = self._executor_input(progress.step)
        output_file = Path(executor_input["outputs"]["outputFile"])
        output_file.parent.mkdir(parents=True, exist_ok=True)
        words = self._here(filled_command(progress.step, executor_input))
        code = warm.start(words, {**os.environ, ATTEMPT_VARIABLE: str(attempt)}, self._log(progress.step)).wait()
        if code == 0 and output_file.exists():
            progress.outputs = json.loads(output_file.read_text(encoding="utf-8")).get("parameterValues", {})
        return code

    def _here(self, words: list[str]) -> list[str]:
        """The command with the local environment in place of the cluster's."""
        position = len(words) - 1 - words[::-1].index("--env")
        return [*words[: position + 1], self._environment_name, *words[position + 2 :]]

    def _log(self, step: Step) -> Path:
        return self._folder / f"{step.key}.log"

    def _executor_input(self, step: Step) -> dict[str, Any]:
        """The ExecutorInput as Kubeflow's launcher would pass it, but with files in our folder for its object store."""
        place = self._folder / step.key
        artifacts = {
            name: {
                "artifacts": [
                    {"name": name, "uri": f"minio://rehearsal/{step.key}/{name}", "customPath": str(place / name)}
                ]
            }
            for name in step.artifacts
        }
        awaited = {name: {"outputFile": str(place / "parameters" / name)} for name in step.parameters}
        outputs = {"artifacts": artifacts, "parameters": awaited, "outputFile": str(place / "output.json")}
        return {
            "inputs": {"parameterValues": {name: self._value(source) for name, source in step.inputs.items()}},
            "outputs": outputs,
        }
