"""Preflight: finds what is wrong before Beam starts."""

from __future__ import annotations

import ast
from pathlib import Path

from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from components.example_gen import files
from contracts.errors import AnomalyError, SettingsError
from contracts.near_names import did_you_mean
from pipeline.plan import project
from pipeline.plan.recipe import Recipe

USER_FUNCTIONS = {"features.py": ("preprocessing_fn",), "model.py": ("build_model", "compile_arguments")}
"""The functions in a recipe's modules that the pipeline calls."""

UNUSED_STAGES = frozenset(
    {schema_pb2.PLANNED, schema_pb2.ALPHA, schema_pb2.DEBUG_ONLY, schema_pb2.DEPRECATED, schema_pb2.DISABLED}
)
"""The lifecycle stages in which TFDV does not validate a feature (schema_util.cc)."""


def check(recipe: Recipe, inputs: files.InputFiles) -> None:
    """Checks a recipe's settings, data and code against each other.

    Raises:
        SettingsError: A module or function is missing, or a setting names a column that does not exist.
        AnomalyError: The data lack columns of the curated schema.
    """
    _check_user_code(recipe)
    # Imported here because it imports pyarrow, which callers that only need the schema can do without.
    from components.example_gen import sources

    columns = sources.columns_of(inputs)
    file_name = ", ".join(str(path) for path in inputs.files[:1])
    if recipe.curated_schema:
        _check_schema_columns(recipe.curated_schema, columns, file_name)
    for position, keys in enumerate(recipe.settings.evaluator.slices):
        for key in keys:
            _check_known(f"{recipe.path}: evaluator.slices.{position}", key, columns, file_name)
    named = {
        "evaluator.example_weight": recipe.settings.evaluator.example_weight,
        "data.split_by": recipe.settings.data.split_by,
    }
    for setting, column in named.items():
        if column is not None:
            _check_known(f"{recipe.path}: {setting}", column, columns, file_name)
    for split in ("train", "eval"):
        if split not in recipe.settings.data.splits:
            raise SettingsError(
                f"{recipe.path}: data.splits has no {split!r}; received {', '.join(recipe.settings.data.splits)}.",
                "The Trainer learns from `train`, the Evaluator judges on `eval`: name both.",
            )


def _check_user_code(recipe: Recipe) -> None:
    for module, functions in USER_FUNCTIONS.items():
        path = recipe.path.parent / module
        if not path.exists():
            raise SettingsError(f"{path} does not exist.", f"Write it, with {' and '.join(functions)}.")
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except SyntaxError as error:
            raise SettingsError(f"{path}:{error.lineno}: {error.msg}.", "Mend the syntax on that line.") from error
        _check_keras(path, tree)
        # Any assignment or import may bind the name, so it is certainly missing only if it occurs in neither.
        attributes = ("asname", "name", "id")
        names = {getattr(node, attribute, None) for node in ast.walk(tree) for attribute in attributes}
        for function in functions:
            if function not in names:
                raise SettingsError(f"{path} has no function {function}.", f"Define {function} in it.")


def _check_keras(path: Path, tree: ast.Module) -> None:
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    for node in imports:
        names = [name.name for name in node.names]
        modules = names if isinstance(node, ast.Import) else [] if node.level else [node.module or ""]
        if any(module.partition(".")[0] == "keras" for module in modules):
            raise SettingsError(
                f"{path}:{node.lineno}: imports keras, which is Keras 3; models are built with tf_keras.",
                "Import tf_keras instead, whose names are those of Keras 2 (docs/adr/0002-tf-keras.md).",
            )


def read_schema(path: Path) -> schema_pb2.Schema:
    """Reads a schema.pbtxt.

    Raises:
        SettingsError: It is not a schema; the message names the line.
    """
    return parse_schema(path.read_text(encoding="utf-8"), path)


def parse_schema(text: str, path: Path) -> schema_pb2.Schema:
    """Parses the text of a schema.pbtxt.

    Raises:
        SettingsError: It is not a schema; the message names the line.
    """
    try:
        return text_format.Parse(text, schema_pb2.Schema())
    except text_format.ParseError as error:
        raise SettingsError(f"{project.relative_path(path)}:{error.GetLine()}: not a schema: {error}.") from error


def _check_schema_columns(path: Path, columns: list[str], file_name: str) -> None:
    required = [
        feature.name
        for feature in read_schema(path).feature
        if feature.lifecycle_stage not in UNUSED_STAGES
        and (feature.presence.min_count > 0 or feature.presence.min_fraction > 0)
    ]
    missing = [name for name in required if name not in columns]
    if missing:
        raise AnomalyError(
            f"{file_name} lacks columns that {project.relative_path(path)} requires: {', '.join(missing)}; "
            f"it has {', '.join(columns)}.",
            "Add them to the data, or make them optional in the schema.",
        )


def _check_known(where: str, name: str, columns: list[str], file_name: str) -> None:
    if name not in columns:
        raise SettingsError(f"{where}: {file_name} has no column {name!r}. {did_you_mean(name, columns)}")
