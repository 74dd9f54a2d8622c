"""Packages that only a benchmark needs: installed beside the benchmark's files, never into the environment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.children import ChildError

UV = Path(sys.executable).with_name("uv")


def install(folder: Path, *requirements: str) -> Path:
    """Installs wheels without what they depend on; returns the folder to import them from.

    Args:
        folder: A new folder.
        requirements: As `lightgbm==4.6.0`.

    Raises:
        ChildError: The packages cannot be had.
    """
    command = [str(UV), "pip", "install", "--quiet", "--no-deps", "--target", str(folder), *requirements]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ChildError(f"{' and '.join(requirements)} could not be installed: {done.stderr.strip()}")
    return folder
