"""The TF Lite component, between the Evaluator and the Pusher."""

from __future__ import annotations

from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import BaseChannel, Channel, component_spec, standard_artifacts

from components.tflite.artifacts import TFLiteModel
from components.tflite.executor import Executor
from components.tflite.settings import TFLiteSettings


class TFLiteSpec(component_spec.ComponentSpec):
    """Inputs, outputs and parameters of the TF Lite component."""

    PARAMETERS = {  # noqa: RUF012  # TFX's own form
        "name": component_spec.ExecutionParameter(type=str),
        "label": component_spec.ExecutionParameter(type=str),
        "settings": component_spec.ExecutionParameter(type=str),
    }
    INPUTS = {  # noqa: RUF012
        "model": component_spec.ChannelParameter(type=standard_artifacts.Model),
        "model_blessing": component_spec.ChannelParameter(type=standard_artifacts.ModelBlessing),
        "transformed_examples": component_spec.ChannelParameter(type=standard_artifacts.Examples),
        "transform_graph": component_spec.ChannelParameter(type=standard_artifacts.TransformGraph),
    }
    OUTPUTS = {"tflite_model": component_spec.ChannelParameter(type=TFLiteModel)}  # noqa: RUF012


class TFLite(base_component.BaseComponent):
    """Converts a blessed SavedModel and judges the result on the same rows.

    Args:
        model: The SavedModel, with a signature `predict_transformed`.
        model_blessing: The Evaluator's verdict; a model without its blessing is not converted.
        transformed_examples: `train` for the representative rows, `eval` to judge by.
        transform_graph: Says how to parse the transformed examples.
        name: The model's name, written into its metadata.
        label: The transformed feature that is the label.
        settings: The recipe's `tflite` section; its quantization is not `none`.
    """

    SPEC_CLASS = TFLiteSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(Executor)

    def __init__(
        self,
        model: BaseChannel,
        model_blessing: BaseChannel,
        transformed_examples: BaseChannel,
        transform_graph: BaseChannel,
        name: str,
        label: str,
        settings: TFLiteSettings,
    ) -> None:
        super().__init__(
            TFLiteSpec(
                model=model,
                model_blessing=model_blessing,
                transformed_examples=transformed_examples,
                transform_graph=transform_graph,
                name=name,
                label=label,
                settings=settings.model_dump_json(),
                tflite_model=Channel(type=TFLiteModel),
            )
        )
