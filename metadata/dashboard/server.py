"""Runs the dashboard until it is told to end."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

from aiohttp import web

from metadata.dashboard import guard
from metadata.dashboard.app import application, prepare
from metadata.dashboard.site import Site

SECONDS_FOR_THE_LAST_ANSWER = 0.5


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
    prepare()
    asyncio.run(_serve(site, host, port, started))


async def _serve(site: Site, host: str, port: int, started: Callable[[str], None]) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    runner = web.AppRunner(
        application(site, guard.names_of(host)),
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
