"""The dashboard's web application: the table of its pages, and the server that runs until it is told to end."""

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
from ui.dashboard import answers, artifacts, compare, models, node, runs, search
from ui.dashboard.answers import Written
from ui.dashboard.page import Ask, Moved, NotFoundError, Page, PageError
from ui.dashboard.reading import MissingStoreError, Reader, folder_signature
from ui.dashboard.site import Site, UnreadableError

log = logging.getLogger(__name__)

Maker = Callable[[Queries, Ask], Page | Moved]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

SITE = web.AppKey("site", Site)
READER = web.AppKey("reader", Reader)
NAMES = web.AppKey("names", frozenset[str])
SECONDS_FOR_THE_LAST_ANSWER = 0.5

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
"""Addresses and what makes their pages; each is answered as JSON, too, with `?format=json`."""


FILES: tuple[tuple[str, Callable[[Queries, Ask], Path], Callable[[Path], web.FileResponse]], ...] = (
    ("/runs/{run}/nodes/{node}/log", node.log_file, answers.text_file),
    ("/reports/{run}", runs.report_file, answers.download),
)
"""Addresses of files, what finds the file, and how it is given out."""


def application(site: Site, names: Collection[str] = answers.LOOPBACK_NAMES) -> web.Application:
    """The application.

    Args:
        site: What is looked at.
        names: The hosts that may be asked for; none for any. See `answers.names_of`.
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
        ask, kind = _ask(request), answers.wanted_kind(request)

        def write(store: Queries) -> Written | Moved:
            page = make(store, ask)
            return page if isinstance(page, Moved) else Written.of(page, kind, ask.site, ask.url)

        written = await request.app[READER].read((ask.url, kind), write, lambda: _logs(ask))
        if isinstance(written, Moved):
            return web.Response(status=302, headers={"Location": written.to})
        return answers.answer(request, written)

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
    """What tells whether a run's logs are still the same; the pages of runs show of them, and of TensorBoard."""
    name = ask.match.get("run", "")
    if not name or "/" in name or name in {".", ".."}:
        return None
    return folder_signature(ask.site.log_root / name), ask.site.tensorboard and ask.site.tensorboard.url


@web.middleware
async def _guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answers, and says instead of an error what is wrong; the traceback is in the log alone."""
    if answers.is_addressed(request, request.app[NAMES]):
        try:
            response = await handler(request)
        except Exception as error:
            response = answers.refusal(request, request.app[SITE], _explained(request, error))
            if isinstance(error, web.HTTPMethodNotAllowed):
                response.headers["Allow"] = ", ".join(sorted(error.allowed_methods))
    else:
        response = web.Response(status=421, text="This server answers to localhost and 127.0.0.1 alone.\n")
    for name, value in answers.HEADERS.items():
        response.headers.setdefault(name, value)
    return response


def _explained(request: web.Request, error: Exception) -> PageError:
    """What is wrong, in the reader's words."""
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
    """The address to listen at is taken, or there is no such address."""


def serve(site: Site, host: str, port: int, started: Callable[[str], None]) -> None:
    """Answers until SIGINT or SIGTERM.

    Args:
        site: What is looked at.
        host: Where to listen.
        port: Where to listen; 0 takes any free port.
        started: Called with the address once it answers.

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
        application(site, answers.names_of(host)),
        access_log=None,
        shutdown_timeout=SECONDS_FOR_THE_LAST_ANSWER,
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
    """A host as it stands in an address."""
    return f"[{host}]" if ":" in host else host
