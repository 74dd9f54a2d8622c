"""Pages as HTTP answers: HTML or JSON with an ETag, text files, and what is said where there is no page."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from metadata.dashboard.links import URLS
from metadata.dashboard.page import NotFoundError, PageError
from metadata.dashboard.site import Site
from metadata.pages.rendering import render

HTML, JSON, TEXT = "text/html", "application/json", "text/plain"
DIGEST_DIGITS = 32
BUSY_SECONDS = "2"


@dataclass(frozen=True)
class Written:
    """A page as it is sent.

    Attributes:
        body: UTF-8.
        kind: Its content type.
        etag: Names the body.
        live: Whether it goes on changing.
    """

    body: bytes
    kind: str
    etag: str
    live: bool = False

    @classmethod
    def of(cls, text: str, kind: str, live: bool = False) -> Written:
        """A text as a page."""
        body = text.encode()
        return cls(body, kind, hashlib.sha256(body).hexdigest()[:DIGEST_DIGITS], live)


def wants_json(request: web.Request) -> bool:
    """Whether `?format=json` was asked for."""
    return request.query.get("format") == "json"


def answer(request: web.Request, written: Written, status: int = 200) -> web.Response:
    """A page, or that the browser has it already."""
    headers = {"ETag": f'"{written.etag}"', "Cache-Control": "no-cache"}
    known = request.if_none_match or ()
    if status == 200 and any(tag.value in (written.etag, "*") for tag in known):
        return web.Response(status=304, headers=headers)
    return web.Response(body=written.body, content_type=written.kind, charset="utf-8", status=status, headers=headers)


def error(request: web.Request, site: Site, failed: PageError) -> web.Response:
    """A page that says what is wrong, and names what is near."""
    near = failed.near if isinstance(failed, NotFoundError) else []
    return told(request, site, failed.status, failed.title, str(failed), near=near)


def told(
    request: web.Request,
    site: Site,
    status: int,
    title: str,
    text: str,
    *,
    near: Sequence[tuple[str, str]] = (),
    command: str = "",
    again: bool = False,
) -> web.Response:
    """A page that says something instead of what was asked for.

    Args:
        request: What was asked for.
        site: What is looked at.
        status: HTTP's.
        title: What is wrong, in a few words.
        text: More of it.
        near: What there is instead: texts and where they lead.
        command: A command line that helps.
        again: Whether to look again in a moment.
    """
    if wants_json(request):
        said = {"error": text, "near": [name for name, _address in near]} | ({"command": command} if command else {})
        written = Written.of(json.dumps(said, indent=2, ensure_ascii=False), JSON)
    else:
        page = render(
            "dashboard/told.html",
            inline=False,
            links=URLS,
            site=site,
            page_title=title,
            section="",
            live=False,
            url=request.path_qs,
            text=text,
            near=near,
            command=command,
            again=again,
        )
        written = Written.of(page, HTML)
    response = answer(request, written, status)
    if again:
        response.headers["Retry-After"] = BUSY_SECONDS
    return response


def text_file(path: Path) -> web.FileResponse:
    """A file as text, whatever it is; a browser runs nothing of it."""
    headers = {"Content-Type": f"{TEXT}; charset=utf-8", "Cache-Control": "no-cache"}
    return web.FileResponse(path, headers=headers)


def download(path: Path, name: str) -> web.FileResponse:
    """A file to keep; should a browser show it nevertheless, it has no part in our pages."""
    headers = {
        "Content-Disposition": f'attachment; filename="{name}"',
        "Content-Security-Policy": "sandbox",
        "Cache-Control": "no-cache",
    }
    return web.FileResponse(path, headers=headers)
