"""The first node of the pipeline: raw files in, Examples out."""

from __future__ import annotations

from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.types import component_spec, standard_artifacts
from tfx.types.channel import Channel

from components.example_gen.artifacts import RejectedRows
from components.example_gen.executor import Executor
from components.example_gen.settings import DataSettings


class ExampleGenSpec(component_spec.ComponentSpec):
    """The parameters and outputs of `ExampleGen`; see there."""

    PARAMETERS = {  # noqa: RUF012  # TFX's own form
        "settings": component_spec.ExecutionParameter(type=str),
        "base_dir": component_spec.ExecutionParameter(type=str),
        "span": component_spec.ExecutionParameter(type=int, optional=True),
        "fingerprint": component_spec.ExecutionParameter(type=str),
    }
    INPUTS: dict[str, component_spec.ChannelParameter] = {}  # noqa: RUF012
    OUTPUTS = {  # noqa: RUF012
        "examples": component_spec.ChannelParameter(type=standard_artifacts.Examples),
        "rejected_rows": component_spec.ChannelParameter(type=RejectedRows),
    }


class ExampleGen(base_beam_component.BaseBeamComponent):
    """Reads tables or images (see `DataSettings.format`), and writes TFRecords of `tf.train.Example`, in splits.

    For CSV, the Examples and their splits are those of TFX's CsvExampleGen.

    Outputs:
        examples: Examples; custom properties `num_rows`, `input_digest`, a SHA-256 over the contents of the files, and
            for images `class_names`, a JSON list of text in the order of the class ids.
        rejected_rows: RejectedRows; empty unless `data.on_bad_row` is `set_aside`.

    Args:
        settings: The recipe's `data` section.
        base_dir: The folder that a relative `data.path` is relative to.
        span: The span to read, found beforehand by `files.resolve`, so that TFX's cache knows it; None reads the one
            that `data.span` says, or the newest.
        fingerprint: Whatever else the result depends on; a changed text makes TFX run the node again.
    """

    SPEC_CLASS = ExampleGenSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(Executor)

    def __init__(self, settings: DataSettings, base_dir: str, fingerprint: str, span: int | None = None) -> None:
        spec = ExampleGenSpec(
            settings=settings.model_dump_json(),
            base_dir=base_dir,
            span=span,
            fingerprint=fingerprint,
            examples=Channel(type=standard_artifacts.Examples),
            rejected_rows=Channel(type=RejectedRows),
        )
        super().__init__(spec=spec)
