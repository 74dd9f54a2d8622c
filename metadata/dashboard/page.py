"""What a page is before it is written, and how it is asked for."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from metadata.dashboard.links import URLS
from metadata.dashboard.site import Site
from metadata.pages.rendering import render


@dataclass(frozen=True)
class Ask:
    """What is asked for.

    Attributes:
        site: What is looked at.
        match: The parts of the address, such as `run`.
        query: What follows the question mark, in order; a name may come more than once.
        url: Path and query.
    """

    site: Site
    match: Mapping[str, str]
    query: Sequence[tuple[str, str]]
    url: str

    def one(self, name: str) -> str | None:
        """A value of the query; None where there is none or an empty one."""
        return next((value for key, value in self.query if key == name and value), None)

    def all(self, name: str) -> list[str]:
        """All values of a name in the query; commas part them too."""
        return [part for key, value in self.query if key == name for part in value.split(",") if part]

    def number(self, name: str) -> int | None:
        """A number of the query; None where there is none.

        Raises:
            BadRequestError: It is none.
        """
        value = self.one(name)
        if value is None:
            return None
        if not (value.isdecimal() and value.isascii()) or int(value) > MOST:
            raise BadRequestError(f"{name} is a number; received {value!r}.")
        return int(value)


MOST = 2**31 - 1
"""ML Metadata's ids have 32 bits."""


@dataclass(frozen=True)
class Page:
    """A page before it is written.

    Attributes:
        template: Its name below templates/dashboard/.
        title: What it is about.
        values: Makes what the template shows; not called where JSON is asked for.
        twin: The same as JSON.
        section: The part of the navigation that it belongs to: `Runs`, `Models`, `Artifacts` or `Compare`.
        live: Whether it goes on changing, and looks for changes itself.
    """

    template: str
    title: str
    values: Callable[[], Mapping[str, Any]] = field(repr=False)
    twin: Any = field(repr=False)
    section: str = ""
    live: bool = False


class PageError(Exception):
    """There is no such page.

    Attributes:
        status: HTTP's.
        title: What is wrong, in a few words.
    """

    status = 500
    title = "Something went wrong"


class BadRequestError(PageError):
    """The address does not fit."""

    status = 400
    title = "This address does not fit"


class NotFoundError(PageError):
    """There is no such thing.

    Args:
        what: What there is not.
        near: What there is: texts and where they lead.
    """

    status = 404
    title = "Not found"

    def __init__(self, what: str, near: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(what)
        self.near = list(near)


@dataclass(frozen=True)
class Moved:
    """The page is elsewhere."""

    to: str


def html(page: Page, ask: Ask) -> str:
    """A page as HTML."""
    return render(
        f"dashboard/{page.template}",
        inline=False,
        links=URLS,
        site=ask.site,
        page_title=page.title,
        section=page.section,
        live=page.live,
        url=ask.url,
        **page.values(),
    )


def as_json(page: Page) -> str:
    """A page as JSON."""
    return json.dumps(page.twin, indent=2, ensure_ascii=False)
