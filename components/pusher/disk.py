"""Files that are on the disk, or an error that says why not."""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from components.errors import PushError

ERRNO = re.compile(r"\[Errno (\d+)\] ")
FIXES = {
    errno.EACCES: "Give this user the right to write there, or set serving_root in the environment.",
    errno.EPERM: "Give this user the right to write there, or set serving_root in the environment.",
    errno.EROFS: "It lies on a file system that is mounted read-only; set serving_root in the environment.",
    errno.ENOSPC: "Free some space, or lower pusher.keep_versions.",
    errno.EDQUOT: "Free some space, or lower pusher.keep_versions.",
    errno.ENOTDIR: "A file is in the place of a folder; move it away.",
    errno.EEXIST: "A file is in the place of a folder; move it away.",
}


@contextmanager
def translated(base: Path) -> Iterator[None]:
    """Tells what the operating system refused, and what can be done about it.

    Args:
        base: What was to be written.

    Raises:
        PushError: The operating system refused something.
    """
    try:
        yield
    except shutil.Error as error:
        # copytree collects what went wrong with each file, as text; the first says it.
        what = str(error.args[0][0][2])
        number = ERRNO.match(what)
        fix = FIXES.get(int(number[1])) if number else None
        raise PushError(f"The model cannot be written to {base}: {ERRNO.sub('', what)}.", fix) from error
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        raise PushError(
            f"The model cannot be written to {base}: {error.strerror or error}{where}.", FIXES.get(error.errno or 0)
        ) from error


def link_or_copy(source: str, target: str) -> None:
    """Makes `target` another name of the file `source`; a copy where the file system has no links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def force_tree(folder: Path) -> None:
    """Forces a folder with all that is in it to the disk."""
    for parent, _, names in os.walk(folder):
        for name in names:
            force(Path(parent, name))
        force(Path(parent))


def force(path: Path) -> None:
    """Forces a file, or the names in a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
