"""What a node's process imports, and what it leaves out."""

from __future__ import annotations

import json
import subprocess
import sys

from pipeline.plan.project import ENGINE

SCRIPT = """
import gc, json, sys
from pipeline.run.lean_imports import lean
with lean():
    collected = gc.isenabled()
    from pipeline.run import tfx_adapter
absent = ["google.cloud.bigquery.client", "google.cloud.pubsub_v1", "IPython.terminal", "kubernetes_validate"]
loaded = [name for name in absent if sys.modules.get(name)]
from IPython import get_ipython
from google.cloud.bigquery import Client
print(json.dumps([collected, gc.isenabled(), gc.get_freeze_count() > 100_000, loaded, get_ipython(), Client.__name__]))
"""


def test_what_no_pipeline_calls_stays_away_until_it_is_called() -> None:
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT]
    done = subprocess.run(command, cwd=ENGINE, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    collected, collects_now, frozen, loaded, notebook, client = json.loads(done.stdout.splitlines()[-1])
    assert (collected, collects_now, frozen) == (False, True, True)
    assert loaded == []
    assert (notebook, client) == (None, "Client")
