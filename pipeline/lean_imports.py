"""TFX, TensorFlow and Beam imported in two thirds of the time: without what a pipeline of ours never calls."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pipeline import deferred_package

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
        deferred_package.defer(name)
    # TFDV's and TFMA's displays for notebooks ask whether they are in one, and no more.
    deferred_package.defer("IPython", {"get_ipython": "IPython.core.getipython"})
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
