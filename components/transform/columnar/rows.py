"""Passes over the rows: parsed, and put through the graph that makes what analyzers need, on all cores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow_transform import impl_helper
from tensorflow_transform.saved.saved_transform_io_v2 import SavedModelLoader
from tensorflow_transform.tf_metadata import schema_utils
from tfx_bsl.tfxio.tensor_adapter import TensorAdapter

from components.cores import on_all_cores
from components.engine import NotColumnar
from components.statistics.columns import mean_bytes, read_serialized
from components.tabular.tensors import RawFeature, side_by_side
from components.transform import applying, stacking
from components.transform.columnar.accumulators import Accumulator
from components.transform.training_rows import TrainingRows


class Rows:
    """The training rows, parsed as Beam would hand them to TFT.

    Attributes:
        specs: The types of what `preprocessing_fn` gets.

    Args:
        rows: What is read.

    Raises:
        NotColumnar: The schema asks for features that are parsed in another way.
    """

    def __init__(self, rows: TrainingRows) -> None:
        self._files, self._columns = rows.files, rows.stacked
        self._spec = schema_utils.schema_as_feature_spec(rows.schema).feature_spec
        self.specs: Mapping[str, tf.TypeSpec] = TensorAdapter(rows.adapter).OriginalTypeSpecs()
        parsed = impl_helper.get_type_specs_from_feature_specs(self._spec)
        others = {name: spec for name, spec in parsed.items() if name not in set(self._columns)}
        if others != {name: spec for name, spec in self.specs.items() if not self._columns or name != stacking.INPUT}:
            raise NotColumnar("the schema's features are read in a way that is not known here")

    def accumulate(self, model: str, accumulators: Mapping[tuple[str, ...], Sequence[Accumulator]]) -> None:
        """Adds up all rows.

        Batches are transformed on all cores and added up in this thread, in their order: the results depend neither on
        the number of cores nor on time.

        Args:
            model: The folder of a SavedModel of TFT, which makes of the rows what is added up.
            accumulators: By the keys of the model's outputs that they add up.
        """
        reduce = self._graph(model, accumulators)
        rows = applying.batch_rows(mean_bytes(self._files))

        def work(serialized: Any) -> list[list[Any]]:
            try:
                widths, reduced = reduce(tf.constant(serialized, tf.string))
            except tf.errors.InvalidArgumentError:
                # Several values in a row may be what the stack cannot hold; TensorFlow would not name the column.
                self._check(self._widths(tf.io.parse_example(serialized, self._spec)))
                raise
            self._check(widths)
            return [[np.asarray(tensor) for tensor in tensors] for tensors in reduced]

        flat = [one for several in accumulators.values() for one in several]
        for batch in on_all_cores(work, read_serialized(self._files, rows)):
            for accumulator, arrays in zip(flat, batch, strict=True):
                accumulator.add(arrays)

    def _graph(self, model: str, accumulators: Mapping[tuple[str, ...], Sequence[Accumulator]]) -> Any:
        loader = SavedModelLoader(model)
        names = [name for name in self._spec if name not in set(self._columns)]
        loader.finalize([*names, *([stacking.INPUT] if self._columns else [])], loader.structured_outputs)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
        def reduce(serialized: tf.Tensor) -> Any:
            widths, features = self._inputs(tf.io.parse_example(serialized, self._spec))
            outputs = loader.apply_transform_model(features)
            reduced = [
                list(one.reduced([outputs[key] for key in keys]))
                for keys, several in accumulators.items()
                for one in several
            ]
            return widths, reduced

        concrete = reduce.get_concrete_function()
        # The function alone does not hold the model's tables.
        concrete.held = loader
        return concrete

    def _inputs(self, features: Mapping[str, RawFeature]) -> tuple[tf.Tensor, dict[str, RawFeature]]:
        """The most values that a row has in each stacked column, and what `preprocessing_fn` gets."""
        stacked = [features[name] for name in self._columns]
        inside = set(self._columns)
        others = {name: feature for name, feature in features.items() if name not in inside}
        stack = {stacking.INPUT: side_by_side(stacked)} if stacked else {}
        return self._widths(features), others | stack

    def _widths(self, features: Mapping[str, RawFeature]) -> tf.Tensor:
        stacked = [features[name] for name in self._columns]
        widths = [one.dense_shape[1] if isinstance(one, tf.SparseTensor) else 1 for one in stacked]
        return tf.stack([tf.constant(0, tf.int64), *widths])

    def _check(self, widths: tf.Tensor) -> None:
        for name, width in zip(self._columns, np.asarray(widths)[1:].tolist(), strict=True):
            stacking.check_width(name, width)
