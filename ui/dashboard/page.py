"""Requests for pages, pages before they are written, and what several pages share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from metadata.records import ArtifactRecord, Place
from ui.dashboard.site import Site
from ui.links import URLS
from ui.parts import Bullets, Column, Parts, Section, Text, Verbatim, Ways
from ui.rendering import render
from ui.texts import Inline, code, link, number


@dataclass(frozen=True)
class Ask:
    """A request for a page.

    Attributes:
        site: What the dashboard shows.
        match: The variable parts of the path, such as `run`.
        query: The query's parameters, in order; a name may occur more than once.
        url: Path and query.
    """

    site: Site
    match: Mapping[str, str]
    query: Sequence[tuple[str, str]]
    url: str

    def value(self, name: str) -> str | None:
        """The value of a query parameter; None if it is missing or empty."""
        return next((value for key, value in self.query if key == name and value), None)

    def values(self, name: str) -> list[str]:
        """All values of a query parameter; commas separate values, too."""
        return [part for key, value in self.query if key == name for part in value.split(",") if part]

    def number(self, name: str) -> int | None:
        """The value of a numeric query parameter; None if it is missing.

        Raises:
            BadRequestError: It is not a number.
        """
        value = self.value(name)
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
        title: What it is about.
        show: Makes its parts; not called for JSON.
        twin: The page's data, for JSON.
        section: The part of the navigation that it belongs to: `Runs`, `Models`, `Artifacts` or `Compare`.
        live: Whether it keeps changing, and updates itself.
        again: Whether to reload in a moment, because there was nothing to show.
        trail: The pages above it: texts and addresses.
        heading: Its heading, if that differs from the title.
        contents: Whether it has a table of contents.
    """

    title: str
    show: Callable[[], Parts] = field(repr=False)
    twin: Any = field(repr=False)
    section: str = ""
    live: bool = False
    again: bool = False
    trail: Sequence[tuple[str, str]] = ()
    heading: str = ""
    contents: bool = False


class PageError(Exception):
    """The page cannot be shown; another page says so.

    Args:
        text: What is wrong.
        near: What there is instead: texts and addresses.
        status: The HTTP status.
        title: What is wrong, in a few words.
        command: A command line that helps.
        again: Whether to reload in a moment.
    """

    status = 500
    title = "Something went wrong"

    def __init__(
        self,
        text: str,
        near: Sequence[tuple[str, str]] = (),
        *,
        status: int | None = None,
        title: str = "",
        command: str = "",
        again: bool = False,
    ) -> None:
        super().__init__(text)
        self.near = list(near)
        self.status, self.title = status or self.status, title or self.title
        self.command, self.again = command, again

    def page(self) -> Page:
        """The page that says what is wrong."""

        def show() -> Parts:
            parts = [
                Text(str(self)),
                Verbatim(code(self.command), look="command") if self.command else None,
                Text("There is:") if self.near else None,
                Bullets([link(*each) for each in self.near]) if self.near else None,
                Text("This page reloads by itself.", "dim") if self.again else None,
            ]
            return [Section("told", "What is wrong", parts, heading=False)]

        twin = {"error": str(self), "near": [name for name, _address in self.near]}
        return Page(self.title, show, twin | ({"command": self.command} if self.command else {}), again=self.again)


class BadRequestError(PageError):
    """The address is malformed."""

    status = 400
    title = "This address does not fit"


class NotFoundError(PageError):
    """What the address names does not exist."""

    status = 404
    title = "Not found"


@dataclass(frozen=True)
class Moved:
    """A redirect to another page."""

    to: str


def html(page: Page, site: Site, url: str = "") -> str:
    """A page as HTML; it links to its JSON version if its address is given."""
    return render("dashboard.html", inline=False, page=page, shown=page.show(), site=site, url=url)


def as_json(page: Page) -> str:
    """A page as JSON."""
    return json.dumps(page.twin, indent=2, ensure_ascii=False)


def run_link(run_id: str | None) -> Inline:
    """A link to a run by its id; empty for None."""
    return link(run_id, URLS.run(run_id)) if run_id else ""


def node_link(place: Place | None) -> Inline:
    """A link to a node of a run; empty for None."""
    return link(place.node, URLS.node(place.run, place.node) if place.run else "") if place else ""


def artifact_link(artifact: ArtifactRecord) -> Inline:
    """A link to an artifact, named by its type and id."""
    return link(f"{artifact.type} {artifact.id}", URLS.artifact(artifact.id))


def metric_columns(rows: Iterable[Any], metrics: Callable[[Any], Mapping[str, Any]], digits: int = 4) -> list[Column]:
    """A column for each metric that any row has."""

    def column(name: str) -> Column:
        return Column(name, lambda row: number(metrics(row)[name], digits) if name in metrics(row) else "", "number")

    return [column(name) for name in dict.fromkeys(name for row in rows for name in metrics(row))]


def paging(things: str, newest: str, older: str | None, before: int | None) -> Ways | None:
    """Links from a page of a list to the first page and the next."""
    if not older and not before:
        return None
    links = [(f"Newest {things}", newest if before else None, ""), (f"Older {things}", older, "next")]
    return Ways("Newer and older", links)
