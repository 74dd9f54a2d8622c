"""What a node's result depends on besides its input artifacts: its settings, code, packages and outside files.

The fingerprint becomes an execution property of the node, and so part of TFX's cache key: a node runs again exactly
when its input artifacts or its fingerprint change. It is stored in full, not as a hash, so that `millrace why` can name
what changed. Computing it imports neither TensorFlow nor Beam.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from components.example_gen import files
from components.example_gen.formats import IMAGE_FORMATS
from components.memo import content_digests
from contracts.fingerprints import PROPERTY, Fingerprint
from pipeline.plan import nodes, project
from pipeline.plan.environment import Environment
from pipeline.plan.recipe import Recipe
from pipeline.plan.source_code import SourceCode, source_digest
from pipeline.plan.table import Node

__all__ = ["PROPERTY", "Fingerprint", "fingerprints"]

TABLE_FILES = tuple(Path(__file__).with_name(name) for name in ("table.py", "dag.py"))
"""The files that connect the components into a pipeline."""


def fingerprints(recipe: Recipe, environment: Environment, inputs: files.InputFiles) -> dict[str, Fingerprint]:
    """The fingerprints of a recipe's nodes, by node name, in the order of the data flow."""
    memos = environment.state_root / recipe.name
    sources = SourceCode(memos / "source_digests.json")
    values = flattened(dict(recipe.settings)) | {
        "data.span": inputs.span,
        "serving_root": str(environment.serving_root),
    }
    by_node = {
        name: Fingerprint(
            settings={key: value for key, value in values.items() if _is_below(key, node.settings)},
            code=_code(node, recipe, sources),
            packages=_versions(node, inputs),
            files=_files(node, recipe, inputs, memos / "input_digests.json"),
        )
        for name, node in nodes.table(recipe).items()
        if not node.looks_up
    }
    sources.save()
    return by_node


def _is_below(key: str, settings: Sequence[str]) -> bool:
    return any(key == setting or key.startswith(f"{setting}.") for setting in settings)


def _code(node: Node, recipe: Recipe, sources: SourceCode) -> dict[str, str]:
    module = node.component.partition(":")[0]
    own = sources.digests(module, *(name.format(recipe=recipe.name) for name in node.code))
    if not node.depends_on_table:
        return own
    return own | {f"pipeline/plan/{path.name}": source_digest(path.read_text(encoding="utf-8")) for path in TABLE_FILES}


def _versions(node: Node, inputs: files.InputFiles) -> dict[str, str]:
    has_images = inputs.format in IMAGE_FORMATS or inputs.reading.image_columns
    image_packages = node.image_packages if has_images else ()
    return {name: _version(name) for name in (*node.packages, *image_packages)}


def _files(node: Node, recipe: Recipe, inputs: files.InputFiles, memo: Path) -> dict[str, str]:
    if node.files == "data":
        return _input_digests(inputs, memo)
    schema = [recipe.curated_schema] if node.files == "schema" and recipe.curated_schema else []
    return {project.relative_path(path): digest for path, digest in content_digests(schema).items()}


def _input_digests(inputs: files.InputFiles, memo: Path) -> dict[str, str]:
    digests = content_digests(_all_files(inputs), memo)
    tables = [] if inputs.format == "images" else inputs.files
    # One digest for each folder: the metadata store is no place for 50,000 lines, one for each image.
    folders: dict[Path, Any] = {}
    for path, digest in digests.items():
        if path in tables:
            continue
        lines = folders.setdefault(path.parent, hashlib.sha256())
        lines.update(digest.encode() + b"  " + os.fsencode(path.name) + b"\n")
    by_folder = {project.relative_path(folder): digest.hexdigest() for folder, digest in folders.items()}
    return {project.relative_path(path): digests[path] for path in tables} | by_folder


def _all_files(inputs: files.InputFiles) -> Sequence[Path]:
    if not inputs.reading.image_columns:
        return inputs.files
    # Imported here, since readers of tables import pyarrow.
    from components.example_gen.sources import all_files

    return all_files(inputs)


@cache
def _version(distribution: str) -> str:
    return importlib.metadata.version(distribution)


def flattened(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Settings by dotted key, as plain data; an empty mapping stays as it is."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
        if isinstance(plain, Mapping) and plain:
            flat |= flattened(plain, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = (
                list(plain) if isinstance(plain, Sequence) and not isinstance(plain, str) else plain
            )
    return flat
