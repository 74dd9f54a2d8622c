"""How a feature is distributed in several sets of rows, as charts that lay them over each other."""

from __future__ import annotations

from collections.abc import Mapping

from metadata.contents.statistics import FeatureStatistics, Numbers, Texts, finite
from metadata.pages.charts import Bars, Bins, Chart, Counts, Histogram, Line, Lines

MOST_LABELS = 10
LONGEST_LABEL = 80
# More than this share of the values in one of ten equally wide bins: the histogram hides what is within.
CROWDED = 0.8


def charts(name: str, sides: Mapping[str, FeatureStatistics]) -> list[Chart]:
    """The charts of a feature, by what it holds; none where there is nothing to see.

    Args:
        name: The feature.
        sides: Its statistics by the name of the set of rows, such as a split.
    """
    numbers = {side: found.numbers for side, found in sides.items() if found.numbers is not None}
    texts = {side: found.texts for side, found in sides.items() if found.texts is not None}
    return [*_of_numbers(name, numbers), *_of_texts(name, texts)]


def _of_numbers(name: str, sides: Mapping[str, Numbers]) -> list[Chart]:
    # One value that never changes is told by its smallest and largest.
    if not sides or len({value for numbers in sides.values() for value in (numbers.min, numbers.max)}) == 1:
        return []
    series = [Bins(side, _with_width(numbers)) for side, numbers in sides.items() if _with_width(numbers)]
    found: list[Chart] = [Histogram(name, series, x=name)] if series else []
    if any(_crowded(numbers) for numbers in sides.values()):
        lines = [Line(side, _quantiles(numbers)) for side, numbers in sides.items()]
        if any(line.points for line in lines):
            found.append(Lines(f"{name}: quantiles up to 90 %", lines, x="share of the values", y=name, markers=True))
    return found


def _with_width(numbers: Numbers) -> list[tuple[float, float, float]]:
    return [(low, high, count) for low, high, count in finite(numbers.bins) if low < high]


def _crowded(numbers: Numbers) -> bool:
    counts = [count for _, _, count in numbers.bins]
    return bool(counts) and max(counts) > CROWDED * sum(counts)


def _quantiles(numbers: Numbers) -> list[tuple[float, float | int | None]]:
    """The deciles without the last, for what lies far out is why the histogram hides the rest."""
    points = [(index / len(numbers.quantiles), value) for index, value in enumerate(numbers.deciles[:-1])]
    return [(share, value) for share, value in points if abs(value) != float("inf")]


def _of_texts(name: str, sides: Mapping[str, Texts]) -> list[Chart]:
    found: list[Chart] = []
    labels: dict[str, None] = {}
    for texts in sides.values():
        labels |= dict.fromkeys(label for label, _ in texts.top[:MOST_LABELS])
    if labels:
        found.append(Bars(name, [Counts(side, _counts(texts, labels), texts.total) for side, texts in sides.items()]))
    lengths = [Bins(side, list(texts.lengths)) for side, texts in sides.items() if texts.lengths]
    # Texts that are all equally long, or nearly so, are told by their mean length.
    if any(len(each.bins) > 1 for each in lengths):
        found.append(Histogram(f"{name}: lengths", lengths, x="bytes"))
    return found


def _counts(texts: Texts, labels: Mapping[str, None]) -> list[tuple[str, float]]:
    return [(_label(label), texts.counts.get(label, 0.0)) for label in labels]


def _label(text: str) -> str:
    """The text as a label; the empty one would not be seen."""
    return (text if len(text) <= LONGEST_LABEL else f"{text[:LONGEST_LABEL]}…") if text.strip() else repr(text)
