"""The Pusher component, at the end of the pipeline."""

from __future__ import annotations

from tfx.dsl.compiler import constants
from tfx.dsl.components.base import base_component, executor_spec
from tfx.orchestration import data_types
from tfx.types import BaseChannel, Channel, component_spec, standard_artifacts, system_executions

from components.pusher.executor import Executor
from components.tflite.artifacts import TFLiteModel

RUN_ID = data_types.RuntimeParameter(name=constants.PIPELINE_RUN_ID_PARAMETER_NAME, ptype=str)
"""Which run pushes. A Pusher is never taken from the cache for it: what it does depends on what is served already."""


class PusherSpec(component_spec.ComponentSpec):
    """Inputs, outputs and parameters of the Pusher."""

    PARAMETERS = {  # noqa: RUF012 (TFX reads a plain dict)
        "base_directory": component_spec.ExecutionParameter(type=str),
        "keep_versions": component_spec.ExecutionParameter(type=int),
        "run_id": component_spec.ExecutionParameter(type=str),
    }
    INPUTS = {  # noqa: RUF012
        "model": component_spec.ChannelParameter(type=standard_artifacts.Model),
        "model_blessing": component_spec.ChannelParameter(type=standard_artifacts.ModelBlessing),
        "infra_blessing": component_spec.ChannelParameter(type=standard_artifacts.InfraBlessing),
        "tflite_model": component_spec.ChannelParameter(type=TFLiteModel, optional=True),
    }
    OUTPUTS = {"pushed_model": component_spec.ChannelParameter(type=standard_artifacts.PushedModel)}  # noqa: RUF012
    TYPE_ANNOTATION = system_executions.Deploy


class Pusher(base_component.BaseComponent):
    """Pushes a blessed model to a folder that TF Serving watches.

    Args:
        model: The SavedModel.
        model_blessing: The Evaluator's verdict.
        infra_blessing: The InfraValidator's verdict.
        base_directory: The folder of the versions.
        keep_versions: How many stay.
        tflite_model: Pushed beside the SavedModel where it is blessed itself; None where there is none.
    """

    SPEC_CLASS = PusherSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(Executor)

    def __init__(
        self,
        model: BaseChannel,
        model_blessing: BaseChannel,
        infra_blessing: BaseChannel,
        base_directory: str,
        keep_versions: int,
        tflite_model: BaseChannel | None = None,
    ) -> None:
        tflite = {} if tflite_model is None else {"tflite_model": tflite_model}
        super().__init__(
            PusherSpec(
                model=model,
                model_blessing=model_blessing,
                infra_blessing=infra_blessing,
                base_directory=base_directory,
                keep_versions=keep_versions,
                run_id=RUN_ID,
                pushed_model=Channel(type=standard_artifacts.PushedModel),
                **tflite,
            )
        )
