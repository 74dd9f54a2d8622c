"""What a node's result depends on besides its input artifacts: its settings, code, packages and outside files.

The fingerprint becomes an execution property of the node, and so a part of TFX's cache key: a node runs again exactly
when its input artifacts or its fingerprint changed. It is kept whole, not as one hash, so that `millrace why` can name
what changed. Reading it imports neither TensorFlow nor Beam.
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
from components.example_gen.digests import content_digests
from components.example_gen.formats import IMAGE_FORMATS
from metadata.fingerprints import PROPERTY, Fingerprint
from pipeline import nodes
from pipeline.environment import Environment
from pipeline.recipe import Recipe, project_relative
from pipeline.source_code import SourceCode, source_digest

__all__ = ["PROPERTY", "Fingerprint", "fingerprints"]

DAG = Path(__file__).with_name("dag.py")


def fingerprints(recipe: Recipe, environment: Environment, inputs: files.InputFiles) -> dict[str, Fingerprint]:
    """The fingerprint of every node of a recipe's pipeline, by node name, in the order of the data flow."""
    memos = environment.state_root / recipe.name
    sources = SourceCode(memos / "source_digests.json")
    made = _by_node(recipe, environment, inputs, sources, memos / "input_digests.json")
    sources.save()
    return made


def _by_node(
    recipe: Recipe, environment: Environment, inputs: files.InputFiles, sources: SourceCode, memo: Path
) -> dict[str, Fingerprint]:
    settings = recipe.settings
    dag = source_digest(DAG.read_text(encoding="utf-8"))
    schema_files = [recipe.curated_schema] if recipe.curated_schema else []
    pillow = ["pillow"] if inputs.format in IMAGE_FORMATS else []
    # The Evaluator keeps predictions for as many rows as the InfraValidator asks.
    requests = _flat({"infra_validator": settings.infra_validator})
    serving = {"serving_root": str(environment.serving_root)}
    tflite = _tflite(recipe, sources)
    # The Pusher's too: a recipe that asks no longer for a TF Lite model has one node less, and none that changed.
    quantization = {"tflite.quantization": settings.tflite.quantization} if tflite else {}
    return {
        "ExampleGen": Fingerprint(
            settings=_flat({"data": settings.data}) | {"data.span": inputs.span},
            code=sources.digests("components.example_gen.component"),
            packages=_packages("pyarrow", "tfx-bsl", *pillow),
            files=_input_digests(inputs, memo),
        ),
        "StatisticsGen": Fingerprint(
            code=sources.digests("components.statistics_gen"), packages=_packages("tensorflow-data-validation")
        ),
        "SchemaGen": Fingerprint(
            packages=_packages("tensorflow-data-validation"),
            files={project_relative(path): digest for path, digest in content_digests(schema_files).items()},
        ),
        "ExampleValidator": Fingerprint(packages=_packages("tensorflow-data-validation")),
        "DataGate": Fingerprint(
            settings=_flat({"gate": settings.gate}),
            # Nodes know nothing of the chain they are in; the gate, which costs nothing to run again, answers for it.
            code=sources.digests("components.data_gate") | {"pipeline/dag.py": dag},
        ),
        "Transform": Fingerprint(
            settings=_flat({"transform": settings.transform}),
            code=sources.digests("components.transform", recipe.preprocessing_fn.rpartition(".")[0]),
            packages=_packages("tensorflow", "tensorflow-transform"),
        ),
        "Trainer": Fingerprint(
            settings=_flat({"trainer": settings.trainer, "label": settings.label}),
            code=sources.digests("components.trainer.component", "components.trainer.run", recipe.model_module),
            packages=_packages("tensorflow", "tf-keras"),
        ),
        "Evaluator": Fingerprint(
            settings=_flat({"evaluator": settings.evaluator, "label": settings.label}) | requests,
            code=sources.digests("components.evaluation.component"),
            packages=_packages("tensorflow", "tensorflow-model-analysis"),
        ),
        **tflite,
        nodes.INFRA_NODE: Fingerprint(
            settings=requests,
            code=sources.digests("components.infra_validator.component"),
            packages=_packages("tensorflow", "tensorflow-serving-api"),
        ),
        "Pusher": Fingerprint(
            settings=_flat({"pusher": settings.pusher}) | serving | quantization,
            code=sources.digests("components.pusher.component"),
        ),
    }


def _tflite(recipe: Recipe, sources: SourceCode) -> dict[str, Fingerprint]:
    """The TF Lite node's, where the recipe's pipeline has one."""
    settings = recipe.settings
    if nodes.TFLITE_NODE not in nodes.of(recipe):
        return {}
    made = Fingerprint(
        settings=_flat({"tflite": settings.tflite, "label": settings.label}),
        code=sources.digests("components.tflite.component"),
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
