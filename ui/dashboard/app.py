"""The dashboard's web application: the table of its pages, and the server that runs until it is stopped."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Collection, Hashable
from pathlib import Path

from aiohttp import web

from metadata.files import UnavailableError
from metadata.queries import Queries
from ui import rendering
from ui.dashboard import artifacts, compare, models, node, responses, runs, search
from ui.dashboard.page import Ask, Moved, NotFoundError, Page, PageError
from ui.dashboard.reading import MissingStoreError, Reader, folder_signature
from ui.dashboard.responses import Written
from ui.dashboard.site import Site, UnreadableError

log = logging.getLogger(__name__)

Maker = Callable[[Queries, Ask], Page | Moved]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

SITE = web.AppKey("site", Site)
READER = web.AppKey("reader", Reader)
NAMES = web.AppKey("names", frozenset[str])
SECONDS_FOR_THE_LAST_RESPONSE = 0.5

PAGES: tuple[tuple[str, Maker], ...] = (
    ("/", runs.runs_page),
    ("/runs/{run}", runs.run_page),
    ("/runs/{run}/nodes/{node}", node.node_page),
    ("/runs/{run}/tensorboard", runs.tensorboard_page),
    ("/artifacts", artifacts.artifacts_page),
    ("/artifacts/{artifact}", artifacts.artifact_page),
    ("/artifacts/{artifact}/lineage", artifacts.lineage_page),
    ("/artifacts/{artifact}/files/{path:.+}", artifacts.file_page),
    ("/models", models.models_page),
    ("/compare", compare.compare_page),
    ("/diff/{before}/{after}", compare.difference_page),
    ("/search", search.search_page),
)
"""Addresses and the functions that make their pages; each is also served as JSON with `?format=json`."""


FILES: tuple[tuple[str, Callable[[Queries, Ask], Path], Callable[[Path], web.FileResponse]], ...] = (
    ("/runs/{run}/nodes/{node}/log", node.log_file, responses.text_file),
    ("/reports/{run}", runs.report_file, responses.download),
)
"""Addresses of files, the functions that find them, and how they are sent."""


def application(site: Site, names: Collection[str] = responses.LOOPBACK_NAMES) -> web.Application:
    """The application.

    Args:
        site: What the dashboard shows.
        names: The host names that requests may use; empty for any. See `responses.names_of`.
    """
    app = web.Application(middlewares=[_guarded])
    app[SITE], app[READER], app[NAMES] = site, Reader(site), frozenset(names)
    for address, make in PAGES:
        app.router.add_get(address, _page_handler(make))
    for address, find, give_out in FILES:
        app.router.add_get(address, _file_handler(find, give_out))
    app.router.add_static("/static/", rendering.STATIC)
    app.on_cleanup.append(_close)
    return app


async def _close(app: web.Application) -> None:
    app[READER].close()


def _page_handler(make: Maker) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        ask, kind = _ask(request), responses.wanted_kind(request)

        def write(store: Queries) -> Written | Moved:
            page = make(store, ask)
            return page if isinstance(page, Moved) else Written.from_page(page, kind, ask.site, ask.url)

        written = await request.app[READER].read((ask.url, kind), write, lambda: _logs(ask))
        if isinstance(written, Moved):
            return web.Response(status=302, headers={"Location": written.to})
        return responses.page_response(request, written)

    return handle


def _file_handler(find: Callable[[Queries, Ask], Path], give_out: Callable[[Path], web.FileResponse]) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        ask = _ask(request)
        path = await request.app[READER].read(("file", ask.url), lambda store: find(store, ask), lambda: _logs(ask))
        return give_out(path)

    return handle


def _ask(request: web.Request) -> Ask:
    return Ask(request.app[SITE], dict(request.match_info), list(request.query.items()), request.path_qs)


def _logs(ask: Ask) -> Hashable:
    """The state of a run's logs and of TensorBoard, on which run pages depend besides the store."""
    name = ask.match.get("run", "")
    if not name or "/" in name or name in {".", ".."}:
        return None
    return folder_signature(ask.site.log_root / name), ask.site.tensorboard and ask.site.tensorboard.url


@web.middleware
async def _guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Handles a request; an error becomes a page that says what is wrong, with the traceback only in the log."""
    if responses.is_addressed(request, request.app[NAMES]):
        try:
            response = await handler(request)
        except Exception as error:
            response = responses.refusal(request, request.app[SITE], _explained(request, error))
            if isinstance(error, web.HTTPMethodNotAllowed):
                response.headers["Allow"] = ", ".join(sorted(error.allowed_methods))
    else:
        response = web.Response(status=421, text="This server answers to localhost and 127.0.0.1 alone.\n")
    for name, value in responses.HEADERS.items():
        response.headers.setdefault(name, value)
    return response


def _explained(request: web.Request, error: Exception) -> PageError:
    """Translates an error into what the reader is shown."""
    match error:
        case PageError():
            return error
        case MissingStoreError():
            text = "There is no metadata store. The first run makes one; this page then shows it."
            command = request.app[SITE].command()
            return PageError(text, status=404, title="Nothing has run yet", command=command, again=True)
        case UnreadableError():
            text = f"The metadata store cannot be read now. {error}"
            return PageError(text, status=503, title="The store cannot be read now", again=True)
        case UnavailableError():
            return PageError(str(error), status=503, title="The artifacts cannot be read now", again=True)
        case web.HTTPNotFound():
            return NotFoundError(f"There is no page {request.path}.")
        case web.HTTPMethodNotAllowed():
            text = f"These pages can only be read; {request.method} changes things."
            return PageError(text, status=405, title="Only for reading")
        case _:
            log.error("%s %s failed.", request.method, request.path_qs, exc_info=error)
            return PageError("The page could not be made; the dashboard's log says why.")


class AddressError(Exception):
    """The address to listen on is in use, or does not exist."""


def serve(site: Site, host: str, port: int, started: Callable[[str], None]) -> None:
    """Serves until SIGINT or SIGTERM.

    Args:
        site: What the dashboard shows.
        host: The host to listen on.
        port: The port to listen on; 0 takes any free port.
        started: Called with the address once the server responds.

    Raises:
        AddressError: It cannot listen there.
    """
    rendering.prepare()
    asyncio.run(_serve(site, host, port, started))


async def _serve(site: Site, host: str, port: int, started: Callable[[str], None]) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    runner = web.AppRunner(
        application(site, responses.names_of(host)),
        access_log=None,
        shutdown_timeout=SECONDS_FOR_THE_LAST_RESPONSE,
    )
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            raise AddressError(f"cannot listen at {host}, port {port}: {error.strerror or error}.") from error
        started(f"http://{_shown(host)}:{runner.addresses[0][1]}/")
        await ended.wait()
    finally:
        await runner.cleanup()


def _shown(host: str) -> str:
    """A host as written in a URL."""
    return f"[{host}]" if ":" in host else host
