"""Compiles a recipe's tasks to the pipeline spec, and the platform spec, that Kubeflow Pipelines reads."""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

# The SDK takes 1.7 s to import: import this module only to compile.
from kfp import compiler, dsl, kubernetes

from pipeline.plan import nodes
from pipeline.plan.environment import Environment
from pipeline.plan.kubeflow_settings import EXIT_TASK, VERDICT_TASK, KubeflowSettings
from pipeline.plan.recipe import Recipe
from pipeline.schedule.kubeflow import tasks
from pipeline.schedule.kubeflow.tasks import JOB_PARAMETER, OUTCOME, RUN_PARAMETER, SET_PARAMETER, SPAN_PARAMETER, Task

PLATFORM = "kubernetes"

INPUTS = {RUN_PARAMETER: str, SPAN_PARAMETER: str, SET_PARAMETER: list}
"""The pipeline's parameters, which each task gets."""

TASK_INPUTS = {**INPUTS, JOB_PARAMETER: str}


def compile_spec(recipe: Recipe, environment: Environment, environment_name: str, overrides: Sequence[str]) -> str:
    """Compiles the two YAML documents that Kubeflow Pipelines takes; the same recipe, settings and code give the same.

    Args:
        recipe: What to run, with `overrides` applied.
        environment: Where to run it.
        environment_name: The environment's name or file, as the user gave it.
        overrides: `--set` texts; they become the default of the pipeline's parameter `set`.

    Raises:
        SettingsError: Pods cannot share the environment.
    """
    recipe_tasks = tasks.recipe_tasks(recipe, environment, environment_name)
    settings = tasks.check_environment(environment, environment_name)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pipeline.yaml"
        compiler.Compiler().compile(_pipeline(recipe, recipe_tasks, settings, list(overrides)), str(path))
        return path.read_text(encoding="utf-8")


def _pipeline(recipe: Recipe, recipe_tasks: Sequence[Task], settings: KubeflowSettings, overrides: list[str]) -> Any:
    def build(*values: Any) -> None:
        arguments = {**dict(zip(INPUTS, values, strict=True)), JOB_PARAMETER: dsl.PIPELINE_JOB_ID_PLACEHOLDER}
        by_name = {task.name: task for task in recipe_tasks}
        ending = _start(by_name[EXIT_TASK], recipe, settings, arguments)
        with dsl.ExitHandler(ending):
            started: dict[str, Any] = {}
            for task in recipe_tasks:
                if task.name in (EXIT_TASK, VERDICT_TASK):
                    continue
                started[task.name] = _start(task, recipe, settings, arguments)
                started[task.name].after(*(started[name] for name in task.upstream))
            with dsl.If(started[nodes.PUSHER_NODE].outputs[OUTCOME] == tasks.NOT_GOOD_ENOUGH):
                _start(by_name[VERDICT_TASK], recipe, settings, arguments)

    build.__signature__ = _signature(INPUTS, {RUN_PARAMETER: "", SPAN_PARAMETER: "", SET_PARAMETER: overrides})  # type: ignore[attr-defined]
    build.__doc__ = f"""{recipe.settings.description}

    Args:
        run: The run's name in the metadata store; an existing run continues. If empty, it is made from Kubeflow's id.
        span: The span of the data to read; if empty, the newest.
        set: Settings of the recipe to override, each as KEY=VALUE.
    """
    return dsl.pipeline(name=recipe.name)(build)


def _start(task: Task, recipe: Recipe, settings: KubeflowSettings, arguments: Mapping[str, Any]) -> Any:
    started = _component(task, settings.image)(**arguments)
    started.set_caching_options(False)
    _give_resources(started, task)
    # The exit task is not retried: Kubeflow's SDK does not allow it.
    if task.settings.retries.count and task.name != EXIT_TASK:
        retries = task.settings.retries
        started.set_retry(
            retries.count,
            backoff_duration=f"{retries.backoff_seconds}s",
            backoff_factor=retries.backoff_factor,
            backoff_max_duration=f"{retries.backoff_max_seconds}s",
        )
    _give_platform(started, task, recipe, settings)
    return started


def _component(task: Task, image: str) -> Any:
    """A component with the task's inputs and outputs, which the SDK reads from a function's signature."""
    outputs: dict[str, Any] = {name: dsl.Output[getattr(dsl, kind)] for name, kind in task.artifacts.items()}
    outputs |= {name: dsl.OutputPath(str) for name in task.parameters}

    def container(*_placeholders: Any) -> Any:
        # New lists each time, because the SDK would write shared ones as YAML aliases.
        return dsl.ContainerSpec(image=image, command=list(task.command[:1]), args=list(task.command[1:]))

    container.__name__ = task.key.replace("-", "_")
    container.__signature__ = _signature({**TASK_INPUTS, **outputs})  # type: ignore[attr-defined]
    return dsl.container_component(container)


def _signature(kinds: Mapping[str, Any], defaults: Mapping[str, Any] = MappingProxyType({})) -> inspect.Signature:
    """A signature with these parameters, whose annotations are types, not text, as the SDK needs."""
    parameter = inspect.Parameter
    return inspect.Signature(
        [
            parameter(
                name, parameter.POSITIONAL_OR_KEYWORD, annotation=kind, default=defaults.get(name, parameter.empty)
            )
            for name, kind in kinds.items()
        ]
    )


def _give_resources(started: Any, task: Task) -> None:
    settings = task.settings
    started.set_cpu_request(settings.cpu)
    if settings.cpu_limit:
        started.set_cpu_limit(settings.cpu_limit)
    started.set_memory_request(settings.memory)
    started.set_memory_limit(settings.memory)
    if settings.accelerator:
        started.set_accelerator_type(settings.accelerator.type)
        started.set_accelerator_limit(settings.accelerator.count)


def _give_platform(started: Any, task: Task, recipe: Recipe, settings: KubeflowSettings) -> None:
    for variable, secret, key in settings.secret_variables:
        kubernetes.use_secret_as_env(started, secret, {key: variable})
    for volume in settings.volumes:
        kubernetes.mount_pvc(started, pvc_name=volume.claim, mount_path=volume.path)
    for label, value in task.settings.node_selector.items():
        kubernetes.add_node_selector(started, label, value)
    # What this version of the SDK does not support. The fields are those of kubernetes_executor_config.proto; integers
    # are text, as in Protocol Buffers' JSON.
    platform = started.platform_config[PLATFORM]
    platform["podMetadata"] = {"labels": tasks.pod_labels(recipe.name, task.name)}
    platform["imagePullPolicy"] = settings.image_pull_policy
    platform["activeDeadlineSeconds"] = str(task.settings.time_limit_seconds)
    if settings.image_pull_secrets:
        platform["imagePullSecret"] = [{"secretName": name} for name in settings.image_pull_secrets]
    if task.settings.tolerations:
        platform["tolerations"] = [
            {name: str(value) for name, value in toleration.manifest().items()}
            for toleration in task.settings.tolerations
        ]
