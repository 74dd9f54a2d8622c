"""What nodes have drawn, on a run's page."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

import pytest
from report_scene import Page, Scene

from contracts import plots

Report = Callable[..., Page]

SVG = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


@pytest.fixture
def drawn(scene: Scene, tmp_path: Path) -> Path:
    """The folder of the plot that a node of the recipe's own has drawn in the run `small-1`."""
    folder = tmp_path / "plot"
    folder.mkdir()
    (folder / "fares_by_hour.svg").write_text(SVG)
    (folder / "a<b>.png").write_bytes(b"png")
    (folder / "numbers.json").write_text("{}")
    scene.run("small-1")
    scene.builder.node("FarePlot", outputs={"plot": scene.builder.artifact(plots.PLOT_TYPE, folder)})
    return folder


def test_images_are_shown_by_name_and_within_the_page(drawn: Path, report: Report) -> None:
    page = report("small-1")
    assert page.sections[page.sections.index("plots") + 1] == "training"
    png, svg = page.soup.select("#plots img")
    assert (png["alt"], svg["alt"]) == ("a<b> (FarePlot)", "fares by hour (FarePlot)")
    kind, _, content = svg["src"].partition(";base64,")
    # A browser runs no script of an image.
    assert (kind, base64.b64decode(content).decode()) == ("data:image/svg+xml", SVG)
    assert png["src"].startswith("data:image/png;base64,")
    assert "alert" not in page.text("plots")


def test_a_run_without_any_has_no_such_section(scene: Scene, report: Report) -> None:
    scene.run("small-1")
    assert "plots" not in report("small-1").sections


def test_a_large_file_is_named_and_not_shown(drawn: Path, report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plots, "MOST_BYTES", 10)
    page = report("small-1")
    assert len(page.soup.select("#plots img")) == 1
    assert f"{drawn}/fares_by_hour.svg has {len(SVG)} bytes, more than the 10 that a page shows." in page.text("plots")


def test_what_is_gone_is_named(drawn: Path, report: Report) -> None:
    for path in drawn.iterdir():
        path.unlink()
    drawn.rmdir()
    assert "plot is not there (any more)" in report("small-1").text("plots")
