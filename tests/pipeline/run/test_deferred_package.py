"""A package's modules are imported without its `__init__`, which runs when something in it is needed."""

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from pipeline.run.lean_imports import defer_package


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    folder = tmp_path / "laden"
    folder.mkdir()
    (folder / "__init__.py").write_text("from laden.heavy import weight\nfrom laden import light\n")
    (folder / "heavy.py").write_text("weight = 12\n")
    (folder / "light.py").write_text("from laden import __name__ as above\nweight = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "laden"
    for name in [name for name in sys.modules if name.split(".")[0] == "laden"]:
        del sys.modules[name]


def test_a_module_is_imported_alone(package: str) -> None:
    defer_package(package)

    light = import_module("laden.light")

    assert (light.weight, light.above) == (1, "laden")
    assert "laden.heavy" not in sys.modules


def test_what_init_defines_is_there_when_asked_for(package: str) -> None:
    defer_package(package)

    from laden import weight

    assert weight == 12
    assert "laden.heavy" in sys.modules
    assert type(sys.modules["laden"]).__name__ == "module"


def test_a_name_comes_from_its_given_home(package: str) -> None:
    defer_package(package, {"weight": "laden.light"})

    from laden import weight

    assert weight == 1
    assert "laden.heavy" not in sys.modules


def test_a_name_that_is_nowhere_is_an_import_error(package: str) -> None:
    defer_package(package)

    with pytest.raises(ImportError, match="cannot import name 'nothing' from 'laden'"):
        from laden import nothing  # noqa: F401


def test_a_package_that_was_imported_stays_as_it_is(package: str) -> None:
    before = import_module("laden")

    defer_package(package)

    assert sys.modules["laden"] is before


def test_a_package_that_is_not_there() -> None:
    with pytest.raises(ModuleNotFoundError, match="No module named 'nowhere_at_all'"):
        defer_package("nowhere_at_all")
