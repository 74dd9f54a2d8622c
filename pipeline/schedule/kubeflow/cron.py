"""Cron lines as Kubeflow Pipelines reads them: six fields, seconds first.

Its controller parses them with github.com/robfig/cron, version 1, which would read five fields as seconds to months, so
that a usual line of five, which begins with minutes, would fire at quite different times.
"""

from __future__ import annotations

import calendar
import re
from datetime import date, timedelta
from typing import NamedTuple

from contracts.errors import SettingsError

SPAN = re.compile(r"((?P<all>[*?])|(?P<first>\w+)(-(?P<last>\w+))?)(/(?P<step>[1-9][0-9]*))?", re.ASCII)
SECONDS_FIRST = 6
USUAL = 5
YEARS = 5
"""How far ahead robfig/cron looks for the next time."""

DESCRIPTORS = {
    "@yearly": "0 0 0 1 1 *",
    "@annually": "0 0 0 1 1 *",
    "@monthly": "0 0 0 1 * *",
    "@weekly": "0 0 0 * * 0",
    "@daily": "0 0 0 * * *",
    "@midnight": "0 0 0 * * *",
    "@hourly": "0 0 * * * *",
}


class _Field(NamedTuple):
    name: str
    low: int
    high: int
    words: tuple[str, ...] = ()


FIELDS = (
    _Field("second", 0, 59),
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, ("", *(name.lower() for name in calendar.month_abbr[1:]))),
    _Field("day of week", 0, 6, ("sun", "mon", "tue", "wed", "thu", "fri", "sat")),
)


def complete_line(line: str, today: date) -> str:
    """Completes a cron line to six fields; one with the usual five fires at second 0.

    Args:
        line: The line as the user wrote it.
        today: The first day on which it could fire.

    Raises:
        SettingsError: It is not a cron line, or never fires.
    """
    words = DESCRIPTORS.get(line.strip().lower(), line).split()
    if len(words) == USUAL:
        words = ["0", *words]
    if len(words) != SECONDS_FIRST:
        known = ", ".join(DESCRIPTORS)
        raise SettingsError(
            f"--cron {line!r}: received {len(words)} fields, expected 5 (minute, hour, day of month, month, day of "
            f"week), 6 (a second before them), or one of {known}.",
            'Write for example --cron "30 3 * * *", every day at half past three.',
        )
    sets = [_values(word, field, line) for word, field in zip(words, FIELDS, strict=True)]
    starred = [word.startswith(("*", "?")) for word in words]
    days = (today + timedelta(days=number) for number in range(int(365.25 * YEARS)))
    if not any(_fires_on(day, sets[3:], starred[3] or starred[5]) for day in days):
        raise SettingsError(
            f"--cron {line!r} never fires: in the next {YEARS} years no day is day {words[3]} of month {words[4]}.",
            "Choose a day that the month has.",
        )
    return " ".join(words)


def _fires_on(day: date, sets: list[set[int]], both: bool) -> bool:
    """Whether a line fires on a day; if it gives both a day of month and a day of week, either is enough."""
    of_month, months, of_week = sets
    in_month, in_week = day.day in of_month, (day.weekday() + 1) % 7 in of_week
    return day.month in months and ((in_month and in_week) if both else (in_month or in_week))


def _values(word: str, field: _Field, line: str) -> set[int]:
    values: set[int] = set()
    for part in word.lower().split(","):
        span = _span(part, field)
        if span is None:
            named = f" or {field.words[field.low]}-{field.words[-1]}" if field.words else ""
            raise SettingsError(
                f"--cron {line!r}: the {field.name} is {part!r}, expected {field.low}-{field.high}{named}, *, a range "
                f"such as {field.low}-{field.high}, a list of these, or a step such as */5."
            )
        values.update(span)
    return values


def _span(part: str, field: _Field) -> range | None:
    """The values of one entry in a list; None if the entry is not valid."""
    match = SPAN.fullmatch(part)
    if match is None:
        return None
    first, last, step = match["first"], match["last"], match["step"]
    low = field.low if match["all"] else _number(first, field)
    # A step after a single value continues to the end of the range.
    high = _number(last, field) if last else field.high if match["all"] or step else low
    return None if low is None or high is None or low > high else range(low, high + 1, int(step or 1))


def _number(word: str, field: _Field) -> int | None:
    number = field.words.index(word) if word in field.words else int(word) if word.isdecimal() else -1
    return number if field.low <= number <= field.high else None


def interval_seconds(text: str) -> int:
    """Parses an interval such as `90s`, `30m`, `6h` or `1d`, to seconds.

    Raises:
        SettingsError: It is not an interval, or shorter than a minute.
    """
    match = re.fullmatch(r"([0-9]+)([smhd])", text.strip().lower())
    seconds = int(match[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[match[2]] if match else 0
    if seconds < 60:
        raise SettingsError(f"--every {text!r}: expected a minute or more, such as 30m, 6h or 1d.")
    return seconds
