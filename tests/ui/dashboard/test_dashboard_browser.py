"""The dashboard in a browser: axe finds nothing, nothing scrolls aside, live pages keep focus and scroll."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from aiohttp import web
from browser import Reader, overflow, violations
from ml_metadata.proto import metadata_store_pb2 as mlmd_pb2
from store_builder import StoreBuilder

from ui.dashboard.app import application
from ui.dashboard.site import Site


@pytest.fixture
def address(shown: Site) -> Iterator[str]:
    """The dashboard's address; it runs in its own thread, because Playwright has an event loop in this one."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    runner = web.AppRunner(application(shown), shutdown_timeout=0)

    async def start() -> None:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()

    asyncio.run_coroutine_threadsafe(start(), loop).result()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.mark.parametrize(("width", "dark"), [(400, True), (2000, False)])
def test_every_page_is_accessible_at_any_width(
    reader: Reader, address: str, ids: dict[str, int], width: int, dark: bool
) -> None:
    paths = ["/", "/runs/small-2", "/runs/small-2/nodes/Trainer", "/runs/small-2/tensorboard", "/artifacts", "/models"]
    paths += [
        f"/artifacts/{ids['schema1']}",
        f"/artifacts/{ids['model2']}/lineage",
        "/compare",
        "/diff/small-1/small-2",
    ]
    page = reader.open(f"{address}/", width=width, dark=dark)
    for path in paths:
        page.goto(f"{address}{path}")
        assert violations(page) == [], path
        assert overflow(page) <= 0, path


def test_the_lineage_is_clicked_through(reader: Reader, address: str, ids: dict[str, int]) -> None:
    page = reader.open(f"{address}/artifacts/{ids['model2']}/lineage")
    page.locator("figure.chart svg a", has_text="PushedModel").click()
    page.wait_for_url(f"{address}/artifacts/{ids['pushed']}/lineage")
    assert page.locator("h1").inner_text() == f"Lineage of PushedModel {ids['pushed']}"


def test_a_jump_by_keyboard(reader: Reader, address: str, ids: dict[str, int]) -> None:
    page = reader.open(f"{address}/")
    page.get_by_label("Run or artifact").fill("small-1")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{address}/runs/small-1")


def test_a_run_that_goes_on_is_followed_without_losing_the_place(
    reader: Reader, address: str, builder: StoreBuilder
) -> None:
    builder.run("small-1")
    builder.node("ExampleGen")
    running = builder.node("Trainer", "RUNNING")
    page = reader.open(f"{address}/runs/small-1", height=500)
    section = page.locator("#graph")
    section.locator("td .state-running").wait_for()
    link = section.locator("tbody a", has_text="ExampleGen")
    link.focus()
    top = link.bounding_box()["y"]
    _end(builder, running)
    section.locator("td .state-running").wait_for(state="detached")
    assert page.evaluate("document.activeElement.textContent") == "ExampleGen"
    assert abs(link.bounding_box()["y"] - top) < 2
    assert page.locator(".body[data-live]").count() == 0
    assert page.locator("#graph figure[data-drawn]").count() == 1


def _end(builder: StoreBuilder, execution_id: int) -> None:
    [execution] = builder.store.get_executions_by_id([execution_id])
    execution.last_known_state = mlmd_pb2.Execution.COMPLETE
    done: Any = builder.store.put_executions([execution])
    assert list(done) == [execution_id]
