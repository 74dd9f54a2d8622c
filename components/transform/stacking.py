"""Many columns of numbers as one input of the transform graph: a graph's costs are those of its inputs and operations.

TFT traces a recipe's `preprocessing_fn` five times, each time with three placeholders a sparse column and as many
operations, loads the result several times, and so do the Trainer, the Evaluator and the server. Of 500 columns that is
half a minute of Transform alone. Columns that `preprocessing_fn` takes by `tabular.tensors.numbers_of`, and in no other
way, are therefore analyzed as one dense tensor. The transform graph that TFT knows still takes each raw feature by
itself; the one beneath, which does the work, lies beside it and is what our own nodes use and what models contain.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import tensorflow as tf
import tensorflow_transform as tft
from tensorflow_metadata.proto.v0 import schema_pb2
from tensorflow_transform import impl_helper
from tensorflow_transform.saved.saved_transform_io_v2 import SavedModelLoader
from tensorflow_transform.tf_metadata import schema_utils
from tfx_bsl.tfxio.tensor_adapter import TensorAdapterConfig

from components.tabular.tensors import RawFeature, RawInputs, side_by_side
from contracts.errors import DataError, SettingsError

LEAST = 32
"""With fewer columns than these there is nothing to gain."""

INPUT = "numbers_side_by_side"
"""The name of the one input; a raw feature of this name turns stacking off."""

FOLDER = "stacked"
"""The folder in a transform graph for the graph beneath."""

COLUMNS_FILE = "columns.json"

Tensors: TypeAlias = Mapping[str, tf.Tensor]
PreprocessingFn: TypeAlias = Callable[[Mapping[str, RawFeature]], Mapping[str, Any]]


def stackable(preprocessing_fn: PreprocessingFn, schema: schema_pb2.Schema, temporary: str) -> tuple[str, ...]:
    """The columns that `preprocessing_fn` takes side by side alone, in the schema's order; none if they are few.

    Args:
        preprocessing_fn: The recipe's; it is traced once if the schema has enough columns.
        schema: The raw schema.
        temporary: A folder that tracing may write to.
    """
    specs = _type_specs(schema)
    candidates = [feature.name for feature in schema.feature if _is_candidate(feature, specs.get(feature.name))]
    if len(candidates) < LEAST or INPUT in specs:
        return ()
    seen: list[RawInputs] = []

    def traced(inputs: dict[str, RawFeature]) -> Mapping[str, Any]:
        stack = inputs.pop(INPUT)
        seen.append(RawInputs(inputs, stack, candidates, lambda name: _placeholder(specs[name])))
        return preprocessing_fn(seen[-1])

    others = {name: spec for name, spec in specs.items() if name not in candidates}
    reduced = {**others, INPUT: tf.TensorSpec([None, len(candidates)], tf.float32)}
    impl_helper.trace_preprocessing_function(traced, reduced, use_tf_compat_v1=False, base_temp_dir=temporary)
    together = seen[-1].taken_together - seen[-1].data.keys()
    return tuple(name for name in candidates if name in together) if len(together) >= LEAST else ()


def _is_candidate(feature: schema_pb2.Feature, spec: tf.TypeSpec | None) -> bool:
    """Whether the column holds one number a row at most, and is there in requests."""
    if spec is None or feature.type not in (schema_pb2.FLOAT, schema_pb2.INT) or feature.not_in_environment:
        return False
    if isinstance(spec, tf.SparseTensorSpec):
        return bool(feature.value_count.max == 1)
    return isinstance(spec, tf.TensorSpec) and tf.TensorShape(spec.shape[1:]).num_elements() == 1


def _type_specs(schema: schema_pb2.Schema) -> dict[str, tf.TypeSpec]:
    spec = schema_utils.schema_as_feature_spec(schema).feature_spec
    return impl_helper.get_type_specs_from_feature_specs(spec)  # type: ignore[no-any-return]


def _placeholder(spec: tf.TypeSpec) -> RawFeature:
    if isinstance(spec, tf.SparseTensorSpec):
        return tf.compat.v1.sparse_placeholder(spec.dtype, spec.shape)
    return tf.compat.v1.placeholder(spec.dtype, spec.shape)


def on_stack(preprocessing_fn: PreprocessingFn, columns: Sequence[str]) -> PreprocessingFn:
    """The same function of the stack and the other features."""
    return functools.partial(_on_stack, preprocessing_fn, tuple(columns))


def _on_stack(
    preprocessing_fn: PreprocessingFn, columns: tuple[str, ...], inputs: Mapping[str, RawFeature]
) -> Mapping[str, Any]:
    def alone(name: str) -> RawFeature:
        raise SettingsError(
            f"preprocessing_fn takes the column {name} alone, and took it with others when it was traced before.",
            "Let what it does depend on nothing but its inputs.",
        )

    others = {name: feature for name, feature in inputs.items() if name != INPUT}
    return preprocessing_fn(RawInputs(others, inputs[INPUT], columns, alone))


def adapter_config(plain: TensorAdapterConfig, columns: Sequence[str]) -> TensorAdapterConfig:
    """What TFT has to know of batches that `stacked` makes.

    Args:
        plain: The same of the raw batches.
        columns: The columns that are stacked.
    """
    inside = set(columns)
    fields = [field for field in plain.arrow_schema if field.name not in inside]
    representation = schema_pb2.TensorRepresentation()
    representation.dense_tensor.column_name = INPUT
    representation.dense_tensor.shape.dim.add(size=len(columns))
    representations = {name: one for name, one in plain.tensor_representations.items() if name not in inside}
    return TensorAdapterConfig(
        pa.schema([*fields, pa.field(INPUT, pa.large_list(pa.float32()))]), {**representations, INPUT: representation}
    )


def stacked(batch: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
    """A batch in which one column of lists has the numbers of many, NaN where missing.

    Raises:
        DataError: A row has several values in one of the columns.
    """
    numbers = np.full([batch.num_rows, len(columns)], np.nan, np.float32)
    for place, name in enumerate(columns):
        _fill(numbers[:, place], batch.column(name), name)
    offsets = np.arange(batch.num_rows + 1, dtype=np.int64) * len(columns)
    lists = pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(numbers.ravel()))
    inside = set(columns)
    others = [name for name in batch.schema.names if name not in inside]
    return pa.RecordBatch.from_arrays([*map(batch.column, others), lists], [*others, INPUT])


def _fill(target: npt.NDArray[Any], column: pa.Array, name: str) -> None:
    values = column.flatten().to_numpy(zero_copy_only=False)
    lengths = pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False)
    if len(values) == len(lengths) and lengths.all():
        target[:] = values
        return
    check_width(name, lengths.max(initial=0))
    target[lengths == 1] = values


def check_width(name: str, width: int) -> None:
    """Checks how many values a stacked column has in a row at most.

    Raises:
        DataError: It has several.
    """
    if width > 1:
        raise DataError(
            f"The column {name} has {width} values in a row, and its schema allows one.",
            "Mend the data, or raise value_count.max in the schema.",
        )


def write_unstacked(graph_path: str, schema: schema_pb2.Schema, columns: Sequence[str]) -> None:
    """Moves the graph that TFT wrote for stacked columns aside, and writes one that takes each raw feature by itself.

    Args:
        graph_path: The folder of a TFTransformOutput, whose graph takes `INPUT`.
        schema: The raw schema.
        columns: The columns that are stacked.
    """
    beneath, unstacked = _beneath(graph_path), os.path.join(graph_path, tft.TFTransformOutput.TRANSFORM_FN_DIR)
    os.makedirs(os.path.dirname(beneath))
    shutil.move(unstacked, beneath)
    Path(os.path.dirname(beneath), COLUMNS_FILE).write_text(json.dumps(list(columns)), encoding="utf-8")
    transform = RawTransform(graph_path)

    @tf.function(input_signature=[_type_specs(schema)], autograph=False)
    def transform_fn(inputs: Mapping[str, RawFeature]) -> Tensors:
        return transform.by_sources(inputs)

    module = tf.Module()
    module.beneath = transform.trackable
    module.transform_fn = transform_fn.get_concrete_function()
    # Without signatures of its own: TFT calls `transform_fn`.
    tf.saved_model.save(module, unstacked, signatures={})


def _beneath(graph_path: str) -> str:
    return os.path.join(graph_path, FOLDER, tft.TFTransformOutput.TRANSFORM_FN_DIR)


class RawTransform:
    """A saved transform graph, applied to raw features; in the quickest way that it offers.

    Attributes:
        columns: The raw features that it takes as one stack; empty if it takes each by itself.
        trackable: What holds its tables and variables; part of a SavedModel that contains the graph.

    Args:
        graph_path: The folder of a TFTransformOutput.
    """

    def __init__(self, graph_path: str) -> None:
        beneath = _beneath(graph_path)
        columns = Path(os.path.dirname(beneath), COLUMNS_FILE)
        self.columns: tuple[str, ...] = ()
        if columns.exists():
            self.columns = tuple(json.loads(columns.read_text(encoding="utf-8")))
            self._loader = SavedModelLoader(beneath)
            self.trackable = self._loader._imported
        else:
            layer = tft.TFTransformOutput(graph_path).transform_features_layer()
            # Not the layer itself: Keras would cast raw floats to the precision of the global policy.
            self._loader, self.trackable = layer._saved_model_loader, layer

    def __call__(self, features: Mapping[str, RawFeature]) -> dict[str, tf.Tensor]:
        """The transformed features that can be computed from raw ones, as `tf.io.parse_example` gives these."""
        present = [name for name in self.columns if name in features]
        if not present:
            return dict(self._loader.apply_transform_model(features))
        if len(present) < len(self.columns):
            missing = next(name for name in self.columns if name not in features)
            raise DataError(f"The transform graph needs the column {missing}.", "Give it, or transform again.")
        return self.on_stack(features, side_by_side([features[name] for name in self.columns]))

    def on_stack(self, features: Mapping[str, RawFeature], stack: tf.Tensor) -> dict[str, tf.Tensor]:
        """The same, where `stack`, float32 [batch, columns], holds the `columns`, NaN where missing."""
        inside = set(self.columns)
        others = {name: feature for name, feature in features.items() if name not in inside}
        return dict(self._loader.apply_transform_model({INPUT: stack, **others}))

    def by_sources(self, features: Mapping[str, RawFeature]) -> dict[str, tf.Tensor]:
        """The same of all raw features, in a graph that shows which transformed feature depends on which of them."""
        stack = side_by_side([features[name] for name in self.columns])
        inputs = {INPUT: stack, **{name: one for name, one in features.items() if name not in set(self.columns)}}
        groups: dict[frozenset[str], list[str]] = {}
        for name in self._loader.structured_outputs:
            groups.setdefault(frozenset(self._inputs_of([name])), []).append(name)
        outputs: dict[str, tf.Tensor] = {}
        for needed, names in groups.items():
            # One call for all would make each of them depend on everything, and requests have no label.
            found = self._loader.apply_transform_model({name: inputs[name] for name in needed or inputs})
            outputs |= {name: found[name] for name in names}
        return outputs

    def sources(self, transformed: Iterable[str]) -> list[str]:
        """The raw features that transformed ones are computed from."""
        names = self._inputs_of(transformed)
        if INPUT not in names:
            return names
        return sorted([name for name in names if name != INPUT] + list(self.columns))

    def _inputs_of(self, transformed: Iterable[str]) -> list[str]:
        # TFT knows them, since it drops what cannot be computed from its inputs, but has no public way to ask for them.
        input_ids = {id(tensor) for name in transformed for tensor in self._loader._output_to_inputs_map[name]}
        return [
            name
            for name, tensors in self._loader._structured_inputs.items()
            if any(id(tensor) in input_ids for tensor in tf.nest.flatten(tensors, expand_composites=True))
        ]
