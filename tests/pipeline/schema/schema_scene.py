"""A schema with what its data ask of it, and what `millrace schema` says."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from click.testing import CliRunner

from pipeline import cli

SCHEMA = """\
# Reviewed.
feature {
  name: "fare"  # dollars
  type: FLOAT
  float_domain { min: 0.0 max: 700.0 }
  presence { min_fraction: 1.0 min_count: 1 }
}
feature { name: "tips" type: INT }
feature {
  name: "company"
  type: BYTES
  domain: "companies"
}
string_domain { name: "companies" value: "Blue" value: "Red" }  # in the order of the alphabet
"""
FARES = [1.0] * 8 + [812.5, 900.0]
TIPS = [0.5] * 10
COMPANIES = ["Blue"] * 6 + ["Cab"] * 3 + ["Ace"]


Ran = Callable[..., None]


def said(env: str, *words: str, code: int = 0) -> str:
    """What the command prints; it ends with `code`."""
    result = CliRunner().invoke(cli.main, ["schema", *words, "--env", env])
    assert result.exit_code == code, result.output
    return result.output


def values(env: str) -> Any:
    """What `propose` finds."""
    return json.loads(said(env, "propose", "small", "--json"))


def seen(env: str) -> str:
    """The digest of what was shown."""
    return str(values(env)["seen"])
