"""Imports TFX, TensorFlow and Beam in two thirds of the time, by skipping what our pipelines never call."""

from __future__ import annotations

import gc
import importlib
import importlib.util
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any


def defer_package(name: str, homes: Mapping[str, str] | None = None) -> None:
    """Makes a package's modules importable without running its `__init__` first.

    `import package.module` then costs only that module. `from package import name` still finds what `__init__` defines:
    asked for a name that it lacks, the package runs its `__init__` (PEP 562), and is like any other from then on.

    Args:
        name: The package's name; nothing happens if it has been imported already.
        homes: Names that `__init__` defines, and the modules they come from: these too cost only that module.

    Raises:
        ModuleNotFoundError: There is no such package.
    """
    if name in sys.modules:
        return
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    package, loader = importlib.util.module_from_spec(spec), spec.loader

    def load(attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(f"module {name!r} has no attribute {attribute!r}")
        if homes and attribute in homes:
            return getattr(importlib.import_module(homes[attribute]), attribute)
        del package.__dict__["__getattr__"]
        loader.exec_module(package)
        return getattr(package, attribute)

    package.__dict__["__getattr__"] = load
    sys.modules[name] = package


ABSENT = ("kubernetes_validate",)
"""Optional dependencies that importers can do without: for Kubernetes' client, a manifest validator (one second)."""

DEFERRED = (
    # All of TFX's components, with everything each needs.
    "tfx.components",
    # Beam's transforms for them.
    "google.cloud.bigquery",
    "google.cloud.bigquery_storage_v1",
    "google.cloud.pubsub",
)
"""Packages that are imported needlessly; they stay available to a recipe that does use them."""


@contextmanager
def lean() -> Iterator[None]:
    """Makes imports of TFX, TensorFlow and Beam fast within the block."""
    for name in ABSENT:
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]
    for name in DEFERRED:
        defer_package(name)
    # TFDV's and TFMA's notebook displays only ask whether they are in a notebook.
    defer_package("IPython", {"get_ipython": "IPython.core.getipython"})
    with without_garbage_collection():
        yield


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Switches off garbage collection during imports: it would take a third of the time and find nothing."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
