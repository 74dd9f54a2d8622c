"""The allocator's settings."""

from __future__ import annotations

import subprocess
import sys

ASK = "from serving import main; print(main.give_back_memory())"


def settings_made(**environment: str) -> str:
    finished = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, check=True, env=environment)
    return finished.stdout.strip()


def test_the_allocator_is_told_to_give_memory_back() -> None:
    assert settings_made() == "['MALLOC_ARENA_MAX', 'MALLOC_MMAP_THRESHOLD_', 'MALLOC_TRIM_THRESHOLD_']"


def test_the_environment_has_the_last_word() -> None:
    assert settings_made(MALLOC_ARENA_MAX="8") == "['MALLOC_MMAP_THRESHOLD_', 'MALLOC_TRIM_THRESHOLD_']"
