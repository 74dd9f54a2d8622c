"""`--set KEY=VALUE` replaces values of a recipe.yaml."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.errors import SettingsError
from pipeline.plan import recipe


def mistake(*overrides: str) -> str:
    with pytest.raises(SettingsError) as caught:
        recipe.load("small", overrides)
    return str(caught.value)


def test_values_are_yaml(project: Path) -> None:
    overrides = ["trainer.batch_size=64", "data.splits={train: 3, eval: 1}", "evaluator.slices=[company]", "label=a=b"]
    settings = recipe.load("small", overrides).settings
    assert settings.trainer.batch_size == 64
    assert settings.data.splits == {"train": 3, "eval": 1}
    assert settings.evaluator.slices == [["company"]]
    assert settings.label == "a=b"


def test_a_section_that_the_file_does_not_have_is_made(project: Path) -> None:
    settings = recipe.load("small", ["trainer.params.dropout=0.1", "gate.on_anomaly=warn"]).settings
    assert settings.trainer.params == {"dropout": 0.1}
    assert settings.gate.on_anomaly == "warn"


def test_a_value_can_be_taken_away(project: Path) -> None:
    settings = recipe.load("small", ["trainer.epochs=null", "trainer.train_steps=7"]).settings
    assert (settings.trainer.epochs, settings.trainer.train_steps) == (None, 7)


def test_the_last_of_two_wins(project: Path) -> None:
    assert recipe.load("small", ["trainer.epochs=2", "trainer.epochs=3"]).settings.trainer.epochs == 3


@pytest.mark.parametrize(
    ("override", "message"),
    [
        (
            "trainer.batchsize=64",
            "--set trainer.batchsize=64: unknown key trainer.batchsize. Did you mean trainer.batch_size?",
        ),
        ("batch_size=64", "--set batch_size=64: unknown key batch_size. Did you mean trainer.batch_size?"),
        (
            "trainer.batch_size=x",
            "--set trainer.batch_size=x: trainer.batch_size: input should be a valid integer, "
            "unable to parse string as an integer; received 'x'.",
        ),
        (
            "trainer.batch_size",
            "--set trainer.batch_size: expected KEY=VALUE, received 'trainer.batch_size'.\n"
            "Write for example --set trainer.batch_size=64.",
        ),
        ("=3", "--set =3: expected KEY=VALUE, received '=3'.\nWrite for example --set trainer.batch_size=64."),
        ("label.name=x", "--set label.name=x: label holds no further keys."),
        ("label.name.first=x", "--set label.name.first=x: label holds no further keys."),
        ("label=[", "--set label=[: '[' is not a YAML value.\nQuote it."),
        ("trainer.train_steps=9", None),
    ],
)
def test_a_mistake_names_the_override(project: Path, override: str, message: str | None) -> None:
    both = "give exactly one of train_steps, epochs and phases; received train_steps=9, epochs=1."
    received = mistake(override)
    assert received == message if message else received.endswith(f": trainer: {both}")
