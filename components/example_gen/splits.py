"""Files to splits by the patterns of `data.splits`. Imports nothing heavy: preflight comes by here."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping, Sequence

from components.errors import DataError

_SHOWN = 5


def match_splits(names: Sequence[str], patterns: Mapping[str, str]) -> dict[str, str]:
    """Gives every file its split.

    Args:
        names: Paths of files below the data folder, or names of CIFAR-10 batches.
        patterns: Split name -> pattern, matched against a whole name; `*` matches `/` too.

    Returns:
        Name -> split name.

    Raises:
        DataError: A name matches no pattern or several, or a pattern matches no name.
    """
    splits: dict[str, str] = {}
    homeless: list[str] = []
    # Not fnmatch.fnmatchcase: it looks its pattern up in a cache for every name.
    tests = {split: re.compile(fnmatch.translate(pattern)).match for split, pattern in patterns.items()}
    for name in names:
        chosen = [split for split, matches in tests.items() if matches(name)]
        if len(chosen) > 1:
            matched = " and ".join(f"{split} ({patterns[split]!r})" for split in chosen)
            raise DataError(
                f"data.splits: {name} matches the patterns of {matched}, expected of one split only.",
                "Narrow the patterns.",
            )
        if chosen:
            splits[name] = chosen[0]
        else:
            homeless.append(name)
    shown = ", ".join(f"{split}: {pattern!r}" for split, pattern in patterns.items())
    if idle := [split for split in patterns if split not in splits.values()]:
        raise DataError(
            f"data.splits: the pattern {patterns[idle[0]]!r} of split {idle[0]!r} matches no file, expected at least "
            f"one of {list_names(names)}.",
            "Correct the pattern; it is matched against the whole of such a name, and `*` stands for any text.",
        )
    if homeless:
        raise DataError(
            f"data.splits: {list_names(homeless)} matches none of the patterns {shown}.",
            "Widen a pattern, or narrow data.path, so that every file belongs to one split.",
        )
    return splits


def list_names(names: Sequence[str]) -> str:
    """Returns the first names, and how many more there are, for a message."""
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
