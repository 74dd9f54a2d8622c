"""Packages whose modules are wanted one by one, and not everything that their `__init__` imports."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType
from typing import Any


class _Deferred(ModuleType):
    """A package whose `__init__` is run when a name is asked for that is not one of its imported modules."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        self.__class__ = ModuleType  # type: ignore[assignment]
        if self.__spec__ is not None and self.__spec__.loader is not None:
            self.__spec__.loader.exec_module(self)
        return getattr(self, name)


def defer(name: str) -> None:
    """Makes a package's modules importable without running its `__init__` first.

    `import package.module` then costs that module alone; `from package import name` still finds what `__init__` gives.

    Args:
        name: The package's; nothing happens where it is imported already.

    Raises:
        ModuleNotFoundError: There is no such package.
    """
    if name in sys.modules:
        return
    spec = importlib.util.find_spec(name)
    if spec is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    package = _Deferred(name)
    package.__spec__ = spec
    package.__file__ = spec.origin
    package.__path__ = list(spec.submodule_search_locations or [])
    sys.modules[name] = package
