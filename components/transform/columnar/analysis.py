"""What TFT's `AnalyzeDataset` and `WriteTransformFn` do on Beam, by columns."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf
import tensorflow_transform as tft
import tensorflow_transform.beam as tft_beam
from tensorflow_transform import analyzer_nodes, annotators, graph_tools, impl_helper, nodes
from tensorflow_transform.beam import analysis_graph_builder, beam_nodes
from tensorflow_transform.tf_metadata import metadata_io

from components.engine import NotColumnar
from components.transform.columnar.accumulators import (
    ACCUMULATES,
    Accumulator,
    accumulator_of,
    keys_of,
)
from components.transform.columnar.operations import OPERATIONS, Traced
from components.transform.columnar.rows import Rows
from components.transform.training_rows import TrainingRows


def analyze(preprocessing_fn: Callable[..., Any], training_rows: TrainingRows, graph_path: str, folder: str) -> None:
    """Writes the transform graph of a `preprocessing_fn` and the schema of what it makes.

    Args:
        preprocessing_fn: Of the inputs that `training_rows` has.
        training_rows: What is analyzed.
        graph_path: The folder to write, of a TFTransformOutput.
        folder: For models and vocabularies on the way.

    Raises:
        NotColumnar: This must be analyzed by TFT on Beam; nothing was written.
        Exception: Whatever `preprocessing_fn` raises.
    """
    with tft_beam.Context(temp_dir=folder):
        folder = tft_beam.Context.create_base_temp_dir()
    rows = Rows(training_rows)
    graph, inputs, outputs = impl_helper.trace_preprocessing_function(
        preprocessing_fn, rows.specs, use_tf_compat_v1=False, base_temp_dir=folder
    )
    if not isinstance(outputs, dict) or not outputs or graph.get_collection(tf.compat.v1.GraphKeys.TRAINABLE_VARIABLES):
        raise NotColumnar("TFT refuses what preprocessing_fn returns, and says why itself")
    assets = annotators.get_asset_annotations(graph)
    annotators.clear_asset_annotations(graph)
    fingerprint = graph_tools.get_analyzers_fingerprint(graph, inputs)
    traced = Traced(preprocessing_fn, rows.specs, graph, fingerprint, folder)
    model, _, _ = analysis_graph_builder.build(graph, inputs, outputs)

    plan = _Plan()
    nodes.Traverser(plan).visit_value_node(model)
    [path] = nodes.Traverser(_Analysis(plan.added_up, rows, traced)).visit_value_node(model)
    _publish(path, graph_path, assets)


def _publish(model: str, graph_path: str, assets: Mapping[str, str]) -> None:
    metadata = os.path.join(model, impl_helper.METADATA_DIR_NAME)
    target = os.path.join(graph_path, tft.TFTransformOutput.TRANSFORMED_METADATA_DIR)
    metadata_io.write_metadata(metadata_io.read_metadata(metadata), target)
    if assets:
        with tf.io.gfile.GFile(os.path.join(target, tft.TFTransformOutput.ASSET_MAP), "w") as file:
            file.write(json.dumps(assets))
    shutil.copytree(
        model,
        os.path.join(graph_path, tft.TFTransformOutput.TRANSFORM_FN_DIR),
        ignore=shutil.ignore_patterns(impl_helper.METADATA_DIR_NAME),
    )


class _Plan(nodes.Visitor):
    """Looks through the graph before any row is read: what each pass has to add up, and whether all of it is known.

    A value is where it comes from: the label of the pass, and the keys that are extracted from its outputs.

    Attributes:
        added_up: The operations of each pass with what they add up, by its label.
    """

    def __init__(self) -> None:
        self.added_up: dict[str, list[tuple[nodes.OperationDef, tuple[str, ...]]]] = {}

    def visit(self, operation: nodes.OperationDef, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """See TFT's `Visitor`."""
        if isinstance(operation, beam_nodes.ApplySavedModel):
            self.added_up[operation.label] = []
            return ((operation.label, ()),)
        source = next((value for value in inputs if value), None)
        if source and isinstance(operation, beam_nodes.ExtractFromDict):
            return ((source[0], operation.keys),)
        if source and isinstance(operation, ACCUMULATES):
            label, extracted = source
            self.added_up[label].append((operation, keys_of(operation, extracted)))
        else:
            _check_known(operation, source is not None)
        return (None,) * int(operation.num_outputs)

    def validate_value(self, value: Any) -> None:
        """See TFT's `Visitor`."""


def _check_known(operation: nodes.OperationDef, takes_rows: bool) -> None:
    if isinstance(operation, analyzer_nodes.PTransform):
        raise NotColumnar(f"{operation.label} is a transform of Beam")
    if isinstance(operation, analyzer_nodes.VocabularyPrune) and operation.key_fn:
        raise NotColumnar(f"{operation.label} has a key_fn")
    known = type(operation) in OPERATIONS or isinstance(operation, beam_nodes.ExtractInputForSavedModel)
    if takes_rows or not known:
        raise NotColumnar(f"{type(operation).__name__} is not known here")


class _Analysis(nodes.Visitor):
    """Works the graph off: passes over the rows where models are applied to them, operations between them.

    A value is a list of what Beam would hold; that of a pass is what its operations have added up, by their labels.
    """

    def __init__(
        self, added_up: Mapping[str, list[tuple[nodes.OperationDef, tuple[str, ...]]]], rows: Rows, traced: Traced
    ) -> None:
        self._added_up, self._rows, self._traced = added_up, rows, traced

    def visit(self, operation: nodes.OperationDef, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """See TFT's `Visitor`."""
        if isinstance(operation, beam_nodes.ExtractInputForSavedModel):
            return (None,)
        if isinstance(operation, beam_nodes.ApplySavedModel):
            return (self._pass(operation.label, *inputs[0]),)
        if isinstance(inputs[0] if inputs else None, dict):
            # On the way from a pass to what it has added up.
            return (inputs[0][operation.label] if isinstance(operation, ACCUMULATES) else inputs[0],)
        return OPERATIONS[type(operation)](operation, self._traced, inputs)

    def _pass(self, label: str, model: str) -> dict[str, list[Any]]:
        accumulators: dict[tuple[str, ...], list[Accumulator]] = {}
        by_label = {}
        for operation, keys in self._added_up[label]:
            by_label[operation.label] = accumulator_of(operation)
            accumulators.setdefault(keys, []).append(by_label[operation.label])
        if by_label:
            self._rows.accumulate(model, accumulators)
        return {name: accumulator.elements() for name, accumulator in by_label.items()}

    def validate_value(self, value: Any) -> None:
        """See TFT's `Visitor`."""
