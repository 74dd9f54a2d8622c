"""A schema that its data violate, and the output of `millrace schema`."""

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


def printed(env: str, *words: str, code: int = 0) -> str:
    """The command's output; it must exit with `code`."""
    result = CliRunner().invoke(cli.main, ["schema", *words, "--env", env])
    assert result.exit_code == code, result.output
    return result.output


def values(env: str) -> Any:
    """The proposals, as JSON."""
    return json.loads(printed(env, "propose", "small", "--json"))


def seen(env: str) -> str:
    """The digest of the schema that was shown."""
    return str(values(env)["seen"])
