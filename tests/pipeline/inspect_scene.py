"""What the commands that inspect say."""

from __future__ import annotations

import json
from typing import Any

from click.testing import CliRunner

from pipeline import cli


def said(env: str, *words: str, code: int = 0) -> str:
    """What a command prints; it ends with `code`."""
    result = CliRunner().invoke(cli.main, [*words, "--env", env])
    assert result.exit_code == code, result.output
    return result.output


def values(env: str, *words: str) -> Any:
    """What it prints with `--json`."""
    return json.loads(said(env, *words, "--json"))
