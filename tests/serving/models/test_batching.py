"""Requests that run together get the answers that they would get alone."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import batch_models
import numpy as np
import psutil
import pytest
import tiny_models

from serving.errors import Code, ServingError
from serving.models.batching import Queues
from serving.models.configuration import BatchingParameters
from serving.models.servable import Servable, load

FOREVER = 2**30
PATIENCE = 60.0
Load = Callable[..., Servable]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("batch_models")
    batch_models.write_rows(folder / "rows_1", 1.0)
    batch_models.write_rows(folder / "rows_10", 10.0)
    batch_models.write_frozen(folder / "frozen")
    batch_models.write_fed(folder / "fed")
    tiny_models.write_half_plus(folder / "half_plus", 1.0)
    tiny_models.write_tf1(folder / "tf1", folder / "words.txt")
    return folder


@pytest.fixture
def batching(models: Path) -> Iterator[Load]:
    """Loads a model with batching: `batching("rows_1", max_batch_size=4)`."""
    servables: list[Servable] = []

    def load_one(model: str, version: int = 1, **parameters: Any) -> Servable:
        servables.append(load(model, version, models / model, batching=BatchingParameters(**parameters)))
        return servables[-1]

    yield load_one
    for servable in servables:
        servable.close()


def gathering(size: int, **others: Any) -> dict[str, Any]:
    """Parameters with which a batch runs as soon as it has `size` rows, and not before."""
    return {"max_batch_size": size, "batch_timeout_micros": FOREVER} | others


def together(requests: list[Callable[[], Any]]) -> list[Any]:
    """Runs each request in a thread of its own; returns results or refusals."""

    def result_or_refusal(request: Callable[[], Any]) -> Any:
        try:
            return request()
        except ServingError as error:
            return error.code, error.message

    with ThreadPoolExecutor(len(requests)) as pool:
        return list(pool.map(result_or_refusal, requests))


def asking(servable: Servable, rows: list[list[float]]) -> Callable[[], dict[str, Any]]:
    return lambda: {
        name: values.tolist()
        for name, values in servable.run("serving_default", {"x": np.array(rows, np.float32)}, None, PATIENCE).items()
    }


def test_requests_run_together_and_each_gets_its_own_rows(batching: Load) -> None:
    servable = batching("rows_1", **gathering(6))
    sent = [[[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]], [[7.0, 8.0], [9.0, 10.0], [11.0, 12.0]]]
    assert together([asking(servable, rows) for rows in sent]) == [
        {"rows": [6], "sum": [3.0]},
        {"rows": [6, 6], "sum": [7.0, 11.0]},
        {"rows": [6, 6, 6], "sum": [15.0, 19.0, 23.0]},
    ]


def test_only_the_outputs_asked_for_come_back_in_their_order(batching: Load) -> None:
    servable, inputs = batching("rows_1"), {"x": np.array([[1, 2]], np.float32)}
    assert list(servable.run("serving_default", inputs, ["sum", "rows"])) == ["sum", "rows"]
    assert servable.run("serving_default", inputs, ["sum"]) == {"sum": np.array([3], np.float32)}


def test_models_versions_and_signatures_are_never_mixed(batching: Load) -> None:
    servables = [batching("rows_1"), batching("rows_10", 1), batching("rows_10", 2), batching("rows_1", 2)]
    factors, mismatches, num_requests = [1, 10, 10, 1], [], 300

    def ask(thread: int) -> None:
        servable, factor = servables[thread % 4], factors[thread % 4]
        for number in range(num_requests):
            value = thread * num_requests + number
            sums = servable.run("serving_default", {"x": np.full((1, 2), value, np.float32)}, ["sum"], PATIENCE)
            if sums["sum"].tolist() != [2.0 * value * factor]:
                mismatches.append((thread, value, sums))
            words = np.array([b"pear", b"kiwi", b"apple"][number % 3 :], object)
            indices = servable.run("look_up", {"words": words}, None, PATIENCE)["index"].tolist()
            if indices != [1, -1, 0][number % 3 :]:
                mismatches.append((thread, number, indices))

    threads = [threading.Thread(target=ask, args=(thread,)) for thread in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert mismatches == []


def test_a_bad_request_fails_alone_and_with_its_own_error(batching: Load, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "serving.models.batching")
    servable = batching("half_plus", **gathering(4))
    examples = [tiny_models.example(x=2.0), tiny_models.example(), tiny_models.example(x=6.0), b"\xff"]

    def ask(example: bytes) -> Callable[[], Any]:
        return lambda: servable.run("examples", {"examples": np.array([example], object)}, ["y"], PATIENCE)["y"]

    results = together([ask(example) for example in examples])
    assert (results[0], results[2]) == (2.0, 4.0)
    assert results[1] == (
        Code.INVALID_ARGUMENT,
        "Name: <unknown>, Feature: x (data type: float) is required but could not be found.",
    )
    assert results[3][0] is Code.INVALID_ARGUMENT
    assert results[3][1].startswith("Could not parse example input, value: '")
    assert "node" not in results[3][1]
    assert any("A batch of examples failed" in record.getMessage() for record in caplog.records)


def test_inner_shapes_that_differ_do_not_share_a_batch(batching: Load) -> None:
    servable = batching("rows_1", **gathering(2))
    sent = [[[1.0]], [[2.0]], [[1.0, 2.0]], [[3.0, 4.0]], [[1.0, 2.0, 3.0]], [[4.0, 5.0, 6.0]]]
    results = together([asking(servable, rows) for rows in sent])
    assert results == [{"rows": [2], "sum": [sum(rows[0])]} for rows in sent]


def test_what_has_no_common_rows_is_answered_as_without_batching(batching: Load) -> None:
    servable = batching("rows_1", **gathering(4))
    row, two, none = np.ones(1, np.float32), np.array([1, 2], np.float32), np.zeros(0, np.float32)
    assert servable.run("add", {"x": row, "y": two})["z"].tolist() == [2.0, 3.0]
    assert servable.run("add", {"x": row[0], "y": row[0]})["z"] == 2.0
    assert servable.run("add", {"x": none, "y": none})["z"].shape == (0,)


def test_an_oversize_request_is_refused(batching: Load) -> None:
    servable = batching("rows_1", max_batch_size=4)
    assert together([asking(servable, [[1.0]] * 5)]) == [
        (Code.INVALID_ARGUMENT, "Task size 5 is larger than maximum input batch size 4")
    ]


@pytest.mark.parametrize("sizes", [(), (2, 3)])
def test_a_large_request_is_split_where_that_is_asked_for(batching: Load, sizes: tuple[int, ...]) -> None:
    servable = batching(
        "rows_1",
        max_batch_size=8,
        enable_large_batch_splitting=True,
        max_execution_batch_size=3,
        allowed_batch_sizes=sizes,
    )
    outputs = asking(servable, [[float(value)] for value in range(8)])()
    assert outputs["sum"] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    assert outputs["rows"] == [3, 3, 3, 3, 3, 3, 2, 2]


def test_batches_are_filled_up_to_the_allowed_sizes(batching: Load) -> None:
    servable = batching("rows_1", max_batch_size=8, allowed_batch_sizes=(4, 8))
    assert asking(servable, [[1.0], [2.0], [3.0]])() == {"rows": [4, 4, 4], "sum": [1.0, 2.0, 3.0]}
    assert asking(servable, [[1.0]] * 5)()["rows"] == [8] * 5


def test_a_full_queue_refuses_what_comes_on_top(batching: Load) -> None:
    servable = batching("rows_1", **gathering(2, max_enqueued_batches=1))
    one, two = asking(servable, [[1.0]]), asking(servable, [[1.0], [2.0]])
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(one)
        # Two rows fill a batch of their own until the single row is in the queue.
        result: Any = None
        while not isinstance(result, tuple):
            result = together([two])[0]
        assert one() == {"rows": [2], "sum": [1.0]}
        assert waiting.result(PATIENCE) == {"rows": [2], "sum": [1.0]}
    assert result == (
        Code.UNAVAILABLE,
        "The batch scheduling queue to which this task was submitted is full; currently 1 batches enqueued and "
        "max_enqueued_batches is 1",
    )


def test_outputs_without_a_row_for_each_row_end_batching_not_the_request(
    batching: Load, caplog: pytest.LogCaptureFixture
) -> None:
    servable = batching("rows_1", **gathering(2))
    x = np.array([1, -1], np.float32)
    for _ in range(2):
        assert servable.run("positive", {"x": x})["positive"].tolist() == [1.0]
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING] == [
        "Signature positive is no longer batched, since its outputs do not have a row for each row of its inputs."
    ]


def test_what_cannot_be_batched_is_said_and_answers_all_the_same(
    batching: Load, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    rows, tf1 = batching("rows_1"), batching("tf1")
    batching("fed")
    messages = [record.getMessage() for record in caplog.records]
    assert (
        "Signature mean of rows_1 version 1 is not batched: output mean has shape [], whose first dimension is fixed."
    ) in messages
    reads = 'it reads the reference variable "factor" of TensorFlow 1.'
    assert f"Signature regress of tf1 version 1 is not batched: {reads}" in messages
    assert (
        'Signature serving_default of fed version 1 is not batched: it depends on "rate", which is none of its inputs.'
    ) in messages
    assert rows.run("mean", {"x": np.array([1, 3], np.float32)})["mean"] == 2.0
    examples = np.array([tiny_models.example(word="plum")], object)
    assert tf1.run("regress", {"inputs": examples})["outputs"].tolist() == [20.0]


def test_tables_and_loops_of_tensorflow_1_are_batched(batching: Load) -> None:
    tf1 = batching("tf1", **gathering(2))

    def index(word: str) -> Callable[[], Any]:
        examples = np.array([tiny_models.example(word=word)], object)
        return lambda: tf1.run("predict", {"inputs": examples}, None, PATIENCE)["index"].tolist()

    assert together([index("plum"), index("pear")]) == [[2], [1]]
    frozen = batching("frozen", **gathering(2))
    weights = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)

    def product(row: int) -> Callable[[], Any]:
        x = np.eye(64, dtype=np.float32)[[row]]
        return lambda: frozen.run("serving_default", {"x": x}, None, PATIENCE)["y"].tolist()

    assert together([product(0), product(9)]) == [[(weights[row] + 3).tolist()] for row in (0, 9)]


def test_a_deadline_is_named_as_such(batching: Load) -> None:
    servable = batching("rows_1", max_batch_size=4, batch_timeout_micros=200_000)
    with pytest.raises(ServingError) as caught:
        servable.run("serving_default", {"x": np.ones((1, 1), np.float32)}, None, 0.01)
    assert caught.value.code is Code.DEADLINE_EXCEEDED


def test_warm_up_requests_run_in_batches(models: Path, tmp_path: Path) -> None:
    path = batch_models.write_rows(tmp_path / "model", 1.0)
    tiny_models.write_warm_up(path, [tiny_models.predict_log(x=np.ones((1, 3), np.float32)).SerializeToString()])
    servable = load("rows", 1, path, batching=BatchingParameters())
    assert servable.run("serving_default", {"x": np.ones((1, 3), np.float32)})["sum"].tolist() == [3.0]
    servable.close()


def test_unloading_gives_threads_and_memory_back(models: Path) -> None:
    process, parameters = psutil.Process(), BatchingParameters(num_batch_threads=3)

    def once() -> int:
        servable = load("rows", 1, models / "rows_1", batching=parameters)
        servable.run("serving_default", {"x": np.ones((1, 3), np.float32)})
        threads = process.num_threads()
        servable.close()
        return threads

    for _ in range(3):
        loaded = once()
    threads, memory = process.num_threads(), process.memory_info().rss
    assert loaded >= threads + 3
    for _ in range(15):
        once()
    assert process.num_threads() == threads
    assert process.memory_info().rss - memory < 30 * 2**20


def test_a_queue_is_lent_to_one_shape_at_a_time() -> None:
    queues = Queues(2)
    assert [queues.take(((1,),)), queues.take(((2,),)), queues.take(((1,),))] == [0, 1, 0]
    assert queues.take(((3,),)) is None
    queues.give_back(((1,),))
    assert queues.take(((3,),)) is None
    queues.give_back(((1,),))
    assert queues.take(((3,),)) == 0
