"""Cron lines and intervals as Kubeflow's scheduler reads them."""

from __future__ import annotations

from datetime import date

import pytest

from contracts.errors import SettingsError
from pipeline.schedule.kubeflow import cron

TODAY = date(2026, 1, 1)


@pytest.mark.parametrize(
    ("line", "complete"),
    [
        ("30 3 * * *", "0 30 3 * * *"),
        ("15 30 3 * * *", "15 30 3 * * *"),
        ("*/5 8-18 * * MON-fri", "0 */5 8-18 * * MON-fri"),
        ("0 0 1,15 jan-mar/2 ?", "0 0 0 1,15 jan-mar/2 ?"),
        ("0 0 10/5 * *", "0 0 0 10/5 * *"),
        ("@daily", "0 0 0 * * *"),
        ("@Weekly", "0 0 0 * * 0"),
        # A leap day comes within five years.
        ("0 0 29 2 *", "0 0 0 29 2 *"),
        # If both days are given, either is enough.
        ("0 0 31 2 sun", "0 0 0 31 2 sun"),
    ],
)
def test_a_line_gets_its_seconds(line: str, complete: str) -> None:
    assert cron.complete_line(line, TODAY) == complete


@pytest.mark.parametrize("line", ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 31 jun ?"])
def test_a_line_that_never_fires_is_refused(line: str) -> None:
    with pytest.raises(SettingsError, match=r"never fires: in the next 5 years no day is day 3[01] of month"):
        cron.complete_line(line, TODAY)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("* * * *", "received 4 fields, expected 5"),
        ("1 2 3 4 5 6 7", "received 7 fields, expected 5"),
        ("60 * * * *", "the minute is '60', expected 0-59"),
        ("* 24 * * *", "the hour is '24', expected 0-23"),
        ("* * 0 * *", "the day of month is '0', expected 1-31"),
        ("* * * 13 *", "the month is '13', expected 1-12 or jan-dec"),
        ("* * * * 7", "the day of week is '7', expected 0-6 or sun-sat"),
        ("* * * * fri-mon", "the day of week is 'fri-mon'"),
        ("*/0 * * * *", "the minute is '*/0'"),
        ("*/ * * * *", "the minute is '*/'"),
        ("1- * * * *", "the minute is '1-'"),
        (", * * * *", "the minute is ''"),
        ("x * * * *", "the minute is 'x'"),
    ],
)
def test_an_invalid_line_is_refused_with_its_field(line: str, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        cron.complete_line(line, TODAY)
    assert message in str(caught.value)


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("30m", 1800), ("6H", 21600), ("1d", 86400)])
def test_intervals_are_seconds(text: str, seconds: int) -> None:
    assert cron.interval_seconds(text) == seconds


@pytest.mark.parametrize("text", ["59s", "0m", "1w", "-1h", "1.5h", ""])
def test_anything_but_an_interval_of_a_minute_or_more_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="expected a minute or more, such as 30m, 6h or 1d"):
        cron.interval_seconds(text)
