"""What differs between two runs."""

from __future__ import annotations

from dataclasses import asdict

from metadata import differences
from metadata.dashboard import finding
from metadata.dashboard.links import URLS
from metadata.dashboard.page import Ask, Page
from metadata.queries import Queries
from metadata.report import comparison


def page(store: Queries, ask: Ask) -> Page:
    """The page of a difference."""
    before = finding.run_of(store, ask.match["before"])
    after = finding.run_of(store, ask.match["after"])
    return Page(
        "difference.html",
        f"{before.id} and {after.id}",
        lambda: {
            "comparison": comparison.compare(store, before, after),
            "shown": comparison.shown,
            "after": after,
            "swapped": URLS.difference(after.id, before.id),
        },
        {"before": before.id, "after": after.id} | asdict(differences.between(store, before, after)),
        section="Compare",
    )
