"""Guesses what an unknown name was meant to be."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def near_names(name: str, known: Iterable[str], most: int = 1, cutoff: float = 0.6) -> list[str]:
    """The known names most similar to a name, ignoring case, the most similar first.

    Args:
        name: The name that is not known.
        known: The names that are.
        most: How many to return at most.
        cutoff: How similar they must be, from 0 to 1.
    """
    by_lower: dict[str, list[str]] = {}
    for candidate in known:
        by_lower.setdefault(candidate.lower(), []).append(candidate)
    near = difflib.get_close_matches(name.lower(), by_lower, n=max(most, 1), cutoff=cutoff)
    return [candidate for lower in near for candidate in by_lower[lower]][:most]


def did_you_mean(name: str, known: Iterable[str], otherwise: str | None = None, cutoff: float = 0.6) -> str:
    """A helpful sentence: the name that was probably meant or, if none is near, the names there are.

    Args:
        name: The name that is not known.
        known: The names that are.
        otherwise: The sentence to return if none is near, instead of the known names.
        cutoff: See `near_names`.
    """
    known = list(known)
    if near := near_names(name, known, cutoff=cutoff):
        return f"Did you mean {near[0]}?"
    return f"There are: {', '.join(known) or 'none'}." if otherwise is None else otherwise
