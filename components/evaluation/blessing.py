"""Whether a model may be pushed, and why, in a sentence with the numbers.

Each metric must reach its bounds. A metric with a `max_loss` is also compared with the served model's, and with that of
the reference: the best model served so far, with which the chain of models that were each allowed a loss began. Without
the reference, losses would add up from one push to the next. Clinical trials have the same problem and call it
bio-creep: D'Agostino, Massaro & Sullivan (2003), Non-inferiority trials: design concepts and issues. Statistics in
Medicine 22:169-186.

Nothing here needs TensorFlow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from components.evaluation import evidence, slice_bars
from components.evaluation.evidence import gain_of, standard_error_of_difference
from components.evaluation.settings import EvaluatorSettings
from components.evaluation.slice_bars import listed
from contracts.evaluation import Difference, Metric, Slice

Verdict = Literal["passed", "missed", "undecided"]
SERVED, REFERENCE = "the served model's", "the best served model's"


@dataclass(frozen=True)
class Measured:
    """The measurements of a candidate.

    Attributes:
        rows: The number of rows of the evaluation split.
        metrics: The metrics on all rows, not judged yet.
        slices: The slices of at least `min_slice_rows` rows, not judged yet.
        small_slices: The names of the other slices and their numbers of rows.
        fault: What is wrong with the evaluation itself, as part of a sentence; empty if nothing is.
    """

    rows: int
    metrics: Sequence[Metric]
    slices: Sequence[Slice] = ()
    small_slices: Sequence[tuple[str, int]] = ()
    fault: str = ""


@dataclass(frozen=True)
class Decision:
    """The decision on a candidate.

    Attributes:
        outcome: Whether it is good enough.
        blessed: Whether it may be pushed; for an undecided one, `when_unsure` decides.
        reason: Why, as a sentence.
        metrics: The judged metrics.
        slices: The judged slices.
        not_judged: See `Summary.not_judged`.
        shown_not_worse: Whether every loss that has a limit is shown to be within it.
        shown_better: Whether it is shown to be better than the reference, so that it becomes the reference itself.
    """

    outcome: Literal["blessed", "refused", "undecided"]
    blessed: bool
    reason: str
    metrics: list[Metric]
    slices: list[Slice]
    not_judged: list[str]
    shown_not_worse: bool
    shown_better: bool


@dataclass(frozen=True)
class _Finding:
    """A verdict on a metric, and the text about it, which follows the metric's value."""

    verdict: Verdict
    text: str


@dataclass(frozen=True)
class _Comparison:
    """A metric compared with another model's.

    Attributes:
        metric: The metric.
        difference: The difference from the other model; None if it was not computed.
        whose: The name of the other model in a sentence, in the possessive.
        value: The other model's value.
    """

    metric: Metric
    difference: Difference | None
    whose: str
    value: float


@dataclass(frozen=True)
class _Judge:
    """Judges the metrics of a candidate.

    Attributes:
        by_evidence: Whether intervals decide rather than points.
        rows: The number of rows of the evaluation split.
        look: The number of models compared on these rows so far, this one included.
        level: The level of a one-sided test at this look.
    """

    by_evidence: bool
    rows: int
    look: int
    level: float

    def findings(self, metric: Metric) -> list[_Finding]:
        """The findings on a metric; empty if it has no bar."""
        if not str(metric.bar):
            return []
        if metric.value is None:
            return [_Finding("missed", f", expected {metric.bar}")]
        return [*self._bounds(metric), *map(self._compare, comparisons(metric))]

    def is_not_worse(self, metric: Metric) -> bool:
        """Whether a metric loses no more than allowed against every model that it is compared with."""
        return all(self._compare(against).verdict == "passed" for against in comparisons(metric))

    def is_better(self, metric: Metric) -> bool:
        """Whether a metric is shown to be better than the reference's."""
        compared = comparisons(metric)
        if not compared:
            return False
        gain, error = self._gain(compared[-1])
        return gain is not None and (gain > 0 if error is None else evidence.p_value(gain, error) <= self.level)

    def _bounds(self, metric: Metric) -> list[_Finding]:
        bounds = metric.bar.model_copy(update={"max_loss": None})
        if not str(bounds) or metric.value is None:
            return []
        reached = bounds.lower_bound is None or metric.value >= bounds.lower_bound
        reached &= bounds.upper_bound is None or metric.value <= bounds.upper_bound
        return [_Finding("passed", f" ({bounds})") if reached else _Finding("missed", f", expected {bounds}")]

    def _gain(self, against: _Comparison) -> tuple[float | None, float | None]:
        """How much better the candidate is, and the standard error of that; None for each that is unknown or unused."""
        metric, difference = against.metric, against.difference
        if metric.value is None:
            return None, None
        if not self.by_evidence:
            return gain_of(metric.value - against.value, metric.bar.direction), None
        error = standard_error_of_difference(metric.name, difference, self.rows)
        if difference is None or error is None:
            return None, None
        return gain_of(difference.value, metric.bar.direction), error

    def _compare(self, against: _Comparison) -> _Finding:
        metric, limit = against.metric, against.metric.bar.max_loss or 0.0
        compared, allowed = f"{against.whose} {against.value:.4f}", f"allowed {limit:.4f}"
        gain, error = self._gain(against)
        if gain is None:
            why = f": {metric.no_interval}" if metric.no_interval else ""
            return _Finding("undecided", f" and {compared}; how certain the difference is cannot be computed{why}")
        if gain < -limit or error is None:
            verdict: Verdict = "passed" if gain >= -limit else "missed"
            return _Finding(verdict, f", {_apart(metric, gain)} {compared} ({allowed})")
        allowed = f"({allowed}; look {self.look} at these rows)"
        worst = gain - evidence.quantile(self.level) * error
        if evidence.p_value(gain + limit, error) <= self.level:
            least = "at most" if worst < 0 else "at least"
            # If both comparisons pass, saying it once is enough.
            allowed = f" {allowed}" if against.whose == SERVED else ""
            return _Finding("passed", f", {least} {_apart(metric, worst)} {compared}{allowed}")
        few = self._too_few(gain + limit, error)
        return _Finding("undecided", f" and may be {_apart(metric, worst)} {compared} {allowed}: {few}")

    def _too_few(self, margin: float, error: float) -> str:
        few = f"these {self.rows:,} rows are too few to tell"
        if margin == 0:
            return few
        needed = evidence.rows_needed(self.rows, error, margin, self.level)
        new = evidence.rows_needed(self.rows, error, margin, evidence.share_of_look(1))
        no_look_yet = f", or {new:,} that no model was tried on" if new < needed else ""
        return f"{few}, about {needed:,} are needed{no_look_yet}"


def comparisons(metric: Metric) -> list[_Comparison]:
    """The comparisons of a metric with a `max_loss`: with the served model, then with the reference if that differs."""
    if metric.bar.max_loss is None or metric.value is None or metric.baseline is None:
        return []
    compared = [_Comparison(metric, metric.difference, SERVED, metric.baseline)]
    if reference := metric.reference_difference:
        compared.append(_Comparison(metric, reference, REFERENCE, metric.value - reference.value))
    return compared


def _apart(metric: Metric, gain: float) -> str:
    higher = (gain >= 0) == (metric.bar.direction == "higher_is_better")
    return f"{abs(gain):.4f} {'above' if higher else 'below'}"


def decide(measured: Measured, settings: EvaluatorSettings, earlier: Sequence[bool] = ()) -> Decision:
    """Decides whether a candidate may be pushed.

    Args:
        measured: The candidate's measurements.
        settings: The bars, and whether points or evidence decide.
        earlier: For each earlier look at these rows, in order, whether it showed its model to be not worse.
    """
    by_evidence = settings.judge_by == "evidence"
    judge = _Judge(by_evidence, measured.rows, len(earlier) + 1, evidence.look_level(earlier))
    findings = {metric.name: judge.findings(metric) for metric in measured.metrics}
    of_slices = slice_bars.judge_slices(measured.slices, measured.small_slices, settings)
    missed, undecided, passed = (
        [text for metric in measured.metrics if (text := _text(metric, findings[metric.name], verdicts))]
        for verdicts in (("missed",), ("undecided",), ("passed",))
    )
    missed += [*of_slices.missed, *([measured.fault] if measured.fault else [])]
    limited = [metric for metric in measured.metrics if comparisons(metric)]
    blessed = not missed and (not undecided or settings.when_unsure == "push")
    return Decision(
        outcome="refused" if missed else "undecided" if undecided else "blessed",
        blessed=blessed,
        reason=_reason(missed, undecided, passed, blessed, compared=bool(limited)),
        metrics=[_judged(metric, findings[metric.name]) for metric in measured.metrics],
        slices=of_slices.slices,
        not_judged=of_slices.not_judged,
        shown_not_worse=by_evidence and bool(limited) and all(map(judge.is_not_worse, limited)),
        shown_better=bool(limited) and all(map(judge.is_better, limited)),
    )


def _judged(metric: Metric, findings: Sequence[_Finding]) -> Metric:
    verdicts = {finding.verdict for finding in findings}
    undecided = "undecided" in verdicts and "missed" not in verdicts
    return metric.model_copy(update={"passed": verdicts <= {"passed"}, "undecided": undecided})


def _text(metric: Metric, findings: Sequence[_Finding], verdicts: Sequence[Verdict]) -> str:
    """The findings on a metric with these verdicts, as part of a sentence; empty if there are none."""
    text = "".join(finding.text for finding in findings if finding.verdict in verdicts)
    value = "not defined" if metric.value is None else f"{metric.value:.4f}"
    return f"{metric.name} is {value}{text}" if text else ""


def _reason(missed: list[str], undecided: list[str], passed: list[str], blessed: bool, compared: bool) -> str:
    if missed:
        return f"Refused: {listed(missed)}."
    if undecided:
        all_the_same = ", and blessed all the same (evaluator.when_unsure is push)" if blessed else ""
        return f"Undecided{all_the_same}: {listed(undecided)}."
    note = [] if compared else ["no served model to compare it with"]
    return f"Blessed: {'; '.join([*passed, *note])}."
