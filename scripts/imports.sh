#!/usr/bin/env bash
# Fails on imports of packages that setup.py does not declare, which are there only as long as another package needs them.
set -euo pipefail
cd "$(dirname "$0")/.."

# deptry reads lists, not setup.py.
lists=$(mktemp -d)
trap 'rm -rf "$lists"' EXIT
.venv/bin/python - "$lists" <<'END'
import sys
from pathlib import Path

from setuptools import Distribution  # before distutils, which it replaces
from distutils.core import run_setup

declared: Distribution = run_setup("setup.py", stop_after="init")
for name, packages in {"runtime": declared.install_requires, "dev": declared.extras_require["dev"]}.items():
    Path(sys.argv[1], f"{name}.txt").write_text("\n".join(packages))
END
.venv/bin/deptry . --requirements-files "$lists/runtime.txt" --requirements-files-dev "$lists/dev.txt"
