"""Which source counts for a fingerprint: code, not comments, and only what is imported."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from contracts.errors import SettingsError
from pipeline.plan import source_code
from pipeline.plan.source_code import SourceCode, source_digest

SOURCE = '''\
"""A module."""
import os


class Thing:
    """A class."""

    def size(self, a, b=2):
        """A method."""
        return a + b  # the sum


async def wait():
    """A coroutine."""
'''


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  # the sum", ""),
        ("a + b", "(a\n            + b)"),
        ("\n\n\n", "\n\n"),
        ('"""A module."""\n', ""),
        ('"""A module."""', "'''Another\n\nstory.'''"),
        ('    """A class."""\n\n', ""),
        ('"""A method."""', '"""What it does."""'),
        ('"""A coroutine."""', '"""Otherwise."""'),
    ],
)
def test_comments_layout_and_docstrings_do_not_count(old: str, new: str) -> None:
    changed = SOURCE.replace(old, new, 1)
    assert changed != SOURCE
    assert source_digest(changed) == source_digest(SOURCE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a + b", "a - b"),
        ("b=2", "b=3"),
        ("size", "length"),
        ("import os", "import sys"),
        ("return a + b", "'not the docstring'\n        return a + b"),
        ("async def wait", "def wait"),
    ],
)
def test_code_counts(old: str, new: str) -> None:
    changed = SOURCE.replace(old, new, 1)
    assert changed != SOURCE
    assert source_digest(changed) != source_digest(SOURCE)


@pytest.fixture
def package(project: Path) -> Path:
    """recipes/small, a package as a recipe may be, with helpers that features.py does not import yet."""
    for path in ("__init__.py", "small/__init__.py", "other/__init__.py"):
        (project / "recipes" / path).touch()
    folder = project / "recipes" / "small"
    (folder / "parts").mkdir()
    for path in ("helper.py", "unused.py", "parts/__init__.py", "parts/one.py"):
        (folder / path).write_text("VALUE = 1\n")
    return folder


def reached(package: Path, source: str) -> set[str]:
    """The files under recipes/ that a features.py with this source imports, relative to the recipe."""
    features = package / "features.py"
    features.write_text(source)
    closure = SourceCode().closure(["recipes.small.features"])
    assert closure == sorted(closure)
    return {str(path.relative_to(package)) for path in closure if path.is_relative_to(package)} - {"features.py"}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("", {"__init__.py"}),
        ("import recipes.small.helper", {"__init__.py", "helper.py"}),
        ("from recipes.small.helper import VALUE", {"__init__.py", "helper.py"}),
        ("from recipes.small import helper as h", {"__init__.py", "helper.py"}),
        ("from . import helper", {"__init__.py", "helper.py"}),
        ("from .helper import VALUE", {"__init__.py", "helper.py"}),
        ("def later():\n    from .parts import one", {"__init__.py", "parts/__init__.py", "parts/one.py"}),
        ("from .parts.one import VALUE", {"__init__.py", "parts/__init__.py", "parts/one.py"}),
        ("from ..small import helper", {"__init__.py", "helper.py"}),
        ("import tensorflow, os.path", {"__init__.py"}),
    ],
)
def test_the_closure_follows_imports(package: Path, source: str, expected: set[str]) -> None:
    assert reached(package, source) == expected


def test_the_closure_follows_imports_of_imports_and_of_packages(package: Path, project: Path) -> None:
    (package / "helper.py").write_text("from components import autograph\n")
    (package / "__init__.py").write_text("from recipes import other\n")
    closure = {str(p.relative_to(project)) for p in _closure(package, "from .helper import VALUE")}
    assert closure == {
        "components/__init__.py",
        "components/autograph.py",
        "recipes/__init__.py",
        "recipes/other/__init__.py",
        "recipes/small/__init__.py",
        "recipes/small/features.py",
        "recipes/small/helper.py",
    }


def test_modules_that_import_each_other_end(package: Path) -> None:
    (package / "helper.py").write_text("from recipes.small import features\n")
    assert reached(package, "from . import helper") == {"__init__.py", "helper.py"}


def test_a_syntax_error_names_file_and_line(package: Path) -> None:
    (package / "helper.py").write_text("VALUE = 1\nVALUE = = 2\n")
    with pytest.raises(SettingsError) as caught:
        reached(package, "from . import helper")
    assert str(caught.value) == f"{package / 'helper.py'}:2: invalid syntax.\nMend the syntax on that line."


def _closure(package: Path, source: str) -> list[Path]:
    (package / "features.py").write_text(source)
    return SourceCode().closure(["recipes.small.features"])


def test_digests_are_cached_between_runs(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (package / "features.py").write_text("from . import helper\n")
    for path in (package.parents[1]).rglob("*.py"):
        os.utime(path, ns=(10**9, 10**9))
    first = SourceCode(tmp_path / "memo.json")
    digests = first.digests("recipes.small.features")
    first.save()
    monkeypatch.setattr(source_code, "_read_file", lambda path: pytest.fail(f"{path} was read"))
    assert SourceCode(tmp_path / "memo.json").digests("recipes.small.features") == digests
    assert "recipes/small/helper.py" in digests


def test_a_digest_is_the_same_on_every_python() -> None:
    source = (
        "@cached\ndef f(a: int, *, b=None) -> str:\n    class C(Base): x = f'{a!r:>{b}} é'\n    return [i for i in b]\n"
    )
    assert source_digest(source) == "04d1325381343949"
