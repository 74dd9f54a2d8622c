"""Which packages may import which, and what must not be imported where."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent
MAY_IMPORT = {
    "pipeline": {"components", "contracts", "metadata", "recipes", "ui"},
    "recipes": {"components", "contracts"},
    "ui": {"contracts", "metadata"},
    "components": {"contracts"},
    "metadata": {"contracts"},
    "serving": {"contracts"},
    "contracts": set(),
}
OURS = {*MAY_IMPORT, "tests", "benchmarks"}
HEAVY = {
    "apache_beam",
    "kfp",
    "tensorflow",
    "tensorflow_data_validation",
    "tensorflow_model_analysis",
    "tensorflow_transform",
    "tf_keras",
    "tfx",
    "tfx_bsl",
}
# The command line starts the server, sends requests, and writes deployments; the InfraValidator loads models with it.
USE_SERVING = {
    PROJECT / "pipeline" / "commands" / "serving.py",
    PROJECT / "pipeline" / "commands" / "predict" / "__init__.py",
    PROJECT / "pipeline" / "commands" / "deploy.py",
    PROJECT / "components" / "infra_validator" / "component.py",
}
# Loaded only by the worker, which needs TFX anyway.
MAY_LOAD_TFX = {
    "pipeline/plan/dag.py",
    "pipeline/run/launching.py",
    "pipeline/run/objects/launching.py",
    "pipeline/run/tfx_adapter.py",
}
RUN_NODES = {
    "pipeline/run/node.py",
    "pipeline/run/tfx_adapter.py",
    "pipeline/commands/warm_imports.py",
    "pipeline/run/worker.py",
}
# Loaded only by the command that compiles.
MAY_LOAD_KFP = {"pipeline/schedule/kubeflow/spec.py"}


def modules(package: str) -> list[Path]:
    return sorted((PROJECT / package).rglob("*.py"))


def imported(nodes: Iterator[ast.AST] | list[ast.stmt]) -> set[str]:
    """The modules named by import statements among these nodes, without relative imports."""
    modules: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            modules.add(node.module)
    return modules


def tops(names: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_packages_import_only_whom_they_may(package: str) -> None:
    files = modules(package)
    assert files
    for path in files:
        rooms = tops(imported(ast.walk(ast.parse(path.read_text())))) & OURS
        allowed = MAY_IMPORT[package] | ({"serving"} if path in USE_SERVING else set())
        assert rooms - {package} <= allowed, path


def test_recipes_do_not_import_each_other() -> None:
    for path in modules("recipes"):
        name = path.relative_to(PROJECT / "recipes").parts[0]
        for module in imported(ast.walk(ast.parse(path.read_text()))):
            assert not module.startswith("recipes.") or module.split(".")[1] == name, path


def test_what_the_quick_answers_pass_by_loads_nothing_heavy_at_module_level() -> None:
    for path in [*modules("contracts"), *modules("pipeline"), *modules("metadata"), *modules("ui")]:
        if str(path.relative_to(PROJECT)) not in MAY_LOAD_TFX | MAY_LOAD_KFP:
            assert not tops(imported(ast.parse(path.read_text()).body)) & HEAVY, path


def test_only_those_that_run_nodes_use_the_modules_that_load_tfx() -> None:
    for path in modules("pipeline"):
        heavy = {"pipeline.plan.dag", "pipeline.run.tfx_adapter", "pipeline.run.launching"} & _names(
            ast.parse(path.read_text())
        )
        assert not heavy or str(path.relative_to(PROJECT)) in RUN_NODES, path


def _names(tree: ast.Module) -> set[str]:
    """Every `package.name` that `from package import name` statements bring in."""
    return {
        f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_nobody_imports_all_of_tfx_v1(package: str) -> None:
    for path in modules(package):
        tree = ast.parse(path.read_text())
        assert not {"tfx.v1"} & (imported(ast.walk(tree)) | _names(tree)), path


def test_the_architecture_page_names_every_folder() -> None:
    page = (PROJECT / "docs" / "architecture.md").read_text()
    rooms = [*(MAY_IMPORT.keys() - {"recipes"}), "benchmarks", "flink"]
    folders = {path.parent.name for room in rooms for path in modules(room)}
    assert {"plan", "kubeflow", "grpc_port"} <= folders
    assert [name for name in sorted(folders) if f"{name}/" not in page] == []


def test_files_that_the_documentation_names_are_there() -> None:
    named = re.compile(
        r"`((?:benchmarks|components|contracts|flink|metadata|pipeline|scripts|serving|tests|ui)/[\w./-]+)`"
    )
    documents = [PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", *(PROJECT / "docs").rglob("*.md")]
    missing = [
        f"{document.name} names {name}"
        for document in documents
        for name in named.findall(document.read_text())
        if not (PROJECT / name).exists()
    ]
    assert missing == []
