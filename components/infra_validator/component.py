"""The InfraValidator component, between the Evaluator and the Pusher."""

from __future__ import annotations

from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import BaseChannel, Channel, component_spec, standard_artifacts

from components.infra_validator.executor import Executor
from components.infra_validator.settings import InfraValidatorSettings


class InfraValidatorSpec(component_spec.ComponentSpec):
    """Inputs, outputs and parameters of the InfraValidator."""

    PARAMETERS = {  # noqa: RUF012 (TFX reads a plain dict)
        "name": component_spec.ExecutionParameter(type=str),
        "settings": component_spec.ExecutionParameter(type=str),
    }
    INPUTS = {  # noqa: RUF012
        "model": component_spec.ChannelParameter(type=standard_artifacts.Model),
        "model_blessing": component_spec.ChannelParameter(type=standard_artifacts.ModelBlessing),
        "evaluation": component_spec.ChannelParameter(type=standard_artifacts.ModelEvaluation),
    }
    OUTPUTS = {"blessing": component_spec.ChannelParameter(type=standard_artifacts.InfraBlessing)}  # noqa: RUF012


class InfraValidator(base_component.BaseComponent):
    """Tries a blessed model in the code of our model server; TFX's own component needs Docker for that.

    Args:
        model: The SavedModel.
        model_blessing: The Evaluator's verdict; a model without its blessing is not tried.
        evaluation: The evaluation, with its sample of predictions.
        name: What requests call the model.
        settings: The recipe's `infra_validator` section.
    """

    SPEC_CLASS = InfraValidatorSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(Executor)

    def __init__(
        self,
        model: BaseChannel,
        model_blessing: BaseChannel,
        evaluation: BaseChannel,
        name: str,
        settings: InfraValidatorSettings,
    ) -> None:
        super().__init__(
            InfraValidatorSpec(
                model=model,
                model_blessing=model_blessing,
                evaluation=evaluation,
                name=name,
                settings=settings.model_dump_json(),
                blessing=Channel(type=standard_artifacts.InfraBlessing),
            )
        )
