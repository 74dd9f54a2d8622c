#!/usr/bin/env bash
# Installs Chromium for the tests if there is none: Playwright's own, or else the system's package.
set -euo pipefail
cd "$(dirname "$0")/.."

python=.venv/bin/python
if "$python" tests/browser.py >/dev/null 2>&1; then
  exit 0
fi
if [ -n "${MILLRACE_CHROMIUM:-}" ]; then
  exec "$python" tests/browser.py >/dev/null
fi

echo "browser: installing Chromium for the tests"
# Playwright's output is shown only if nothing else helps either.
seconds=180
if output=$(timeout "$seconds" .venv/bin/playwright install chromium 2>&1) && "$python" tests/browser.py --try; then
  exit 0
fi

admin=()
if [ "$(id -u)" != 0 ]; then
  admin=(sudo -n)
fi
if command -v apt-get >/dev/null; then
  echo "browser: Playwright's Chromium could not be installed or does not start; trying the system's package"
  export DEBIAN_FRONTEND=noninteractive
  "${admin[@]}" apt-get update -qq || true
  if "${admin[@]}" apt-get install -y -qq --no-install-recommends chromium && "$python" tests/browser.py --try; then
    exit 0
  fi
fi
echo "$output" >&2
echo "browser: could not install Chromium. Install Chromium or Chrome yourself, and set MILLRACE_CHROMIUM to its path if it is not in the PATH." >&2
exit 1
