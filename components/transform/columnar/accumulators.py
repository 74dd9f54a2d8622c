"""What a pass over the rows adds up: the operations of TFT that Beam would run as a Combine, a batch at a time.

What is private in tensorflow_transform 1.16 and 1.21 has no public form.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy.typing as npt
import tensorflow as tf
from tensorflow_transform import analyzer_nodes, nodes
from tensorflow_transform.analyzers import _VocabOrderingType as Ordering
from tensorflow_transform.beam import analyzer_impls

from components.engine import NotColumnar

Arrays = Sequence[npt.NDArray[Any]]


class Accumulator(ABC):
    """What one operation adds up."""

    def reduced(self, tensors: Sequence[tf.Tensor]) -> Sequence[tf.Tensor]:
        """What `add` needs of a batch's tensors; part of the graph that makes them."""
        return tensors

    @abstractmethod
    def add(self, arrays: Arrays) -> None:
        """Adds what `reduced` made of a batch; batches come one by one, in the order of the rows."""

    @abstractmethod
    def elements(self) -> list[Any]:
        """The elements of the PCollection that TFT's transform would return."""


class Combined(Accumulator):
    """One accumulator of a combiner of TFT."""

    def __init__(self, combiner: analyzer_nodes.Combiner) -> None:
        self._combiner = combiner
        self._sum = combiner.create_accumulator()

    def add(self, arrays: Arrays) -> None:
        """See `Accumulator`."""
        self._sum = self._combiner.add_input(self._sum, tuple(arrays))

    def elements(self) -> list[Any]:
        """See `Accumulator`."""
        return [self._sum]


class CombinedPerKey(Accumulator):
    """An accumulator of a combiner for each key."""

    def __init__(self, combiner: analyzer_nodes.Combiner) -> None:
        self._combiner = combiner
        self._sums: dict[Any, Any] = {}

    def add(self, arrays: Arrays) -> None:
        """See `Accumulator`; the first array holds the keys."""
        for key, values in analyzer_impls._split_inputs_by_key(arrays):
            total = self._sums[key] if key in self._sums else self._combiner.create_accumulator()
            self._sums[key] = self._combiner.add_input(total, values)

    def elements(self) -> list[Any]:
        """See `Accumulator`."""
        return list(self._sums.items())


class Packed(Accumulator):
    """Several combiners, whose accumulators become one dictionary."""

    def __init__(self, combiners: Sequence[Any]) -> None:
        self._combined = {one.label: (len(one.keys), Combined(one.combiner)) for one in combiners}

    def add(self, arrays: Arrays) -> None:
        """See `Accumulator`; the arrays of the combiners come one after the other."""
        start = 0
        for count, combined in self._combined.values():
            combined.add(arrays[start : start + count])
            start += count

    def elements(self) -> list[Any]:
        """See `Accumulator`."""
        return [{label: combined.elements()[0] for label, (_, combined) in self._combined.items()}]


class Counted(Accumulator):
    """How often each token occurs."""

    def __init__(self) -> None:
        self._counts: Counter[Any] = Counter()

    def reduced(self, tensors: Sequence[tf.Tensor]) -> Sequence[tf.Tensor]:
        """See `Accumulator`; counted in the graph, since Python's lock is not held there."""
        tokens, _, counts = tf.unique_with_counts(tensors[0], tf.int64)
        return tokens, counts

    def add(self, arrays: Arrays) -> None:
        """See `Accumulator`."""
        tokens, counts = arrays
        # Not `update`, which counts the elements of an iterable.
        for token, count in zip(tokens.tolist(), counts.tolist(), strict=True):
            self._counts[token] += count

    def elements(self) -> list[Any]:
        """See `Accumulator`."""
        return list(self._counts.items())


class Weighted(Accumulator):
    """The sum of each token's weights."""

    def __init__(self) -> None:
        self._sums: dict[Any, float] = {}

    def add(self, arrays: Arrays) -> None:
        """See `Accumulator`; TFT's graph has summed up the weights of a token in a batch."""
        for token, weight in analyzer_impls._flatten_value_and_weights_to_list_of_tuples(arrays):
            self._sums[token] = self._sums.get(token, 0) + weight

    def elements(self) -> list[Any]:
        """See `Accumulator`."""
        return list(self._sums.items())


class WithLabels(Accumulator):
    """How often each token and each label go together."""

    def __init__(self, weighted: bool) -> None:
        self._weighted = weighted
        self._combiner = analyzer_impls._WeightedMeanCombineFn(output_shape=(None,), compute_weighted=weighted)
        self._sums: dict[Any, Any] = {}

    def add(self, arrays: Arrays) -> None:
        """See `Accumulator`."""
        pairs: Iterable[Any] = analyzer_impls._flatten_to_key_and_means_accumulator_list(arrays, self._weighted)
        for token, part in pairs:
            total = self._sums[token] if token in self._sums else self._combiner.create_accumulator()
            self._sums[token] = self._combiner.add_input(total, part)

    def elements(self) -> list[Any]:
        """See `Accumulator`."""
        return [(token, self._combiner.extract_output(total)) for token, total in self._sums.items()]


def accumulator_of(operation: nodes.OperationDef) -> Accumulator:
    """What adds up an operation.

    Raises:
        NotColumnar: It is a vocabulary of a kind that is not known here.
    """
    if isinstance(operation, analyzer_nodes.PackedCombineAccumulate):
        return Packed(operation.combiners)
    if isinstance(operation, analyzer_nodes.CacheableCombineAccumulate):
        return Combined(operation.combiner)
    if isinstance(operation, analyzer_nodes.CacheableCombinePerKeyAccumulate):
        return CombinedPerKey(operation.combiner)
    kinds: dict[int, Callable[[], Accumulator]] = {
        Ordering.FREQUENCY: Counted,
        Ordering.WEIGHTED_FREQUENCY: Weighted,
        Ordering.MUTUAL_INFORMATION: lambda: WithLabels(weighted=False),
        Ordering.WEIGHTED_MUTUAL_INFORMATION: lambda: WithLabels(weighted=True),
    }
    if operation.vocab_ordering_type not in kinds:
        raise NotColumnar(f"{operation.label} orders its words in a way that is not known here")
    return kinds[operation.vocab_ordering_type]()


def keys_of(operation: nodes.OperationDef, extracted: tuple[str, ...]) -> tuple[str, ...]:
    """The graph's outputs that an operation adds up.

    Args:
        operation: It.
        extracted: Those that TFT extracts for it; a packed operation names its own.
    """
    if isinstance(operation, analyzer_nodes.PackedCombineAccumulate):
        return tuple(key for one in operation.combiners for key in one.keys)
    return extracted


ACCUMULATES = (
    analyzer_nodes.PackedCombineAccumulate,
    analyzer_nodes.CacheableCombineAccumulate,
    analyzer_nodes.CacheableCombinePerKeyAccumulate,
    analyzer_nodes.VocabularyAccumulate,
)
"""The operations that add up."""
