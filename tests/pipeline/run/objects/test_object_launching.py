"""Nodes of a pipeline in a bucket, each on its own machine, as TFX launches them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from object_server import ObjectServer
from tfx.dsl.compiler import constants
from tfx.dsl.compiler.compiler import Compiler
from tfx.dsl.components.base import base_component, base_executor, executor_spec
from tfx.orchestration import pipeline as tfx_pipeline
from tfx.orchestration.portable import launcher, runtime_parameter_utils
from tfx.types import Channel, component_spec
from tfx.types.standard_artifacts import Examples, Model

from components import artifacts
from components.trainer.processes import SURROUNDINGS, Surroundings
from metadata.store import Store
from pipeline.plan import environment as environments
from pipeline.plan import why
from pipeline.run import tfx_adapter
from pipeline.run.context import RunContext
from pipeline.run.folder import Request
from pipeline.run.objects.faults import ObjectStoreError
from pipeline.run.workplace import Workplace

RUNS: list[str] = []
HANDED_DOWN: list[Surroundings | None] = []


@pytest.fixture(autouse=True)
def _nothing_ran_yet() -> None:
    RUNS.clear()
    HANDED_DOWN.clear()


class MakeExecutor(base_executor.BaseExecutor):
    """Writes a file, and an empty folder beside it."""

    def Do(self, input_dict: Any, output_dict: Any, exec_properties: Any) -> None:  # noqa: N802
        RUNS.append("Make")
        HANDED_DOWN.append(exec_properties.get(SURROUNDINGS))
        [artifact] = output_dict["examples"]
        folder = Path(artifact.uri)
        (folder / "Split-train").mkdir()
        (folder / "Split-train" / "data").write_text("a row")
        artifact.set_string_custom_property("current_model", f"{artifact.uri}/Split-train")
        artifact.set_string_custom_property("said", f"not {artifact.uri}")


class TakeExecutor(base_executor.BaseExecutor):
    """Copies the file, and records where its input is stored."""

    def Do(self, input_dict: Any, output_dict: Any, exec_properties: Any) -> None:  # noqa: N802
        RUNS.append("Take")
        [taken], [output] = input_dict["examples"], output_dict["model"]
        Path(output.uri, "copy").write_text(Path(taken.uri, "Split-train", "data").read_text())
        Path(output.uri, "kept").write_text(artifacts.artifact_location(taken))


class MakeSpec(component_spec.ComponentSpec):
    PARAMETERS = {}  # noqa: RUF012
    INPUTS = {}  # noqa: RUF012
    OUTPUTS = {"examples": component_spec.ChannelParameter(type=Examples)}  # noqa: RUF012


class TakeSpec(component_spec.ComponentSpec):
    PARAMETERS = {}  # noqa: RUF012
    INPUTS = {"examples": component_spec.ChannelParameter(type=Examples)}  # noqa: RUF012
    OUTPUTS = {"model": component_spec.ChannelParameter(type=Model)}  # noqa: RUF012


class Make(base_component.BaseComponent):
    SPEC_CLASS = MakeSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(MakeExecutor)

    def __init__(self) -> None:
        super().__init__(MakeSpec(examples=Channel(type=Examples)))


class Take(base_component.BaseComponent):
    SPEC_CLASS = TakeSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(TakeExecutor)

    def __init__(self, examples: Any) -> None:
        super().__init__(TakeSpec(examples=examples, model=Channel(type=Model)))


class Machines:
    """The nodes of a pipeline on machines that share only its stores."""

    def __init__(self, environment: Callable[..., str], folder: Path) -> None:
        self._environment = environment
        self.folder = folder
        self.root = str(self.at("a").object_root)

    def at(self, machine: str) -> environments.Environment:
        return environments.load(self._environment(machine))

    def compiled(self, machine: str, run: str, maker: str = "Make") -> Any:
        """The tiny pipeline as TFX launches it: a producing node, called `maker`, and a consuming one."""
        environment = self.at(machine)
        make = Make().with_id(maker)
        compiled = Compiler().compile(
            tfx_pipeline.Pipeline(
                pipeline_name="tiny",
                pipeline_root=str(environment.pipeline_root / "tiny"),
                components=[make, Take(make.outputs["examples"])],
                enable_cache=True,
                metadata_connection_config=Workplace(environment).connection,
            )
        )
        runtime_parameter_utils.substitute_runtime_parameter(compiled, {constants.PIPELINE_RUN_ID_PARAMETER_NAME: run})
        return compiled

    def run(self, machine: str, run: str, *nodes: str) -> None:
        compiled = self.compiled(machine, run)
        for node in nodes:
            tfx_adapter.run_node(compiled, node, self.context(machine, run))

    def context(self, machine: str, run: str) -> RunContext:
        """A run of the tiny pipeline, which does not belong to a recipe."""
        request = Request(recipe="tiny", overrides=(), environment=machine, run_id=run, span=None)
        environment = self.at(machine).model_copy(update={"log_root": self.folder})
        (self.folder / run).mkdir(exist_ok=True)
        nothing: Any = None
        return RunContext(nothing, Workplace(environment), nothing, request)

    @property
    def store(self) -> Store:
        opened = Workplace(self.at("reader")).open_store()
        assert opened
        return opened

    def states(self, run: str) -> dict[str, str]:
        return {name: record.state for name, record in self.store.node_runs("tiny", run).items()}


@pytest.fixture
def machines(object_environment: Callable[..., str], tmp_path: Path) -> Machines:
    return Machines(object_environment, tmp_path)


def test_nodes_on_machines_of_their_own(machines: Machines, object_server: ObjectServer) -> None:
    machines.run("a", "one", "Make")
    machines.run("b", "one", "Take")
    runs = machines.store.node_runs("tiny", "one")
    [examples] = machines.store.outputs(runs["Make"].id)["examples"]
    [model] = machines.store.outputs(runs["Take"].id)["model"]
    assert examples.uri == f"{machines.root}/tiny/Make/examples/1"
    assert model.uri == f"{machines.root}/tiny/Take/model/2"
    # Values that are only a path become the store's URI; longer texts stay as they were written.
    assert examples.properties["current_model"] == f"{examples.uri}/Split-train"
    assert examples.properties["said"] == f"not {machines.at('a').pipeline_root}/tiny/Make/examples/1"
    assert artifacts.STORED_AT not in examples.properties
    objects = object_server.objects(machines.root.removeprefix("s3://"))
    assert objects == {
        "tiny/Make/examples/1/Split-train/data": b"a row",
        "tiny/Take/model/2/copy": b"a row",
        "tiny/Take/model/2/kept": examples.uri.encode(),
    }
    assert model.file("copy") == machines.at("reader").pipeline_root / "tiny/Take/model/2/copy"

    # A third machine has nothing to do and downloads nothing.
    machines.run("c", "two", "Make", "Take")
    assert RUNS == ["Make", "Take"]
    assert machines.states("two") == {"Make": "CACHED", "Take": "CACHED"}
    assert not list(machines.at("c").pipeline_root.rglob("data"))

    object_server.remove(model.uri.removeprefix("s3://"))
    machines.run("b", "three", "Make", "Take")
    assert RUNS == ["Make", "Take", "Take"]
    assert machines.states("three") == {"Make": "CACHED", "Take": "COMPLETE"}
    assert why.explain(machines.store, "tiny", "Take") == (
        f"Take ran because its earlier outputs are no longer there: {model.uri} is gone."
    )

    # Half of an output in the bucket is not taken for the whole.
    object_server.remove_object(f"{machines.root.removeprefix('s3://')}/tiny/Take/model/6/kept")
    machines.run("c", "four", "Make", "Take")
    assert RUNS == ["Make", "Take", "Take", "Take"]
    assert machines.states("four") == {"Make": "CACHED", "Take": "COMPLETE"}


def test_the_local_run_does_as_the_nodes_do(machines: Machines, object_server: ObjectServer) -> None:
    before = launcher.Launcher
    compiled = machines.compiled("a", "one")
    assert tfx_adapter.waits(compiled) == {"Make": [], "Take": ["Make"]}
    for node in tfx_adapter.waits(compiled):
        tfx_adapter.run_node(compiled, node, machines.context("a", "one"), turns=machines.folder / "turns")
    assert launcher.Launcher is before
    assert machines.states("one") == {"Make": "COMPLETE", "Take": "COMPLETE"}
    objects = object_server.objects(f"{machines.root.removeprefix('s3://')}/tiny/Take/model/2")
    assert objects == {"copy": b"a row", "kept": f"{machines.root}/tiny/Make/examples/1".encode()}


def test_a_trainer_is_handed_what_is_never_recorded(machines: Machines) -> None:
    context = machines.context("a", "one")
    tfx_adapter.run_node(machines.compiled("a", "one", maker="Trainer"), "Trainer", context, training_launcher=print)
    assert [Surroundings(str(context.folder.progress_path("Trainer")), print)] == HANDED_DOWN
    assert SURROUNDINGS not in machines.store.node_runs("tiny", "one")["Trainer"].properties
    # Nor is it in the cache key: another run passes on another path and still finds the first one's result.
    tfx_adapter.run_node(machines.compiled("a", "two", maker="Trainer"), "Trainer", machines.context("a", "two"))
    assert machines.states("two") == {"Trainer": "CACHED"}


def test_no_other_node_is_handed_it(machines: Machines) -> None:
    machines.run("a", "one", "Make")
    assert HANDED_DOWN == [None]


def test_what_cannot_be_uploaded_is_not_published(machines: Machines, object_server: ObjectServer) -> None:
    object_server.refuse("403 Forbidden", "AccessDenied", "Access Denied", times=2)
    with pytest.raises(ObjectStoreError, match=r"^the object store cannot be written to: .*: Access Denied \(ACC"):
        machines.run("a", "one", "Make")
    record = machines.store.node_runs("tiny", "one")["Make"]
    assert record.state == "FAILED"
    assert machines.store.outputs(record.id) == {}
    machines.run("a", "one", "Make")
    assert machines.states("one") == {"Make": "COMPLETE"}


def test_an_input_that_is_gone_fails_its_node(machines: Machines, object_server: ObjectServer) -> None:
    machines.run("a", "one", "Make")
    object_server.remove(f"{machines.root.removeprefix('s3://')}/tiny/Make/examples/1")
    with pytest.raises(ObjectStoreError, match=r"/tiny/Make/examples/1 is not in the object store \(any more\)"):
        machines.run("b", "one", "Take")
    assert RUNS == ["Make"]
    assert machines.states("one")["Take"] == "FAILED"


def test_a_node_that_was_killed_leaves_nothing(
    machines: Machines, object_server: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    class KilledError(BaseException):
        pass

    def killed(*_args: object) -> None:
        raise KilledError

    monkeypatch.setattr(launcher.Launcher, "_publish_successful_execution", killed)
    with pytest.raises(KilledError):
        machines.run("a", "one", "Make")
    place = f"{machines.root.removeprefix('s3://')}/tiny/Make/examples"
    assert object_server.objects(place) == {"1/Split-train/data": b"a row"}
    # On another machine, as a scheduler may choose.
    Workplace(machines.at("b")).sweep_leftovers("tiny", "one", "Make")
    assert object_server.objects(place) == {}
    assert machines.states("one") == {"Make": "CANCELED"}
