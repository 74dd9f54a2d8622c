"""Reads a compiled pipeline spec as a list of commands: what Kubeflow would run, in what order, with what values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

EQUALS = re.compile(r"inputs\.parameter_values\['(?P<name>[^']+)'\] == '(?P<value>[^']*)'")
COMPLETED = "ALL_UPSTREAM_TASKS_COMPLETED"
JOB_ID = "{{$.pipeline_job_uuid}}"


@dataclass(frozen=True)
class Source:
    """Where an input's value comes from: a constant, or another step's output parameter.

    Attributes:
        value: The constant.
        step: The other step's key; None for a constant.
        output: Its output parameter.
    """

    value: Any = None
    step: str | None = None
    output: str = ""


@dataclass(frozen=True)
class Step:
    """A container task.

    Attributes:
        key: The task's name in the spec.
        command: The command with Kubeflow's placeholders.
        inputs: Its parameters.
        upstream: The steps before it.
        condition: A value and the text that it must equal for the step to run; None: it always runs.
        always: Whether it runs however the steps before it ended.
        artifacts: Names of its output artifacts.
        parameters: Names of its output parameters.
        retries: How many further attempts it has.
        backoff_seconds: The wait before the first of them.
        backoff_factor: How many times longer each further wait is.
    """

    key: str
    command: tuple[str, ...]
    inputs: Mapping[str, Source]
    upstream: frozenset[str]
    condition: tuple[Source, str] | None
    always: bool
    artifacts: tuple[str, ...]
    parameters: tuple[str, ...]
    retries: int
    backoff_seconds: float
    backoff_factor: float


@dataclass(frozen=True)
class _Scope:
    """What the tasks of one DAG inherit."""

    bound: Mapping[str, Source]
    upstream: frozenset[str] = frozenset()
    condition: tuple[Source, str] | None = None


def read_steps(text: str, parameters: Mapping[str, Any], job: str) -> list[Step]:
    """Reads the steps of a spec.

    Args:
        text: The output of `spec.compile_spec`.
        parameters: Values of the pipeline's parameters; the others keep their defaults.
        job: The value to use for Kubeflow's id of the run.
    """
    document = next(yaml.safe_load_all(text))
    declared = document["root"]["inputDefinitions"]["parameters"]
    values = {name: Source(parameters.get(name, spec.get("defaultValue"))) for name, spec in declared.items()}
    return list(_dag_steps(document, document["root"]["dag"], _Scope(values), job))


def _dag_steps(document: Mapping[str, Any], dag: Mapping[str, Any], scope: _Scope, job: str) -> Iterator[Step]:
    inner: dict[str, frozenset[str]] = {}
    for key in _ordered(dag["tasks"]):
        task = dag["tasks"][key]
        inputs = {
            name: _source(parameter, scope.bound, job)
            for name, parameter in task.get("inputs", {}).get("parameters", {}).items()
        }
        before = frozenset().union(*(inner[name] for name in _before(task)))
        component = document["components"][task["componentRef"]["name"]]
        if "dag" in component:
            condition = _condition(task, inputs) or scope.condition
            steps = list(
                _dag_steps(document, component["dag"], _Scope(inputs, scope.upstream | before, condition), job)
            )
            inner[key] = frozenset(step.key for step in steps)
            yield from steps
        else:
            inner[key] = frozenset({key})
            yield _step(document, key, task, component, inputs, scope.upstream | before, scope.condition)


def _before(task: Mapping[str, Any]) -> set[str]:
    """The tasks of the same DAG that a task waits for, explicitly or for a value."""
    before = set(task.get("dependentTasks", ()))
    for parameter in task.get("inputs", {}).get("parameters", {}).values():
        if "taskOutputParameter" in parameter:
            before.add(parameter["taskOutputParameter"]["producerTask"])
    return before


def _ordered(tasks: Mapping[str, Any]) -> Iterator[str]:
    """Sorts tasks topologically."""
    left = dict(tasks)
    while left:
        ready = [key for key, task in left.items() if not _before(task) & set(left)]
        yield from ready
        left = {key: task for key, task in left.items() if key not in ready}


def _source(parameter: Mapping[str, Any], bound: Mapping[str, Source], job: str) -> Source:
    if "componentInputParameter" in parameter:
        return bound[parameter["componentInputParameter"]]
    if "taskOutputParameter" in parameter:
        produced = parameter["taskOutputParameter"]
        return Source(step=produced["producerTask"], output=produced["outputParameterKey"])
    constant = parameter["runtimeValue"]["constant"]
    return Source(job if constant == JOB_ID else constant)


def _condition(task: Mapping[str, Any], inputs: Mapping[str, Source]) -> tuple[Source, str] | None:
    text = task.get("triggerPolicy", {}).get("condition")
    match = EQUALS.fullmatch(" ".join(text.split())) if text else None
    return (inputs[match["name"]], match["value"]) if match else None


def _step(
    document: Mapping[str, Any],
    key: str,
    task: Mapping[str, Any],
    component: Mapping[str, Any],
    inputs: Mapping[str, Source],
    upstream: frozenset[str],
    condition: tuple[Source, str] | None,
) -> Step:
    container = document["deploymentSpec"]["executors"][component["executorLabel"]]["container"]
    outputs = component.get("outputDefinitions", {})
    retry = task.get("retryPolicy", {})
    return Step(
        key=key,
        command=(*container["command"], *container.get("args", ())),
        inputs=inputs,
        upstream=upstream,
        condition=condition,
        always=task.get("triggerPolicy", {}).get("strategy") == COMPLETED,
        artifacts=tuple(outputs.get("artifacts", ())),
        parameters=tuple(outputs.get("parameters", ())),
        retries=int(retry.get("maxRetryCount", 0)),
        backoff_seconds=float(str(retry.get("backoffDuration", "0s")).rstrip("s")),
        backoff_factor=float(retry.get("backoffFactor", 2)),
    )


def filled_command(step: Step, executor_input: Mapping[str, Any]) -> list[str]:
    """The command with its placeholders filled in, as Kubeflow's launcher does it."""
    texts = {"{{$}}": json.dumps(executor_input)}
    for name, value in executor_input["inputs"]["parameterValues"].items():
        texts[f"{{{{$.inputs.parameters['{name}']}}}}"] = value if isinstance(value, str) else json.dumps(value)
    return [texts.get(word, word) for word in step.command]
