"""How slices are judged: bars and losses in each of them, and gaps between them.

When judging by evidence, a slice refuses a model only if it is shown to miss its bar, since among many slices some
would miss it by chance alone. All tests of a candidate's slices are one family, corrected by Holm's method. Nothing
here needs TensorFlow.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from components.evaluation import evidence
from components.evaluation.evidence import gain_of, p_value, standard_error_of, standard_error_of_difference
from components.evaluation.settings import EvaluatorSettings
from contracts.evaluation import Slice

MAX_NAMED = 3


@dataclass(frozen=True)
class SliceVerdicts:
    """The verdicts on the slices.

    Attributes:
        slices: The slices, with the metrics whose bars they miss.
        missed: The reasons to refuse the model, each as part of a sentence.
        not_judged: What is too small to judge or cannot be decided, each as a sentence.
    """

    slices: list[Slice]
    missed: list[str]
    not_judged: list[str]


@dataclass(frozen=True)
class _Claim:
    """That a slice misses a bar, or that two slices are too far apart.

    Attributes:
        text: What is claimed, as part of a sentence.
        bar: What it should be, as part of a sentence.
        excess: By how much the estimate misses the bar; negative if it reaches it.
        standard_error: The standard error of the estimate; None if it is not known.
        place: The slice's position and the metric; None for a gap.
    """

    text: str
    bar: str
    excess: float
    standard_error: float | None
    place: tuple[int, str] | None = None

    @property
    def p_value(self) -> float:
        """The probability of an excess this large if the truth is on the bar."""
        return 1.0 if self.excess <= 0 or self.standard_error is None else p_value(self.excess, self.standard_error)


def judge_slices(
    slices: Sequence[Slice], small_slices: Sequence[tuple[str, int]], settings: EvaluatorSettings
) -> SliceVerdicts:
    """Compares slices with their bars.

    Args:
        slices: The slices of at least `min_slice_rows` rows.
        small_slices: The names of the others and their numbers of rows.
        settings: Bars and gaps, and whether points or evidence decide.
    """
    by_evidence = settings.judge_by == "evidence"
    claims = [*_bar_claims(slices, settings), *_gap_claims(slices, settings)]
    if not _has_bars(settings):
        return SliceVerdicts(list(slices), [], [])
    refusing = evidence.holm([claim.p_value for claim in claims])
    if not by_evidence:
        refusing = [claim.excess > 0 for claim in claims]
    missed = [claim for claim, refuses in zip(claims, refusing, strict=True) if refuses]
    unsure = [claim for claim, refuses in zip(claims, refusing, strict=True) if claim.excess > 0 and not refuses]
    expectation = "shown to miss its bar:" if by_evidence else "expected"
    return SliceVerdicts(
        slices=_marked(slices, missed, unsure),
        missed=[f"{claim.text}, {expectation} {claim.bar}" for claim in missed],
        not_judged=[*_small(small_slices, settings), *_unsure(unsure), *_undefined(slices, settings)],
    )


def _has_bars(settings: EvaluatorSettings) -> bool:
    return bool(settings.max_gap) or any(settings.slice_bar(name).gates for name in settings.metrics)


def _bar_claims(slices: Sequence[Slice], settings: EvaluatorSettings) -> Iterator[_Claim]:
    for position, part in enumerate(slices):
        for metric, value in part.metrics.items():
            bar, place = settings.slice_bar(metric), (position, metric)
            if value is None:
                continue
            text = f"{metric} of {_name(part)} is {value:.4f}"
            error = standard_error_of(part.intervals.get(metric))
            if bar.lower_bound is not None:
                yield _Claim(text, f"≥ {bar.lower_bound:g}", bar.lower_bound - value, error, place)
            if bar.upper_bound is not None:
                yield _Claim(text, f"≤ {bar.upper_bound:g}", value - bar.upper_bound, error, place)
            difference = part.differences.get(metric)
            if bar.max_loss is not None and difference is not None:
                loss = -gain_of(difference.value, settings.metrics[metric].direction)
                lost = f"{text}, {abs(loss):.4f} {'worse' if loss > 0 else 'better'} than the served model's"
                error = standard_error_of_difference(metric, difference, part.rows)
                yield _Claim(lost, f"a loss ≤ {bar.max_loss:g}", loss - bar.max_loss, error, place)


def _gap_claims(slices: Sequence[Slice], settings: EvaluatorSettings) -> Iterator[_Claim]:
    """A claim for each pair of slices by the same features, whether they are far apart or not."""
    for metric, limit in settings.max_gap.items():
        valued = [(value, part) for part in slices if (value := part.metrics.get(metric)) is not None]
        for pair in combinations(valued, 2):
            (lower, low), (higher, high) = sorted(pair, key=lambda valued_part: valued_part[0])
            if low.features != high.features:
                continue
            errors = [standard_error_of(part.intervals.get(metric)) for part in (low, high)]
            error = math.hypot(*(each for each in errors if each is not None)) if None not in errors else None
            text = f"{metric} of {_name(low)} is {lower:.4f}, {higher - lower:.4f} below that of {_name(high)}"
            yield _Claim(text, f"a gap ≤ {limit:g}", higher - lower - limit, error)


def _name(part: Slice) -> str:
    return f"{part.slice} ({part.rows:,} rows)"


def _marked(slices: Sequence[Slice], missed: Sequence[_Claim], unsure: Sequence[_Claim]) -> list[Slice]:
    def metrics(claims: Sequence[_Claim], position: int) -> list[str]:
        return list(dict.fromkeys(claim.place[1] for claim in claims if claim.place and claim.place[0] == position))

    return [
        part.model_copy(update={"missed": metrics(missed, position), "undecided": metrics(unsure, position)})
        for position, part in enumerate(slices)
    ]


def _small(small_slices: Sequence[tuple[str, int]], settings: EvaluatorSettings) -> list[str]:
    if not small_slices:
        return []
    named = listed([f"{name} ({rows:,})" for name, rows in small_slices])
    return [f"Not judged, because they have fewer than {settings.min_slice_rows} rows: {named}."]


def _unsure(claims: Sequence[_Claim]) -> list[str]:
    if not claims:
        return []
    # A metric of a slice is named only once, whichever of its bars it misses.
    texts = {claim.place or claim.text: claim.text for claim in reversed(claims)}
    return [f"Off their bars, but by no more than chance may explain: {listed(list(reversed(texts.values())))}."]


def _undefined(slices: Sequence[Slice], settings: EvaluatorSettings) -> list[str]:
    """Names values that are not defined, and differences that cannot be computed where others can."""
    compared = any(difference for part in slices for difference in part.differences.values())

    def unknown(part: Slice, metric: str) -> bool:
        bar = settings.slice_bar(metric)
        if part.metrics[metric] is None:
            return bar.gates or metric in settings.max_gap
        return compared and bar.max_loss is not None and part.differences.get(metric) is None

    named = [f"{metric} of {_name(part)}" for part in slices for metric in part.metrics if unknown(part, metric)]
    return [f"Not judged, because these rows do not suffice to compute it: {listed(named)}."] if named else []


def listed(texts: Sequence[str]) -> str:
    """Texts joined into one; only the first few are named."""
    more = [f"and {len(texts) - MAX_NAMED} more"] if len(texts) > MAX_NAMED else []
    return "; ".join([*texts[:MAX_NAMED], *more])
