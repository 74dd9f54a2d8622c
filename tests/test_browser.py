"""How the tests find their browser, and their message if there is none."""

from __future__ import annotations

from pathlib import Path

import browser
import pytest


@pytest.fixture(autouse=True)
def nothing_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(browser.VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))


def program(path: Path) -> Path:
    path.touch(mode=0o755)
    return path


def never() -> str:
    raise AssertionError("Playwright was asked")


def test_the_variable_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program(tmp_path / "chromium")
    named = program(tmp_path / "mine")
    monkeypatch.setenv(browser.VARIABLE, str(named))
    assert browser.find(never) == named


def test_the_path_comes_before_playwrights_own(tmp_path: Path) -> None:
    path = program(tmp_path / "chromium-browser")
    assert browser.find(never) == path


def test_playwrights_own_is_the_last(tmp_path: Path) -> None:
    own = program(tmp_path / "chrome")
    assert browser.find(lambda: str(own)) == own


def test_a_variable_that_leads_nowhere_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(browser.VARIABLE, "/nowhere/chromium")
    with pytest.raises(browser.NoBrowserError, match="MILLRACE_CHROMIUM=/nowhere/chromium: there is no such file"):
        browser.find(never)


def test_where_there_is_none_make_browser_is_named() -> None:
    with pytest.raises(browser.NoBrowserError, match=r"found no Chromium: .* Run `make browser` to install one"):
        browser.find(lambda: "/nowhere/chrome")
