"""Every operation of TFT's analysis graph that comes after the passes over the rows.

What Beam would hold as a PCollection is a list here: an operation takes lists and returns a list for each output.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

import tensorflow as tf
from tensorflow_transform import analyzer_nodes, nodes, tf_utils
from tensorflow_transform.beam import analyzer_impls, beam_nodes, impl

from components.transform.columnar import vocabularies
from components.transform.columnar.vocabularies import Elements


@dataclass(frozen=True)
class Traced:
    """A `preprocessing_fn` as TFT has traced it.

    Attributes:
        preprocessing_fn: It.
        specs: The types of its inputs.
        graph: Its graph.
        fingerprint: Tells whether it is traced to the same analyzers again.
        folder: For models and vocabularies on the way.
    """

    preprocessing_fn: Callable[..., Any]
    specs: Mapping[str, tf.TypeSpec]
    graph: tf.Graph
    fingerprint: Mapping[str, Any]
    folder: str


Outputs: TypeAlias = tuple[Elements, ...]
Operation: TypeAlias = Callable[[Any, Traced, Outputs], Outputs]


def _saved_model(operation: beam_nodes.CreateSavedModel, traced: Traced, inputs: Outputs) -> Outputs:
    signature = operation.output_signature
    between = all(isinstance(tensor, tf.Tensor) for tensor in signature.values())
    path = impl._create_v2_saved_model(
        impl._get_tensor_replacement_map(None, *(binding for [binding] in inputs)),
        traced.folder,
        traced.preprocessing_fn,
        traced.specs,
        traced.fingerprint,
        {key: tensor.name for key, tensor in signature.items()} if between else {},
        None,
    )
    return ([path],)


def _binding(operation: beam_nodes.CreateTensorBinding, traced: Traced, inputs: Outputs) -> Outputs:
    [value] = inputs[0]
    bound = impl._TensorBinding(value, operation.tensor_name, operation.dtype_enum, operation.is_asset_filepath)
    return ([bound],)


def _merged(combiner: analyzer_nodes.Combiner, accumulators: Elements) -> Any:
    merge = analyzer_impls._CombinerWrapper(combiner, is_combining_accumulators=True)
    total = merge.create_accumulator()
    for accumulator in accumulators:
        total = merge.add_input(total, accumulator)
    return merge.extract_output(total)


def _packed(operation: analyzer_nodes.PackedCombineMerge, traced: Traced, inputs: Outputs) -> Outputs:
    by_key: dict[str, Elements] = {}
    for key, accumulator in inputs[0]:
        by_key.setdefault(key, []).append(accumulator)
    return ([{one.label: _merged(one.combiner, by_key[one.keys[0]]) for one in operation.combiners}],)


def _extracted(operation: analyzer_nodes.AnalyzerDef, traced: Traced, inputs: Outputs) -> Outputs:
    [outputs] = inputs[0]
    if len(outputs) != operation.num_outputs:
        raise ValueError(f"{operation.label} has {operation.num_outputs} outputs; its combiner made {len(outputs)}.")
    return tuple([output] for output in outputs)


def _per_key(operation: analyzer_nodes.CacheableCombinePerKeyMerge, traced: Traced, inputs: Outputs) -> Outputs:
    return ([(key, _merged(operation.combiner, [accumulator])) for key, accumulator in inputs[0]],)


def _keys(operation: analyzer_nodes.CacheableCombinePerKeyFormatKeys, traced: Traced, inputs: Outputs) -> Outputs:
    dtypes = [info.dtype for info in operation.combiner.output_tensor_infos()]
    by_tag = {output.tag: output.value for output in analyzer_impls._merge_outputs_by_key(inputs[0], dtypes)}
    return tuple([by_tag[tag]] for tag in ("key", *map(str, range(len(dtypes)))))


def _large(operation: analyzer_nodes.CacheableCombinePerKeyFormatLarge, traced: Traced, inputs: Outputs) -> Outputs:
    as_text = tf.compat.as_str_any
    return ([(as_text(",".join(map(as_text, values))), key) for key, values in inputs[0]],)


def _joined(operation: nodes.OperationDef, traced: Traced, inputs: Outputs) -> Outputs:
    [boundaries] = inputs[0]
    return tuple([part] for part in analyzer_impls._join_boundary_rows(boundaries))


def _reserved(operation: analyzer_nodes.ExtractVocabularyReservedTokens, traced: Traced, inputs: Outputs) -> Outputs:
    return ([[tf_utils.fetch_vocabulary_reserved_tokens(traced.graph, operation.name)]],)


OPERATIONS: dict[type[nodes.OperationDef], Operation] = {
    beam_nodes.CreateSavedModel: _saved_model,
    beam_nodes.CreateTensorBinding: _binding,
    beam_nodes.ExtractFromDict: lambda operation, traced, inputs: ([one[operation.keys] for one in inputs[0]],),
    beam_nodes.Flatten: lambda operation, traced, inputs: (list(chain(*inputs)),),
    analyzer_nodes.AddKey: lambda operation, traced, inputs: ([(operation.key, one) for one in inputs[0]],),
    analyzer_nodes.FlattenLists: lambda operation, traced, inputs: (list(chain(*inputs[0])),),
    analyzer_nodes.PackedCombineMerge: _packed,
    analyzer_nodes.CacheableCombineMerge: lambda op, traced, inputs: ([_merged(op.combiner, inputs[0])],),
    analyzer_nodes.ExtractCombineMergeOutputs: _extracted,
    analyzer_nodes.ExtractPackedCombineMergeOutputs: _extracted,
    analyzer_nodes.CacheableCombinePerKeyMerge: _per_key,
    analyzer_nodes.CacheableCombinePerKeyFormatKeys: _keys,
    analyzer_nodes.CacheableCombinePerKeyFormatLarge: _large,
    analyzer_nodes.ScaleAndFlattenPerKeyBucketBouandaries: _joined,
    analyzer_nodes.VocabularyMerge: lambda op, traced, inputs: (vocabularies.merged(op, *inputs),),
    analyzer_nodes.VocabularyCount: lambda op, traced, inputs: (vocabularies.counted(op, *inputs),),
    analyzer_nodes.VocabularyPrune: lambda op, traced, inputs: (vocabularies.pruned(op, *inputs),),
    analyzer_nodes.VocabularyOrderAndWrite: lambda op, traced, inputs: (
        vocabularies.written(op, traced.folder, *inputs),
    ),
    analyzer_nodes.ExtractVocabularyReservedTokens: _reserved,
}
"""By the class of the operation, as TFT registers its Beam transforms."""
