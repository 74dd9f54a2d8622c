"""TFX's Trainer, which also reads the raw rows: they give the exported model its warm-up requests and class names."""

from __future__ import annotations

import json
from typing import Any

from tfx.components.trainer import executor
from tfx.components.trainer.fn_args_utils import FnArgs
from tfx.dsl.components.base import base_component, executor_spec
from tfx.proto import trainer_pb2
from tfx.types import Artifact, BaseChannel, Channel, component_spec, standard_artifacts
from tfx.types import standard_component_specs as standard
from tfx.utils import json_utils
from tfx.utils.typing_utils import ArtifactMultiDict as Artifacts

from components.artifacts import split_files
from components.trainer.processes import SURROUNDINGS, Surroundings

RAW_EXAMPLES = "raw_examples"

CLASS_NAMES = "class_names"
"""The custom property of raw Examples, and the key in `custom_config`, that hold the names of the classes by id."""


class TrainerSpec(standard.TrainerSpec):
    """TFX's parameters, inputs and outputs, and the raw Examples."""

    INPUTS = {  # noqa: RUF012 (TFX reads a plain dict)
        **standard.TrainerSpec.INPUTS,
        RAW_EXAMPLES: component_spec.ChannelParameter(type=standard_artifacts.Examples, optional=True),
    }


class Executor(executor.GenericExecutor):
    """Calls `run_fn` as TFX does; its `custom_config` also holds what the raw Examples provide."""

    def Do(self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]) -> None:  # noqa: N802
        """Trains, see `components.trainer.run.run_fn`.

        With raw Examples, `custom_config` gets `raw_eval_files`, the files of the raw `eval` split, and `class_names`,
        from the custom property of that name (a JSON list). It also gets the Surroundings that `exec_properties` may
        hold.
        """
        config = json_utils.loads(exec_properties[standard.CUSTOM_CONFIG_KEY])
        for examples in input_dict.get(RAW_EXAMPLES, []):
            config |= _config_from(examples)
        super().Do(input_dict, output_dict, exec_properties | {standard.CUSTOM_CONFIG_KEY: json_utils.dumps(config)})

    def _GetFnArgs(self, inputs: Artifacts, outputs: Artifacts, exec_properties: dict[str, Any]) -> FnArgs:  # noqa: N802
        fn_args = super()._GetFnArgs(inputs, outputs, exec_properties)
        # They are not JSON, so they cannot be passed with the rest.
        fn_args.custom_config[SURROUNDINGS] = exec_properties.get(SURROUNDINGS, Surroundings())
        return fn_args


class Trainer(base_component.BaseComponent):
    """Trains a model on the transformed `train` split and exports it.

    Outputs:
        model: The SavedModel.
        model_run: The history and TensorBoard files of the training.

    Args:
        run_fn: Import path of the function that trains.
        examples: Transformed Examples with the splits `train` and `eval`.
        transform_graph: The transform graph they were made with.
        raw_examples: The raw Examples they were made from; without them the model has no warm-up requests and its
            classes have no names.
        custom_config: Further arguments of `run_fn`, in JSON's types.
    """

    SPEC_CLASS = TrainerSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(Executor)

    def __init__(
        self,
        run_fn: str,
        examples: BaseChannel,
        transform_graph: BaseChannel,
        custom_config: dict[str, Any],
        raw_examples: BaseChannel | None = None,
    ) -> None:
        super().__init__(
            TrainerSpec(
                run_fn=run_fn,
                examples=examples,
                transform_graph=transform_graph,
                raw_examples=raw_examples,
                train_args=trainer_pb2.TrainArgs(splits=["train"]),
                eval_args=trainer_pb2.EvalArgs(splits=["eval"]),
                custom_config=json_utils.dumps(custom_config),
                model=Channel(type=standard_artifacts.Model),
                model_run=Channel(type=standard_artifacts.ModelRun),
            )
        )


def _config_from(examples: Artifact) -> dict[str, Any]:
    config: dict[str, Any] = {"raw_eval_files": split_files(examples, "eval")}
    if names := examples.get_string_custom_property(CLASS_NAMES):
        config[CLASS_NAMES] = json.loads(names)
    return config
