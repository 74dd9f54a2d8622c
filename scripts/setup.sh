#!/usr/bin/env bash
# Makes .venv from requirements.lock; again only if the lock or setup.py has changed.
# Needs Python 3.10, or uv, or any Python 3 that can install uv.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=.venv
stamp=$venv/.millrace-lock
digest=$(cat requirements.lock setup.py | { sha256sum 2>/dev/null || shasum -a 256; } | cut -d' ' -f1)
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$digest" ]; then
  exit 0
fi

fail() {
  echo "setup: $*" >&2
  exit 1
}

# A version manager's shim may be in the PATH and fail when called, so each candidate is tried, not just looked up.
find_uv() {
  if uv --version >/dev/null 2>&1; then
    echo uv
    return
  fi
  if [ ! -x .venv-uv/bin/uv ]; then
    local python
    for python in python3.10 python3 python; do
      if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 8))' >/dev/null 2>&1 &&
        "$python" -m venv .venv-uv >/dev/null 2>&1 &&
        .venv-uv/bin/pip install --quiet --disable-pip-version-check uv >/dev/null; then
        break
      fi
      rm -rf .venv-uv
    done
  fi
  [ -x .venv-uv/bin/uv ] && echo .venv-uv/bin/uv
}

uv=$(find_uv) || fail "found neither uv nor a Python 3 with venv and pip to install it with; install Python 3.10 and try again."

echo "setup: making $venv from requirements.lock (about 3 GB, once)"
if ! "$venv/bin/python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 10))' >/dev/null 2>&1; then
  # Requested by path if one is found, since a version manager's shim may shadow the name.
  python=$("$uv" python find --system 3.10 2>/dev/null) || python=3.10
  "$uv" venv --quiet --clear --python "$python" "$venv" 2>/dev/null ||
    fail "Millrace needs Python 3.10; found $(python3 --version 2>&1 | head -n 1). Install Python 3.10 (python3.10 in the PATH, pyenv install 3.10, or uv python install 3.10) and try again."
fi
"$uv" pip sync --quiet --python "$venv/bin/python" --require-hashes requirements.lock
"$uv" pip install --quiet --python "$venv/bin/python" --no-deps --no-build-isolation -e .
# Compiled once here; otherwise the first run would pay for it.
"$venv/bin/python" -m compileall -q -j 0 "$venv/lib" >/dev/null 2>&1 || true
echo "$digest" >"$stamp"
