"""What a node's result depends on besides its input artifacts: its settings, code, packages and outside files.

The fingerprint becomes an execution property of the node, and so a part of TFX's cache key: a node runs again exactly
when its input artifacts or its fingerprint changed. It is kept whole, not as one hash, so that `millrace why` can name
what changed. Reading it imports neither TensorFlow nor Beam.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from components.errors import SettingsError
from components.example_gen import files
from components.example_gen.digests import content_digests
from components.example_gen.formats import IMAGE_FORMATS
from pipeline import nodes
from pipeline.environment import Environment
from pipeline.recipe import PROJECT_ROOT, Recipe, project_relative

PROPERTY = "fingerprint"
"""The execution property that holds a node's fingerprint, as JSON."""

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
DAG = Path(__file__).with_name("dag.py")
OUR_PACKAGES = ("components", "recipes", "serving")


@dataclass(frozen=True)
class Fingerprint:
    """Everything besides the input artifacts that decides a node's result.

    Attributes:
      settings: The node's own settings, by dotted key.
      code: A digest for each of the project's source files that the node reaches by imports.
      packages: The versions of the installed packages that do the node's work.
      files: A content digest for each file that the node reads from outside the pipeline; for each folder, where they
        are images.
    """

    settings: dict[str, Any] = field(default_factory=dict)
    code: dict[str, str] = field(default_factory=dict)
    packages: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """A canonical text: equal fingerprints give equal texts."""
        return json.dumps(asdict(self), sort_keys=True)

    @property
    def digest(self) -> str:
        """A short name for it."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:16]

    @classmethod
    def from_json(cls, text: str) -> Fingerprint:
        """The inverse of `to_json`."""
        return cls(**json.loads(text))


def fingerprints(recipe: Recipe, environment: Environment, inputs: files.InputFiles) -> dict[str, Fingerprint]:
    """The fingerprint of every node of a recipe's pipeline, by node name, in the order of the data flow."""
    settings = recipe.settings
    schema_files = [recipe.curated_schema] if recipe.curated_schema else []
    memo = environment.pipeline_root / recipe.name / "input_digests.json"
    pillow = ["pillow"] if inputs.format in IMAGE_FORMATS else []
    # The Evaluator keeps predictions for as many rows as the InfraValidator asks.
    requests = _flat({"infra_validator": settings.infra_validator})
    serving = {"serving_root": str(environment.serving_root)}
    tflite = _tflite(recipe)
    # The Pusher's too: a recipe that asks no longer for a TF Lite model has one node less, and none that changed.
    quantization = {"tflite.quantization": settings.tflite.quantization} if tflite else {}
    return {
        "ExampleGen": Fingerprint(
            settings=_flat({"data": settings.data}) | {"data.span": inputs.span},
            code=_code("components.example_gen.component"),
            packages=_packages("pyarrow", "tfx-bsl", *pillow),
            files=_input_digests(inputs, memo),
        ),
        "StatisticsGen": Fingerprint(
            code=_code("components.statistics_gen"), packages=_packages("tensorflow-data-validation")
        ),
        "SchemaGen": Fingerprint(
            packages=_packages("tensorflow-data-validation"),
            files={project_relative(path): digest for path, digest in content_digests(schema_files).items()},
        ),
        "ExampleValidator": Fingerprint(packages=_packages("tensorflow-data-validation")),
        "DataGate": Fingerprint(
            settings=_flat({"gate": settings.gate}),
            # Nodes know nothing of the chain they are in; the gate, which costs nothing to run again, answers for it.
            code=_code("components.data_gate") | {"pipeline/dag.py": source_digest(DAG.read_text(encoding="utf-8"))},
        ),
        "Transform": Fingerprint(
            settings=_flat({"transform": settings.transform}),
            code=_code("components.transform", recipe.preprocessing_fn.rpartition(".")[0]),
            packages=_packages("tensorflow", "tensorflow-transform"),
        ),
        "Trainer": Fingerprint(
            settings=_flat({"trainer": settings.trainer, "label": settings.label}),
            code=_code("components.trainer.component", "components.trainer.run", recipe.model_module),
            packages=_packages("tensorflow", "tf-keras"),
        ),
        "Evaluator": Fingerprint(
            settings=_flat({"evaluator": settings.evaluator, "label": settings.label}) | requests,
            code=_code("components.evaluation.component"),
            packages=_packages("tensorflow", "tensorflow-model-analysis"),
        ),
        **tflite,
        nodes.INFRA_NODE: Fingerprint(
            settings=requests,
            code=_code("components.infra_validator.component"),
            packages=_packages("tensorflow", "tensorflow-serving-api"),
        ),
        "Pusher": Fingerprint(
            settings=_flat({"pusher": settings.pusher}) | serving | quantization,
            code=_code("components.pusher.component"),
        ),
    }


def _tflite(recipe: Recipe) -> dict[str, Fingerprint]:
    """The TF Lite node's, where the recipe's pipeline has one."""
    settings = recipe.settings
    if nodes.TFLITE_NODE not in nodes.of(recipe):
        return {}
    made = Fingerprint(
        settings=_flat({"tflite": settings.tflite, "label": settings.label}),
        code=_code("components.tflite.component"),
        packages=_packages("tensorflow", "flatbuffers"),
    )
    return {nodes.TFLITE_NODE: made}


def _input_digests(inputs: files.InputFiles, memo: Path) -> dict[str, str]:
    digests = content_digests(inputs.files, memo)
    if inputs.format != "images":
        return {project_relative(path): digest for path, digest in digests.items()}
    # One for each folder: the metadata store is no place for a line about each of 50,000 images.
    folders: dict[Path, Any] = {}
    for path, digest in digests.items():
        lines = folders.setdefault(path.parent, hashlib.sha256())
        lines.update(digest.encode() + b"  " + os.fsencode(path.name) + b"\n")
    return {project_relative(folder): digest.hexdigest() for folder, digest in folders.items()}


def source_digest(source: str) -> str:
    """A digest of what Python source does: comments, layout and docstrings do not count."""
    return _read(ast.parse(source))[0]


def source_closure(modules: Iterable[str]) -> list[Path]:
    """The project's source files that `modules` reach by import statements, themselves included, sorted."""
    found: set[Path] = set()
    waiting = [path for module in modules for path in _module_files(module)]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting.extend(_read_file(path)[1])
    return sorted(found)


def _code(*modules: str) -> dict[str, str]:
    digests = {}
    for path in source_closure(modules):
        digests[str(path.relative_to(PROJECT_ROOT))] = _read_file(path)[0]
    return digests


@cache
def _read_file(path: Path) -> tuple[str, tuple[Path, ...]]:
    """The digest of a source file, and the project's files that it imports."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except SyntaxError as error:
        raise SettingsError(f"{path}:{error.lineno}: {error.msg}.", "Mend the syntax on that line.") from error
    digest, imports = _read(tree)
    package = path.relative_to(PROJECT_ROOT).parent.as_posix().replace("/", ".")
    names = [name for statement in imports for name in _imported_names(statement, package)]
    return digest, tuple(found for name in names for found in _module_files(name))


def _read(tree: ast.Module) -> tuple[str, list[ast.Import | ast.ImportFrom]]:
    """The digest of a module and its import statements; takes the docstrings out of `tree`."""
    imports: list[ast.Import | ast.ImportFrom] = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            imports.append(node)
        elif isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False):
            node.body = node.body[1:]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()[:16], imports


def _imported_names(statement: ast.Import | ast.ImportFrom, package: str) -> list[str]:
    """The dotted names that a statement may import, modules or not; `package` is where it stands."""
    if isinstance(statement, ast.Import):
        return [alias.name for alias in statement.names]
    parents = package.split(".")
    base = ".".join(parents[: len(parents) - statement.level + 1]) if statement.level else ""
    origin = ".".join(part for part in (base, statement.module) if part)
    return [origin, *(f"{origin}.{alias.name}" for alias in statement.names)]


def _module_files(module: str) -> list[Path]:
    """The file of a dotted module of ours and the `__init__.py` of each package above it; none for other modules."""
    parts = module.split(".")
    if parts[0] not in OUR_PACKAGES:
        return []
    found: list[Path] = []
    for depth in range(1, len(parts) + 1):
        stem = PROJECT_ROOT.joinpath(*parts[:depth])
        found.extend(path for path in (stem / "__init__.py", stem.with_suffix(".py")) if path.is_file())
    return found


@cache
def _version(distribution: str) -> str:
    return importlib.metadata.version(distribution)


def _packages(*distributions: str) -> dict[str, str]:
    return {name: _version(name) for name in distributions}


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
        if isinstance(plain, Mapping) and plain:
            flat |= _flat(plain, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = (
                list(plain) if isinstance(plain, Sequence) and not isinstance(plain, str) else plain
            )
    return flat
