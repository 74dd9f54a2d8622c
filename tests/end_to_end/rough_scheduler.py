"""A scheduler as rough as they come: `python rough_scheduler.py ENVIRONMENT SEED`, in a project's folder.

Runs the nodes of two runs of the taxi recipe at the same time, each node in a process. It kills many of the processes
at random moments, and restarts what did not succeed and may be retried. Prints how each process ended as JSON.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pipeline.plan import nodes, recipe
from pipeline.run import warm

KILLS = 12
MOST_ATTEMPTS = 25
AGAIN = {75, -signal.SIGKILL}
STEPS = {"one": 100, "two": 60}
"""Run -> its training steps."""

LONG = {"Transform": 5.0, "Trainer": 3.0, "Evaluator": 4.0}
LONG_OTHERWISE = 0.6
"""About how many seconds a node takes."""


class Scheduler:
    """Runs the nodes of runs and records how their processes ended."""

    def __init__(self, environment: str, seed: int) -> None:
        self._environment = environment
        self._chance = random.Random(seed)  # noqa: S311 - no secret
        self._order = nodes.names(recipe.load("taxi", ()))
        self._kills_left = KILLS
        self._nodes_left = len(STEPS) * len(self._order)
        self._lock = threading.Lock()
        self.ended: dict[str, list[int]] = {}

    def run(self, name: str) -> None:
        """Runs the nodes of a run, one after the other."""
        for node in self._order:
            codes = self.ended.setdefault(f"{name} {node}", [])
            while not codes or (codes[-1] in AGAIN and len(codes) < MOST_ATTEMPTS):
                codes.append(self._attempt(name, node))
            if codes[-1]:
                return
            with self._lock:
                self._nodes_left -= 1

    def _attempt(self, name: str, node: str) -> int:
        command = ["millrace", "node", "run", "taxi", node, "--run", name, "--env", self._environment]
        command += ["--set", f"trainer.train_steps={STEPS[name]}"]
        doomed = self._is_doomed()
        process = warm.start(command, os.environ, Path(f"{name}-{node}.out"))
        if not doomed:
            return process.wait()
        seconds = self._chance.uniform(0.0, LONG.get(node, LONG_OTHERWISE))
        timer = threading.Timer(seconds, process.send_signal, [signal.SIGKILL])
        timer.start()
        code = process.wait()
        timer.cancel()
        if code != -signal.SIGKILL:
            with self._lock:
                self._kills_left += 1
        return code

    def _is_doomed(self) -> bool:
        """Spreads the kills over the remaining work."""
        with self._lock:
            doomed = self._chance.random() < self._kills_left / self._nodes_left
            self._kills_left -= doomed
        return doomed


def main() -> None:
    """Runs both."""
    scheduler = Scheduler(sys.argv[1], int(sys.argv[2]))
    warm.prepare()
    with ThreadPoolExecutor(len(STEPS)) as pool:
        list(pool.map(scheduler.run, STEPS))
    print(json.dumps(scheduler.ended))


if __name__ == "__main__":
    main()
