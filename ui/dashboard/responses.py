"""Pages as HTTP responses, secured so that no other site can read them or run scripts in them."""

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
    """Whether an address to listen on can only be reached from this machine."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def names_of(host: str) -> frozenset[str]:
    """The host names that requests may use: this machine's, if only it can reach us; an empty set allows any.

    A page whose own name was made to resolve to this machine (DNS rebinding) sends that name, and is refused.
    """
    return LOOPBACK_NAMES | {host} if is_loopback(host) else frozenset()


def is_addressed(request: web.Request, allowed: frozenset[str]) -> bool:
    """Whether a request was sent to one of these names; an empty set allows any."""
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
        etag: A digest of the body.
        live: Whether it keeps changing.
    """

    body: bytes
    kind: str
    etag: str
    live: bool = False

    @classmethod
    def from_page(cls, page: Page, kind: str, site: Site, url: str = "") -> Written:
        """Writes a page as JSON or as HTML; HTML links to the JSON version if the page's address is given."""
        body = (as_json(page) if kind == JSON else html(page, site, url)).encode()
        return cls(body, kind, hashlib.sha256(body).hexdigest()[:DIGEST_DIGITS], page.live)


def wanted_kind(request: web.Request) -> str:
    """The content type of the response: JSON if the query has `format=json`, otherwise HTML."""
    return JSON if request.query.get("format") == "json" else HTML


def page_response(request: web.Request, written: Written, status: int = 200) -> web.Response:
    """The response with a page, or 304 if the browser has it already."""
    headers = {"ETag": f'"{written.etag}"', "Cache-Control": "no-cache"}
    known_tags = request.if_none_match or ()
    if status == 200 and any(tag.value in (written.etag, "*") for tag in known_tags):
        return web.Response(status=304, headers=headers)
    return web.Response(body=written.body, content_type=written.kind, charset="utf-8", status=status, headers=headers)


def refusal(request: web.Request, site: Site, error: PageError) -> web.Response:
    """The response that says what is wrong, in place of the requested page."""
    written = Written.from_page(error.page(), wanted_kind(request), site)
    response = page_response(request, written, error.status)
    if error.again:
        response.headers["Retry-After"] = BUSY_SECONDS
    return response


def text_file(path: Path) -> web.FileResponse:
    """A file as plain text, whatever it is, so that a browser runs nothing in it."""
    headers = {"Content-Type": f"{TEXT}; charset=utf-8", "Cache-Control": "no-cache"}
    return web.FileResponse(path, headers=headers)


def download(path: Path) -> web.FileResponse:
    """A run's file as a download named after the run; if a browser shows it anyway, it is sandboxed."""
    headers = {
        "Content-Disposition": f'attachment; filename="{path.parent.name}{path.suffix}"',
        "Content-Security-Policy": "sandbox",
        "Cache-Control": "no-cache",
    }
    return web.FileResponse(path, headers=headers)
