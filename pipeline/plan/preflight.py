"""Preflight: finds what is wrong before Beam starts."""

from __future__ import annotations

import ast
from pathlib import Path

from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from components.example_gen import files
from components.trainer.settings import own_training_refusal
from contracts.errors import AnomalyError, SettingsError
from contracts.labels import label_features
from contracts.near_names import did_you_mean, near_names
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
    _check_own_training(recipe)
    # Imported here because it imports pyarrow, which callers that only need the schema can do without.
    from components.example_gen import sources

    columns = sources.columns_of(inputs)
    file_name = ", ".join(str(path) for path in inputs.files[:1])
    if recipe.curated_schema:
        _check_schema_columns(recipe.curated_schema, columns, file_name)
    for position, keys in enumerate(recipe.settings.evaluator.slices):
        for key in keys:
            _check_known(f"{recipe.path}: evaluator.slices.{position}", key, columns, file_name)
    by_time = recipe.settings.data.split_by_time
    named = {
        "data.split_by_time.column": by_time.column if by_time else None,
        "evaluator.example_weight": recipe.settings.evaluator.example_weight,
        "data.split_by": recipe.settings.data.split_by,
    }
    for setting, column in named.items():
        if column is not None:
            _check_known(f"{recipe.path}: {setting}", column, columns, file_name)
    for column in recipe.settings.data.columns:
        _check_known(f"{recipe.path}: data.columns", column, columns, file_name)
    _check_columns_of_features(recipe, columns, file_name)
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


def _check_own_training(recipe: Recipe) -> None:
    """Checks that a recipe whose model.py trains by itself asks for one device alone."""
    path = recipe.path.with_name("model.py")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    received = recipe.settings.trainer.several_devices
    if received and any(isinstance(node, ast.FunctionDef) and node.name == "train" for node in tree.body):
        raise SettingsError(*own_training_refusal(str(path), received))


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


def _check_columns_of_features(recipe: Recipe, columns: list[str], file_name: str) -> None:
    """Checks the columns that preprocessing_fn reads by name, and that no label is a misspelt column."""
    path = recipe.path.with_name("features.py")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    schema = recipe.curated_schema
    known = [*columns, *(feature.name for feature in (read_schema(schema).feature if schema else ()))]
    for name, line in _names_read(tree).items():
        if name not in known:
            _check_known(f"{path}:{line}", name, columns, file_name)
    written = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    for label in label_features(recipe.settings.label):
        # A label that is no column is made by features.py, which may derive its name from a column's.
        derived = label in written or any(column in label for column in columns)
        if label not in columns and not derived and near_names(label, columns):
            _check_known(f"{recipe.path}: label", label, columns, file_name)


def _names_read(tree: ast.Module) -> dict[str, int]:
    """The texts by which preprocessing_fn looks its first argument up, with their lines; none if it changes it."""
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    function = next((node for node in functions if node.name == "preprocessing_fn"), None)
    if function is None or not function.args.args:
        return {}
    inputs = function.args.args[0].arg
    names: dict[str, int] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id == inputs and not isinstance(node.ctx, ast.Load):
            return {}
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == inputs:
            if not isinstance(node.ctx, ast.Load):
                return {}
            if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
                names.setdefault(node.slice.value, node.lineno)
    return names


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
