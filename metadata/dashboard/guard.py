"""Who may ask, and what a page may do: a web page from elsewhere reads nothing here, and runs nothing in ours."""

from __future__ import annotations

from ipaddress import ip_address

from aiohttp import web

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
