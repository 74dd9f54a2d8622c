"""Kills fresh runs of the taxi recipe at many moments, runs them again, and compares what is there with a quiet run.

`make chaos` does it at fifty moments, then with a disk that is too small, and with a database server that is killed;
test_kill_anywhere.py does a short part of it.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import postgres
import yaml
from disturbed import Disturbed, Quiet, finish

SECONDS_AWAY = 3
DISK_SIZES = (256, 768, 1280, 1792, 2304, 2816)
"""In KiB; a quiet run leaves about 4,000."""

DISK_FULL = ("No space left on device", "database or disk is full")
"""What the system, and what SQLite says."""

RANDOM_SHARE = 0.3
KINDS = (
    "serving/taxi",
    "_digests.json",
    "report.html",
    "before PutExecution #",
    "after PutExecution #",
    ".Trainer",
)
"""Of moments with each of these in their names at least one is chosen."""


def chosen_moments(quiet: Quiet, number: int, seed: int) -> list[str | float]:
    """Moments spread over a run: random times, and names of all kinds of writing.

    Args:
        quiet: The run.
        number: How many.
        seed: Of the choice.
    """
    chance = random.Random(seed)  # noqa: S311 - no secret
    times: list[str | float] = [round(chance.uniform(0, quiet.seconds), 2) for _ in range(round(number * RANDOM_SHARE))]
    named = {chance.choice([name for name in quiet.moments if kind in name]) for kind in KINDS}
    others = sorted(set(quiet.moments) - named)
    # Of kinds of moments, or most would be training's progress.
    chance.shuffle(others)
    first_of_kind = list({name.partition("#")[0]: name for name in others}.values())
    chance.shuffle(first_of_kind)
    return [*times, *sorted(named), *first_of_kind][:number]


class Chaos:
    """Disturbs runs, each in a project of its own, and prints a line for each.

    Args:
        folder: Where the projects are put; one that went well is removed.
    """

    def __init__(self, folder: Path) -> None:
        self._folders = (folder / str(number) for number in itertools.count(1))
        self.failures: list[str] = []
        first = self._project()
        self.quiet = first.quiet()

    def kill(self, moment: str | float) -> None:
        """Kills a run at a moment, and runs again."""
        disturbed = self._project()
        code = disturbed.kill_at(moment).code
        name = moment if isinstance(moment, str) else f"after {moment} s"
        if code != -signal.SIGKILL:
            print(f"      the run ended first (exit code {code}): {name}", flush=True)
        self._run_again(disturbed, name)

    def fill_disk(self, size: int) -> None:
        """Runs on a disk of so many KiB, then on a larger one."""
        disturbed = self._project()
        with disk(disturbed.artifacts, size):
            ended = disturbed.run()
            name = f"a disk of {size} KiB"
            if ended.code == 0 or not any(text in ended.errors for text in DISK_FULL):
                self._fail(name, [f"exit code {ended.code}, and it says: {ended.errors}"])
            subprocess.run(["mount", "-o", "remount,size=1g", disturbed.artifacts], check=True)
            self._run_again(disturbed, name)

    def kill_server(self, server: postgres.Server, seconds: float) -> None:
        """Kills the database server after so many seconds of a run, and starts it again a little later."""
        folder = next(self._folders)
        folder.mkdir(parents=True)
        environment = folder / "server.yaml"
        artifacts = folder / "project" / "artifacts"
        roots = {"pipeline_root": "pipelines", "serving_root": "serving", "log_root": "logs"}
        settings = {"metadata_store": {"postgresql": server.new_database().model_dump()}}
        settings |= {root: str(artifacts / name) for root, name in roots.items()}
        environment.write_text(yaml.safe_dump(settings))
        disturbed = Disturbed(folder, environment)
        process = disturbed.start()
        time.sleep(seconds)
        server.kill()
        time.sleep(SECONDS_AWAY)
        server.start()
        ended = finish(process)
        name = f"the server killed after {seconds} s"
        if ended.code:
            print(f"      the run gave up: {ended.errors.splitlines()[0]}", flush=True)
        self._run_again(disturbed, name)

    def _project(self) -> Disturbed:
        folder = next(self._folders)
        folder.mkdir(parents=True)
        return Disturbed(folder)

    def _run_again(self, disturbed: Disturbed, name: str) -> None:
        complete = disturbed.complete()
        ended = disturbed.run()
        if ended.code:
            self._fail(name, [f"run again, it ended with exit code {ended.code}: {ended.errors}"])
        elif wrong := list(disturbed.wrong(self.quiet, complete)):
            self._fail(name, wrong)
        else:
            print(f"  ok  {name}; {len(complete)} nodes had finished", flush=True)

    def _fail(self, name: str, wrong: Sequence[str]) -> None:
        self.failures += [f"{name}: {text}" for text in wrong]
        for text in wrong:
            print(f"WRONG {name}: {text}", flush=True)


@contextmanager
def disk(folder: Path, size: int) -> Iterator[None]:
    """Mounts a file system of so many KiB on a folder; this takes the superuser."""
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}k", "chaos", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


def main() -> int:
    """Runs it all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(2), "big"), help="chosen where not given")
    given = parser.parse_args()
    print(f"--seed {given.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="millrace-chaos-") as folder:
        chaos = Chaos(Path(folder))
        print(
            f"A quiet run took {chaos.quiet.seconds:.0f} s and writes at {len(chaos.quiet.moments)} moments.",
            flush=True,
        )
        for moment in chosen_moments(chaos.quiet, given.kills, given.seed):
            chaos.kill(moment)
        if os.geteuid() == 0:
            for size in DISK_SIZES:
                chaos.fill_disk(size)
        else:
            print("      no disk is filled: only the superuser may mount one", flush=True)
        os.environ[postgres.PASSWORD_ENV] = postgres.PASSWORD
        server = postgres.Server()
        for share in (0.3, 0.5, 0.7, 0.9):
            chaos.kill_server(server, round(share * chaos.quiet.seconds, 1))
        server.remove()
    print(f"{len(chaos.failures)} of them left something else than a quiet run.")
    return 1 if chaos.failures else 0


if __name__ == "__main__":
    sys.exit(main())
