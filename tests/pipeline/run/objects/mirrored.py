"""Artifacts in the cache of an object store, as nodes make them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pipeline.run.objects.mirror import Mirror

MADE = {"Split-train/data.gz": b"train", "Split-eval/data.gz": b"evaluation", "notes.json": b"{}"}


def make(mirror: Mirror, contents: Mapping[str, bytes] = MADE, number: int = 1, output: str = "examples") -> str:
    """Makes an artifact in the mirror's cache; returns its URI."""
    uri = f"{mirror.root}/small/ExampleGen/{output}/{number}"
    mirror.path_of(uri).mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        path = mirror.path_of(uri) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return uri


def contents(folder: Path) -> dict[str, bytes]:
    """The contents of all files in a folder, by name."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
