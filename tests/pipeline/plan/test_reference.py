"""docs/recipes.md has every setting of a recipe and every metric."""

from __future__ import annotations

from pathlib import Path

from pipeline.plan import reference

PROJECT = Path(__file__).resolve().parents[3]


def test_the_page_is_current() -> None:
    text = (PROJECT / reference.PAGE).read_text(encoding="utf-8")
    assert text == reference.page(text), "run .venv/bin/python -m pipeline.plan.reference"


def test_a_setting_has_its_type_default_and_meaning() -> None:
    lines = reference.page("").splitlines()
    early = lines.index("### `trainer.callbacks.early_stopping`")
    assert lines[early + 2] == "Ends the training when a metric no longer improves."
    assert "| `patience` | whole number ≥ 0 | `3` | Epochs without improvement. |" in lines[early:]
    assert "| `description` | text | **needed** | One sentence: what is predicted, from what. |" in lines
    assert "### `evaluator.metrics.NAME`" in lines
    assert "| `RootMeanSquaredError` | numbers, two classes | lower | the root of the mean squared error |" in lines


def test_every_setting_has_a_meaning() -> None:
    rows = [line for line in reference.page("").splitlines() if line.startswith("| `")]
    assert [row for row in rows if row.endswith("|  |")] == []
    assert not any("typing." in row or "<class" in row for row in rows)
