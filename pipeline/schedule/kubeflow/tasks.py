"""A recipe's tasks on Kubeflow Pipelines as plain data: what runs, after what, with what outputs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from contracts.errors import SettingsError
from pipeline.plan import nodes, project
from pipeline.plan.environment import Environment
from pipeline.plan.kubeflow_settings import EXIT_TASK, VERDICT_TASK, KubeflowSettings, TaskSettings
from pipeline.plan.recipe import Recipe, own_nodes
from pipeline.plan.table import Node
from pipeline.schedule.kubeflow import training

RUN_PARAMETER = "run"
SPAN_PARAMETER = "span"
SET_PARAMETER = "set"
JOB_PARAMETER = "job"
"""A parameter of each task: Kubeflow's id of the run, from which a run without a name gets one."""

OUTCOME = "outcome"
"""The output parameter of the Pusher's task that says what became of the model."""

PUSHED = "pushed"
NOT_GOOD_ENOUGH = "not good enough"
NOT_SERVED = "not served"
"""A good model that is not served, for instance because a rollback has withdrawn it."""

NODE_LABEL = "millrace/node"

REPORT = "report"
METRICS = "metrics"
CONFUSION = "confusion"

KUBEFLOW_TYPES = {
    "Examples": "Dataset",
    "RejectedRows": "Dataset",
    "Model": "Model",
    "TFLiteModel": "Model",
    "PushedModel": "Model",
}
"""The Kubeflow type as which an artifact is shown, by its own type; any other is an `Artifact`."""

SHOWN: Mapping[str, Mapping[str, str]] = {
    "Evaluator": {METRICS: "Metrics", CONFUSION: "ClassificationMetrics"},
    EXIT_TASK: {REPORT: "HTML"},
}
"""By task, further outputs that Kubeflow's pages draw."""

WRAPPER = ("millrace", "kubeflow", "task", "--executor-input", "{{$}}", "--")
"""The beginning of each command: it runs the rest and reports the outputs to Kubeflow."""


@dataclass(frozen=True)
class Work:
    """The work of a task.

    Attributes:
        recipe: The recipe's name.
        task: A node, or one of the tasks that only Kubeflow has.
        run: The run's name in the metadata store.
        environment: An environment's name or file.
    """

    recipe: str
    task: str
    run: str
    environment: str


@dataclass(frozen=True)
class Task:
    """A task.

    Attributes:
        name: A node, or one of the tasks that only Kubeflow has.
        command: The container's command, with Kubeflow's placeholders.
        upstream: The tasks that must have succeeded before it starts.
        artifacts: Its outputs in Kubeflow, with their types there.
        parameters: Its output parameters.
        settings: Its resources and other settings.
    """

    name: str
    command: tuple[str, ...]
    upstream: tuple[str, ...]
    artifacts: Mapping[str, str]
    parameters: tuple[str, ...]
    settings: TaskSettings

    @property
    def key(self) -> str:
        """Its name in Kubeflow, such as `example-gen`."""
        return task_key(self.name)


def task_key(name: str) -> str:
    """A node's name as Kubeflow writes names: `ExampleGen` is `example-gen`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()


def shown_artifacts(node: Node) -> dict[str, str]:
    """The outputs of a node, with the Kubeflow types as which they are shown."""
    return {name: KUBEFLOW_TYPES.get(kind, "Artifact") for name, kind in node.outputs.items()}


def every_task() -> tuple[str, ...]:
    """The tasks that any of the project's recipes may have, in data-flow order, with recipes' own nodes late."""
    return (*nodes.NODES, *sorted(own_nodes()), VERDICT_TASK, EXIT_TASK)


def pod_labels(recipe_name: str, name: str) -> dict[str, str]:
    """The labels of a task's pods, by which its logs are found."""
    return {"millrace/recipe": recipe_name, NODE_LABEL: name}


def recipe_tasks(recipe: Recipe, environment: Environment, environment_name: str) -> list[Task]:
    """The tasks of a recipe in an order in which they can run; last, the conditional task and the exit task.

    Raises:
        SettingsError: Pods cannot share the environment, or it gives the Trainer other pods than it needs.
    """
    settings = check_environment(environment, environment_name)
    training.check_trainer(recipe.settings.trainer, settings)
    training.check_shared_files(recipe.settings.trainer, environment, settings)
    where = environment_in_image(environment_name)
    node_tasks = [
        _task(recipe, name, where, settings, node.upstream, shown_artifacts(node))
        for name, node in nodes.table(recipe).items()
    ]
    verdict = _task(recipe, VERDICT_TASK, where, settings, (nodes.PUSHER_NODE,), {})
    return [*node_tasks, verdict, _task(recipe, EXIT_TASK, where, settings, (), {})]


def resource_requests(recipe: Recipe, recipe_tasks: Sequence[Task], settings: KubeflowSettings) -> list[Task]:
    """The tasks with their resource requests, and the training pods that the Trainer's task only watches."""
    if not recipe.settings.trainer.in_several_processes:
        return list(recipe_tasks)
    [watching] = [task for task in recipe_tasks if task.name == training.NODE]
    return [*recipe_tasks, replace(watching, settings=settings.task(training.NODE))]


def _task(
    recipe: Recipe,
    name: str,
    environment_name: str,
    settings: KubeflowSettings,
    upstream: tuple[str, ...],
    artifacts: Mapping[str, str],
) -> Task:
    run = "{{$.inputs.parameters['" + RUN_PARAMETER + "']}}"
    return Task(
        name=name,
        command=(*WRAPPER, *command_words(Work(recipe.name, name, run, environment_name))),
        upstream=upstream,
        artifacts={**artifacts, **SHOWN.get(name, {})},
        parameters=(OUTCOME,) if name == nodes.PUSHER_NODE else (),
        settings=training.trainer_task(recipe.settings.trainer, settings)
        if name == training.NODE
        else settings.task(name),
    )


VERBS = {VERDICT_TASK: ("millrace", "kubeflow", "verdict"), EXIT_TASK: ("millrace", "kubeflow", "close")}
NODE_VERB = ("millrace", "node", "run")


def command_words(work: Work) -> tuple[str, ...]:
    """The command that does a task's work."""
    verb = VERBS.get(work.task)
    begin = (*verb, work.recipe) if verb else (*NODE_VERB, work.recipe, work.task)
    return (*begin, "--run", work.run, "--env", work.environment)


def default_run_name(recipe_name: str, job: str) -> str:
    """The name of a run without one, such as a run that a schedule starts."""
    return f"{recipe_name}-{job}"


def parse_command(command: Sequence[str]) -> Work:
    """The work of a command; the inverse of `command_words`.

    Raises:
        SettingsError: It is not such a command.
    """
    begin, (run_option, run, environment_option, environment_name) = command[:-4], [*[""] * 4, *command][-4:]
    if (run_option, environment_option) == ("--run", "--env"):
        for task, verb in VERBS.items():
            if tuple(begin[:-1]) == verb:
                return Work(begin[-1], task, run, environment_name)
        if tuple(begin[:-2]) == NODE_VERB:
            return Work(begin[-2], begin[-1], run, environment_name)
    expected = f"{' '.join(NODE_VERB)} RECIPE NODE --run RUN --env ENV"
    raise SettingsError(f"received {' '.join(command)!r}, expected {expected!r}.")


def check_environment(environment: Environment, environment_name: str) -> KubeflowSettings:
    """Checks that pods on several machines can share an environment.

    Returns:
        Its `kubeflow` section.

    Raises:
        SettingsError: It cannot.
    """
    settings = environment.kubeflow
    if settings is None:
        raise SettingsError(
            f"the environment {environment_name} has no section `kubeflow:`, which says where to schedule.",
            "Use --env kubeflow, or write that section; see docs/kubeflow.md.",
        )
    store = environment.metadata_store
    server = store.postgresql or store.mysql
    if server is None:
        raise SettingsError(
            f"the environment {environment_name} has its metadata store in a file, {store.sqlite}, which pods on "
            "several machines cannot share safely; expected postgresql or mysql.",
            "Name a database under `metadata_store:`.",
        )
    variables = {variable for variable, _secret, _key in settings.secret_variables}
    if server.password_env and server.password_env not in variables:
        raise SettingsError(
            f"the environment {environment_name} takes the store's password from {server.password_env}, which no "
            f"secret under `kubeflow.secrets` sets; they set {', '.join(sorted(variables)) or 'nothing'}.",
            f"Add a secret with `variables: {{{server.password_env}: <the secret's key>}}`.",
        )
    _check_volumes(environment, environment_name, settings)
    return settings


def _check_volumes(environment: Environment, environment_name: str, settings: KubeflowSettings) -> None:
    mounted = [Path(volume.path) for volume in settings.volumes]
    # An object store needs no volume, and each pod's cache of it ends with the pod.
    kept = () if environment.object_root else ("pipeline_root",)
    for name in (*kept, "serving_root", "log_root"):
        folder: Path = getattr(environment, name)
        if not any(folder.is_relative_to(path) for path in mounted):
            raise SettingsError(
                f"the environment {environment_name} has {name} {folder}, which is on no volume that the pods mount "
                f"({', '.join(map(str, mounted))}): what a task writes there ends with its pod.",
                f"Give {name} a folder below one of `kubeflow.volumes`, or mount one there.",
            )


def environment_in_image(environment_name: str) -> str:
    """How the tasks name an environment: the image holds this project, and no other files of this machine.

    Raises:
        SettingsError: It is a file outside the project.
    """
    path = Path(environment_name)
    if path.suffix not in {".yaml", ".yml"}:
        return environment_name
    root, resolved = project.root(), path.absolute().resolve()
    if not resolved.is_relative_to(root):
        raise SettingsError(
            f"{path} is not in the project, {root}, and so not in the image that the tasks run.",
            "Put it under environments/.",
        )
    return str(resolved.relative_to(root))
