"""Pages as HTTP responses, and who gets any: a web page from elsewhere reads nothing here, and runs nothing in ours."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from aiohttp import web

from ui.dashboard.page import Page, PageError, as_json, html
from ui.dashboard.site import Site

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address to listen at."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def names_of(host: str) -> frozenset[str]:
    """The names that a browser may know us by: those of this machine, where only it reaches us; none for any.

    A web page whose own name was made to lead to this machine (DNS rebinding) names itself, and is refused.
    """
    return LOOPBACK_NAMES | {host} if is_loopback(host) else frozenset()


def is_addressed(request: web.Request, allowed: frozenset[str]) -> bool:
    """Whether a request was sent to one of these names, where there are any."""
    return not allowed or _name(request.host) in allowed


def _name(host: str) -> str:
    """The host of a Host header, without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower()


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
    def of(cls, page: Page, kind: str, site: Site, url: str = "") -> Written:
        """A page as JSON or as HTML; with its address where it can be asked for as the other one."""
        body = (as_json(page) if kind == JSON else html(page, site, url)).encode()
        return cls(body, kind, hashlib.sha256(body).hexdigest()[:DIGEST_DIGITS], page.live)


def wanted_kind(request: web.Request) -> str:
    """The content type of the answer: JSON where `?format=json` was asked for, else HTML."""
    return JSON if request.query.get("format") == "json" else HTML


def answer(request: web.Request, written: Written, status: int = 200) -> web.Response:
    """A page, or that the browser has it already."""
    headers = {"ETag": f'"{written.etag}"', "Cache-Control": "no-cache"}
    known = request.if_none_match or ()
    if status == 200 and any(tag.value in (written.etag, "*") for tag in known):
        return web.Response(status=304, headers=headers)
    return web.Response(body=written.body, content_type=written.kind, charset="utf-8", status=status, headers=headers)


def refusal(request: web.Request, site: Site, error: PageError) -> web.Response:
    """A page that says what is wrong instead of the one that was asked for."""
    written = Written.of(error.page(), wanted_kind(request), site)
    response = answer(request, written, error.status)
    if error.again:
        response.headers["Retry-After"] = BUSY_SECONDS
    return response


def text_file(path: Path) -> web.FileResponse:
    """A file as text, whatever it is; a browser runs nothing of it."""
    headers = {"Content-Type": f"{TEXT}; charset=utf-8", "Cache-Control": "no-cache"}
    return web.FileResponse(path, headers=headers)


def download(path: Path) -> web.FileResponse:
    """A run's file to keep, named after the run; should a browser show it nevertheless, it has no part in our pages."""
    headers = {
        "Content-Disposition": f'attachment; filename="{path.parent.name}{path.suffix}"',
        "Content-Security-Policy": "sandbox",
        "Cache-Control": "no-cache",
    }
    return web.FileResponse(path, headers=headers)
