"""What child processes need."""

from __future__ import annotations

import os
import threading
import time

POLL_SECONDS = 0.5


def die_with(parent: int) -> None:
    """Ends this process when `parent` is no longer its parent, so that a killed parent leaves nothing behind."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(POLL_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
