"""The source files of the project that a module imports, directly or not, and a digest of what each of them does."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable
from pathlib import Path

from components.memo import FileMemo
from contracts.errors import SettingsError
from pipeline.plan import project

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
RECIPES = "recipes"
OUR_PACKAGES = ("contracts", "components", RECIPES, "serving")


class SourceCode:
    """The project's source files, each read once.

    Args:
        memo_path: Where digests are cached between runs, see `FileMemo`; None: not cached.
    """

    def __init__(self, memo_path: Path | None = None) -> None:
        here = Path(__file__).stat()
        # Another version of this file may compute other digests.
        self._memo = FileMemo(memo_path, origin=f"{here.st_size}|{here.st_mtime_ns}")
        self._read: dict[Path, tuple[str, list[str]]] = {}
        self._files: dict[str, list[Path]] = {}

    def digests(self, *modules: str) -> dict[str, str]:
        """A digest for each source file that `modules` import, by its path relative to its package's folder.

        Raises:
            SettingsError: A file has a syntax error.
        """
        return {str(_stable_path(path)): self._file(path)[0] for path in self.closure(modules)}

    def closure(self, modules: Iterable[str]) -> list[Path]:
        """The project's source files that `modules` import, directly or not, themselves included, sorted."""
        reached: set[Path] = set()
        waiting = [path for module in modules for path in self._files_of(module)]
        while waiting:
            path = waiting.pop()
            if path not in reached:
                reached.add(path)
                waiting.extend(file for name in self._file(path)[1] for file in self._files_of(name))
        return sorted(reached)

    def save(self) -> None:
        """Saves the digests for the next run."""
        self._memo.save()

    def _files_of(self, module: str) -> list[Path]:
        if module not in self._files:
            self._files[module] = _module_files(module)
        return self._files[module]

    def _file(self, path: Path) -> tuple[str, list[str]]:
        if path not in self._read:
            digest, names = self._memo.get_or_compute(path, _read_file)
            self._read[path] = (digest, names)
        return self._read[path]


def source_digest(source: str) -> str:
    """A digest of what Python source does, without comments, layout and docstrings."""
    return _digest_and_imports(ast.parse(source))[0]


def _stable_path(path: Path) -> Path:
    """A source file's path relative to the folder that holds its package, the project's or Millrace's."""
    recipes = path.is_relative_to(project.recipes_folder())
    return path.relative_to(project.root() if recipes else project.ENGINE)


def _read_file(path: Path) -> tuple[str, list[str]]:
    """The digest of a source file, and the dotted names that it may import from the project."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except SyntaxError as error:
        raise SettingsError(f"{path}:{error.lineno}: {error.msg}.", "Mend the syntax on that line.") from error
    digest, imports = _digest_and_imports(tree)
    package = _stable_path(path).parent.as_posix().replace("/", ".")
    names = {name for statement in imports for name in _imported_names(statement, package)}
    return digest, sorted(name for name in names if name.partition(".")[0] in OUR_PACKAGES)


def _digest_and_imports(tree: ast.Module) -> tuple[str, list[ast.Import | ast.ImportFrom]]:
    """The digest of a module, and its import statements; removes the docstrings from `tree`."""
    imports: list[ast.Import | ast.ImportFrom] = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            imports.append(node)
        elif isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False):
            node.body = node.body[1:]
    return hashlib.sha256(_dump(tree).encode()).hexdigest()[:16], imports


def _dump(value: object) -> str:
    """A syntax tree as text, the same whichever Python parsed it: newer ones have more fields, which are empty."""
    if isinstance(value, ast.AST):
        fields = ((name, field) for name, field in ast.iter_fields(value) if field is not None and field != [])
        return f"{type(value).__name__}({','.join(f'{name}={_dump(field)}' for name, field in fields)})"
    return f"[{','.join(map(_dump, value))}]" if isinstance(value, list) else repr(value)


def _imported_names(statement: ast.Import | ast.ImportFrom, package: str) -> list[str]:
    """The dotted names that a statement in `package` may import, modules or not."""
    if isinstance(statement, ast.Import):
        return [alias.name for alias in statement.names]
    parents = package.split(".")
    base = ".".join(parents[: len(parents) - statement.level + 1]) if statement.level else ""
    origin = ".".join(part for part in (base, statement.module) if part)
    return [origin, *(f"{origin}.{alias.name}" for alias in statement.names)]


def _module_files(module: str) -> list[Path]:
    """The file of one of our modules and the `__init__.py` of each package above it; none for other modules."""
    parts = module.split(".")
    if parts[0] not in OUR_PACKAGES:
        return []
    folder = project.root() if parts[0] == RECIPES else project.ENGINE
    files: list[Path] = []
    for depth in range(1, len(parts) + 1):
        stem = folder.joinpath(*parts[:depth])
        files.extend(path for path in (stem / "__init__.py", stem.with_suffix(".py")) if path.is_file())
    return files
