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

SECONDS_BETWEEN_LOOKS = 0.5
LAST_LINES = 5


@dataclass
class _Progress:
    """How far a step is."""

    step: Step
    state: str = "waiting"
    began: float = 0.0
    ended: float = 0.0
    error: str | None = None
    outputs: dict[str, Any] = field(default_factory=dict)


class Rehearsal:
    """One rehearsal.

    Args:
        steps: What the spec says.
        names: What the user calls each step, by key.
        folder: Where the launcher's files and the logs go.
        environment_name: The environment that the commands get in place of the cluster's.
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
        """Runs the steps to their end.

        Returns:
            How each ended.

        Raises:
            KeyboardInterrupt: The user stopped it; what ran was stopped with it.
        """
        with view, ThreadPoolExecutor(self._at_once) as pool:
            going: set[Future[None]] = set()
            try:
                while going or self._waiting():
                    going |= {pool.submit(self._work, progress) for progress in self._begin()}
                    view.show(self.states())
                    going -= wait(going, SECONDS_BETWEEN_LOOKS, FIRST_COMPLETED).done if going else set()
            except KeyboardInterrupt:
                self._stopping.set()
                raise
            view.show(self.states())
        return self.states()

    def states(self) -> list[TaskState]:
        """How far each step is; those that a condition left out are not among them."""
        now = time.monotonic()
        made = []
        for key, name in self._names.items():
            if key not in self._all or (self._all[key].state == "skipped" and self._all[key].step.condition):
                continue
            one = self._all[key]
            seconds = (one.ended or now) - one.began if one.began else None
            made.append(TaskState(name, one.state, seconds, one.error))
        return made

    def _waiting(self) -> bool:
        return any(one.state == "waiting" for one in self._all.values())

    def _begin(self) -> list[_Progress]:
        """Decides on the steps that wait for nothing any more.

        Returns:
            Those that are to be run.
        """
        chosen = []
        for one in self._all.values():
            before = [self._all[key].state for key in one.step.upstream]
            if one.state != "waiting" or any(state in ("waiting", "running") for state in before):
                continue
            if one.step.whatever or (all(state == "done" for state in before) and self._met(one.step)):
                one.state, one.began = "running", time.monotonic()
                chosen.append(one)
            else:
                one.state = "skipped"
        return chosen

    def _met(self, step: Step) -> bool:
        return step.condition is None or self._value(step.condition[0]) == step.condition[1]

    def _value(self, source: Source) -> Any:
        return source.value if source.step is None else self._all[source.step].outputs[source.output]

    def _work(self, one: _Progress) -> None:
        try:
            one.error = self._attempts(one)
            one.state = "failed" if one.error else "done"
        except Exception as error:
            one.error, one.state = f"{type(error).__name__}: {error}", "failed"
        one.ended = time.monotonic()

    def _attempts(self, one: _Progress) -> str | None:
        """Runs a step's command until it succeeds, cannot, or has had all its attempts; returns what was wrong."""
        pause = one.step.backoff_seconds
        for attempt in range(one.step.retries + 1):
            code = self._attempt(one, attempt)
            if code == 0:
                return None if set(one.step.parameters) <= set(one.outputs) else "its output parameters are missing"
            again = code in EXIT_AGAIN or code < 0
            if not again or attempt == one.step.retries or self._stopping.wait(pause):
                break
            pause *= one.step.backoff_factor
        lines = [line for line in self._log(one.step).read_text(errors="replace").splitlines() if line.strip()]
        return "\n".join([f"exit code {code}; {self._log(one.step)}", *lines[-LAST_LINES:]])

    def _attempt(self, one: _Progress, attempt: int) -> int:
        given = self._executor_input(one.step)
        output_file = Path(given["outputs"]["outputFile"])
        output_file.parent.mkdir(parents=True, exist_ok=True)
        words = self._here(filled_command(one.step, given))
        code = warm.start(words, {**os.environ, ATTEMPT_VARIABLE: str(attempt)}, self._log(one.step)).wait()
        if code == 0 and output_file.exists():
            one.outputs = json.loads(output_file.read_text(encoding="utf-8")).get("parameterValues", {})
        return code

    def _here(self, words: list[str]) -> list[str]:
        """The command with the environment of this machine in place of the cluster's."""
        position = len(words) - 1 - words[::-1].index("--env")
        return [*words[: position + 1], self._environment_name, *words[position + 2 :]]

    def _log(self, step: Step) -> Path:
        return self._folder / f"{step.key}.log"

    def _executor_input(self, step: Step) -> dict[str, Any]:
        """What Kubeflow's launcher would give, with files below our folder for what lies in its object store."""
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
