"""Packages whose modules are wanted one by one, and not everything that their `__init__` imports."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any


class _Deferred(ModuleType):
    """A package whose `__init__` is run when a name is asked for that has no other home."""

    def __init__(self, name: str, homes: Mapping[str, str]) -> None:
        super().__init__(name)
        self.__homes = homes

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if name in self.__homes:
            return getattr(importlib.import_module(self.__homes[name]), name)
        self.__class__ = ModuleType  # type: ignore[assignment]
        if self.__spec__ is not None and self.__spec__.loader is not None:
            self.__spec__.loader.exec_module(self)
        return getattr(self, name)


def defer(name: str, homes: Mapping[str, str] | None = None) -> None:
    """Makes a package's modules importable without running its `__init__` first.

    `import package.module` then costs that module alone; `from package import name` still finds what `__init__` gives.

    Args:
        name: The package's; nothing happens where it is imported already.
        homes: Names that `__init__` gives, and the modules that they come from: these too cost that module alone.

    Raises:
        ModuleNotFoundError: There is no such package.
    """
    if name in sys.modules:
        return
    spec = importlib.util.find_spec(name)
    if spec is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    package = _Deferred(name, homes or {})
    package.__spec__ = spec
    package.__file__ = spec.origin
    package.__path__ = list(spec.submodule_search_locations or [])
    sys.modules[name] = package
