"""A run is killed at any moment, and run again: what is there is what a run in peace leaves. `make chaos` does more."""

from __future__ import annotations

from pathlib import Path

from chaos import Chaos


def test_a_killed_run_goes_on_to_the_state_of_a_quiet_one(tmp_path: Path) -> None:
    chaos = Chaos(tmp_path)
    assert chaos.quiet.digests
    for moment in (
        "worker open artifacts/serving/taxi/.incoming-X/assets.extra/card.json #1",
        "front os.rename artifacts/logs/taxi-N-N/.report.html.X #1",
    ):
        assert moment in chaos.quiet.moments
        chaos.kill(moment)
    assert chaos.failures == []
