"""The dashboard's web application: which address is answered by which page."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Hashable

from aiohttp import web

from metadata.dashboard import answers, guard
from metadata.dashboard.answers import HTML, JSON, Written
from metadata.dashboard.page import Ask, Moved, Page, PageError, as_json, html
from metadata.dashboard.pages import (
    artifact,
    artifacts,
    compare,
    difference,
    jump,
    lineage,
    models,
    node,
    run,
    runs,
    tensorboard,
)
from metadata.dashboard.reading import MissingStoreError, Reader, folder_signature
from metadata.dashboard.site import Site, UnreadableError
from metadata.files import UnavailableError
from metadata.pages import rendering
from metadata.queries import Queries

log = logging.getLogger(__name__)

Maker = Callable[[Queries, Ask], Page | Moved]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

SITE = web.AppKey("site", Site)
READER = web.AppKey("reader", Reader)
NAMES = web.AppKey("names", frozenset[str])

PAGES: tuple[tuple[str, Maker], ...] = (
    ("/", runs.page),
    ("/runs/{run}", run.page),
    ("/runs/{run}/nodes/{node}", node.page),
    ("/runs/{run}/tensorboard", tensorboard.page),
    ("/artifacts", artifacts.page),
    ("/artifacts/{artifact}", artifact.page),
    ("/artifacts/{artifact}/lineage", lineage.page),
    ("/artifacts/{artifact}/files/{path:.+}", artifact.file_page),
    ("/models", models.page),
    ("/compare", compare.page),
    ("/diff/{before}/{after}", difference.page),
    ("/search", jump.page),
)
"""Addresses and what makes their pages; each is answered as JSON, too, with `?format=json`."""


def application(site: Site, names: Collection[str] = guard.LOOPBACK_NAMES) -> web.Application:
    """The application.

    Args:
        site: What is looked at.
        names: The hosts that may be asked for; none for any. See `guard.names_of`.
    """
    app = web.Application(middlewares=[_guarded])
    app[SITE], app[READER], app[NAMES] = site, Reader(site), frozenset(names)
    for address, make in PAGES:
        app.router.add_get(address, _handler(make))
    app.router.add_get("/runs/{run}/nodes/{node}/log", _log)
    app.router.add_get("/reports/{run}", _report)
    app.router.add_static("/static/", rendering.STATIC)
    app.on_cleanup.append(_close)
    return app


async def _close(app: web.Application) -> None:
    app[READER].close()


def _handler(make: Maker) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        ask = _ask(request)
        kind = JSON if answers.wants_json(request) else HTML

        def write(store: Queries) -> Written | Moved:
            page = make(store, ask)
            if isinstance(page, Moved):
                return page
            return Written.of(as_json(page) if kind == JSON else html(page, ask), kind, page.live)

        found = await request.app[READER].read((ask.url, kind), write, lambda: _logs(ask))
        if isinstance(found, Moved):
            return web.Response(status=302, headers={"Location": found.to})
        return answers.answer(request, found)

    return handle


def _ask(request: web.Request) -> Ask:
    return Ask(request.app[SITE], dict(request.match_info), list(request.query.items()), request.path_qs)


def _logs(ask: Ask) -> Hashable:
    """What tells whether a run's logs are still the same; the pages of runs show of them, and of TensorBoard."""
    name = ask.match.get("run", "")
    if not name or "/" in name or name in {".", ".."}:
        return None
    return folder_signature(ask.site.log_root / name), ask.site.tensorboard and ask.site.tensorboard.url


async def _log(request: web.Request) -> web.StreamResponse:
    ask = _ask(request)
    path = await request.app[READER].read(("log", ask.url), lambda store: node.log_file(store, ask))
    return answers.text_file(node.checked(path, ask))


async def _report(request: web.Request) -> web.StreamResponse:
    ask = _ask(request)
    path = await request.app[READER].read(("report", ask.url), lambda store: run.report_file(store, ask))
    return answers.download(run.checked(path, ask), f"{ask.match['run']}.html")


@web.middleware
async def _guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answers, and says instead of an error what is wrong; the traceback is in the log alone."""
    response = await _answered(request, handler)
    for name, value in guard.HEADERS.items():
        response.headers.setdefault(name, value)
    return response


async def _answered(request: web.Request, handler: Handler) -> web.StreamResponse:
    site = request.app[SITE]
    try:
        if not guard.is_addressed(request, request.app[NAMES]):
            return web.Response(status=421, text="This server answers to localhost and 127.0.0.1 alone.\n")
        return await handler(request)
    except PageError as error:
        return answers.error(request, site, error)
    except MissingStoreError:
        text = "There is no metadata store. The first run makes one; this page then shows it."
        line = site.command()
        return answers.told(request, site, 404, "Nothing has run yet", text, command=line, again=True)
    except UnreadableError as error:
        text = f"The metadata store cannot be read now. {error}"
        return answers.told(request, site, 503, "The store cannot be read now", text, again=True)
    except UnavailableError as error:
        return answers.told(request, site, 503, "The artifacts cannot be read now", str(error), again=True)
    except web.HTTPNotFound:
        return answers.told(request, site, 404, "Not found", f"There is no page {request.path}.")
    except web.HTTPMethodNotAllowed as refused:
        text = f"These pages can only be read; {request.method} changes things."
        response = answers.told(request, site, 405, "Only for reading", text)
        response.headers["Allow"] = ", ".join(sorted(refused.allowed_methods))
        return response
    except Exception:
        log.exception("%s %s failed.", request.method, request.path_qs)
        return answers.told(
            request, site, 500, "Something went wrong", "The page could not be made; the dashboard's log says why."
        )


def prepare() -> None:
    """Loads the templates ahead of time, which the first page would else wait for."""
    environment = rendering.templates()
    for name in environment.list_templates(extensions=["html"]):
        environment.get_template(name)
