"""Work on several batches at once keeps their order, holds few, and ends with the first error."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from components import cores, engine
from components.cores import on_all_cores


def test_results_come_in_the_order_of_the_items_though_several_are_at_work() -> None:
    second_has_begun = threading.Event()

    def work(number: int) -> int:
        if number == 1:
            second_has_begun.set()
        elif number == 0:
            assert second_has_begun.wait(60)
        return number * number

    assert list(on_all_cores(work, range(50))) == [number * number for number in range(50)]


def test_few_items_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores.os, "sched_getaffinity", lambda _process: {0, 1}, raising=False)
    read: list[int] = []

    def items() -> Iterator[int]:
        for number in range(100):
            read.append(number)
            yield number

    for taken, _ in enumerate(on_all_cores(lambda number: number, items()), start=1):
        assert len(read) <= taken + 2 * cores.WAITING


def test_an_error_ends_the_work_as_itself() -> None:
    def work(number: int) -> int:
        if number == 3:
            raise KeyError("third")
        return number

    made = on_all_cores(work, range(10))
    assert [next(made), next(made), next(made)] == [0, 1, 2]
    with pytest.raises(KeyError, match="third"):
        next(made)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], True),
        (["--direct_num_workers=2"], True),
        (["--runner=DirectRunner"], False),
        (["--x", "--runner=P"], False),
    ],
)
def test_a_runner_of_beam_s_is_the_environment_s_choice(arguments: list[str], expected: bool) -> None:
    assert engine.is_columnar(arguments) is expected
