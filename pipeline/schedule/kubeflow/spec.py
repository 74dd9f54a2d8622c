"""Writes a recipe's tasks as the pipeline spec, and the platform spec, that Kubeflow Pipelines reads."""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

# The SDK, which takes 1.7 s to import: only what compiles imports this module.
from kfp import compiler, dsl, kubernetes

from pipeline.plan import nodes
from pipeline.plan.environment import Environment
from pipeline.plan.kubeflow_settings import EXIT_TASK, VERDICT_TASK, KubeflowSettings
from pipeline.plan.recipe import Recipe
from pipeline.schedule.kubeflow import tasks
from pipeline.schedule.kubeflow.tasks import JOB_PARAMETER, OUTCOME, RUN_PARAMETER, SET_PARAMETER, SPAN_PARAMETER, Task

PLATFORM = "kubernetes"

INPUTS = {RUN_PARAMETER: str, SPAN_PARAMETER: str, SET_PARAMETER: list}
"""The parameters of the pipeline, which each task gets."""

TASK_INPUTS = {**INPUTS, JOB_PARAMETER: str}


def compile_spec(recipe: Recipe, environment: Environment, environment_name: str, overrides: Sequence[str]) -> str:
    """The two YAML documents that Kubeflow Pipelines takes; the same for the same recipe, settings and code.

    Args:
        recipe: What to run, `overrides` applied.
        environment: Where.
        environment_name: What the user calls that.
        overrides: `--set` texts; they become the default of the pipeline's parameter `set`.

    Raises:
        SettingsError: The environment is none that pods can share.
    """
    made = tasks.recipe_tasks(recipe, environment, environment_name)
    settings = tasks.check_environment(environment, environment_name)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pipeline.yaml"
        compiler.Compiler().compile(_pipeline(recipe, made, settings, list(overrides)), str(path))
        return path.read_text(encoding="utf-8")


def _pipeline(recipe: Recipe, made: Sequence[Task], settings: KubeflowSettings, overrides: list[str]) -> Any:
    def build(*values: Any) -> None:
        given = {**dict(zip(INPUTS, values, strict=True)), JOB_PARAMETER: dsl.PIPELINE_JOB_ID_PLACEHOLDER}
        by_name = {task.name: task for task in made}
        ending = _start(by_name[EXIT_TASK], recipe, settings, given)
        with dsl.ExitHandler(ending):
            started: dict[str, Any] = {}
            for task in made:
                if task.name in (EXIT_TASK, VERDICT_TASK):
                    continue
                started[task.name] = _start(task, recipe, settings, given)
                started[task.name].after(*(started[name] for name in task.upstream))
            with dsl.If(started[nodes.PUSHER_NODE].outputs[OUTCOME] == tasks.NOT_GOOD_ENOUGH):
                _start(by_name[VERDICT_TASK], recipe, settings, given)

    build.__signature__ = _signature(INPUTS, {RUN_PARAMETER: "", SPAN_PARAMETER: "", SET_PARAMETER: overrides})  # type: ignore[attr-defined]
    build.__doc__ = f"""{recipe.settings.description}

    Args:
        run: The run's name in the metadata store; one that is there goes on. Kubeflow's own id where it is empty.
        span: The span of the data to read; the newest where it is empty.
        set: Settings of the recipe that are overridden, KEY=VALUE each.
    """
    return dsl.pipeline(name=recipe.name)(build)


def _start(task: Task, recipe: Recipe, settings: KubeflowSettings, given: Mapping[str, Any]) -> Any:
    started = _component(task, settings.image)(**given)
    started.set_caching_options(False)
    _give_resources(started, task)
    # No retry of what ends the run: Kubeflow's SDK allows none.
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
    """A component whose inputs and outputs are the task's: the SDK reads them from a function's signature."""
    outputs: dict[str, Any] = {name: dsl.Output[getattr(dsl, kind)] for name, kind in task.artifacts.items()}
    outputs |= {name: dsl.OutputPath(str) for name in task.parameters}

    def container(*_placeholders: Any) -> Any:
        # A list of its own each time, for the SDK would write shared ones as YAML aliases.
        return dsl.ContainerSpec(image=image, command=list(task.command[:1]), args=list(task.command[1:]))

    container.__name__ = task.key.replace("-", "_")
    container.__signature__ = _signature({**TASK_INPUTS, **outputs})  # type: ignore[attr-defined]
    return dsl.container_component(container)


def _signature(kinds: Mapping[str, Any], defaults: Mapping[str, Any] = MappingProxyType({})) -> inspect.Signature:
    """A signature of these parameters; the SDK reads types from it that are values, not text."""
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
    # What this version of the SDK does not know; the fields are those of kubernetes_executor_config.proto, and the
    # whole numbers are texts, as Protocol Buffers' JSON has them.
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
