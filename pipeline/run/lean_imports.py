"""TFX, TensorFlow and Beam imported in two thirds of the time: without what a pipeline of ours never calls."""

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

    `import package.module` then costs that module alone; `from package import name` still finds what `__init__` gives:
    asked for a name that it has not, the package runs its `__init__` (PEP 562), and is as any other from then on.

    Args:
        name: The package's; nothing happens where it is imported already.
        homes: Names that `__init__` gives, and the modules that they come from: these too cost that module alone.

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
"""What a package takes if it is there, and does without: Kubernetes' client a validator of manifests (a second)."""

DEFERRED = (
    # Every component that TFX has, with what each needs.
    "tfx.components",
    # Beam's transforms for them.
    "google.cloud.bigquery",
    "google.cloud.bigquery_storage_v1",
    "google.cloud.pubsub",
)
"""What is imported beside what is wanted, and stays there for a recipe that does call it."""


@contextmanager
def lean() -> Iterator[None]:
    """Has TFX, TensorFlow and Beam be imported quickly within."""
    for name in ABSENT:
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]
    for name in DEFERRED:
        defer_package(name)
    # TFDV's and TFMA's displays for notebooks ask whether they are in one, and no more.
    defer_package("IPython", {"get_ipython": "IPython.core.getipython"})
    with uncollected():
        yield


@contextmanager
def uncollected() -> Iterator[None]:
    """Collects no garbage among what is imported within: it would take a third of the time, and find none."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
