"""Runs the commands that inspect, and returns their output."""

from __future__ import annotations

import json
from typing import Any

from click.testing import CliRunner

from pipeline import cli


def printed(env: str, *words: str, code: int = 0) -> str:
    """A command's output; it must exit with `code`."""
    result = CliRunner().invoke(cli.main, [*words, "--env", env])
    assert result.exit_code == code, result.output
    return result.output


def values(env: str, *words: str) -> Any:
    """A command's `--json` output, parsed."""
    return json.loads(printed(env, *words, "--json"))
