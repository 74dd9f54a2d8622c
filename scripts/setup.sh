#!/usr/bin/env bash
# Makes .venv from the lock of the newest set of versions that this system can have (docs/sets.md). It is kept until that
# lock or setup.py changes, or TFX=1.16|1.21 or PYTHON=3.12|/path/to/python asks for another.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=.venv
stamp=$venv/.millrace-lock # the lock's digest, TFX, Python's version, PYTHON as it was given

fail() {
  echo "setup: $*" >&2
  exit 1
}

# Sets `lock`; no subshell, since every `make` passes by here.
lock_of() {
  lock=requirements.lock
  [ "$1" = 1.16 ] || lock=requirements-tfx-1.21.lock
}

digest_of() {
  lock_of "$1"
  cat "$lock" setup.py | { sha256sum 2>/dev/null || shasum -a 256; } | cut -d' ' -f1
}

is_kept() {
  local digest set version given
  [ -f "$stamp" ] && read -r digest set version given <"$stamp" && [ "${TFX:-$set}" = "$set" ] || return 1
  case ${PYTHON:-$version} in
    "$version" | "$given") [ "$digest" = "$(digest_of "$set")" ] ;;
    *) return 1 ;;
  esac
}

# Sets `tfx`, `python` and `reason`, and ends with an error where they cannot be had.
choose() {
  case ${TFX:-} in
    "" | 1.16 | 1.21) tfx=${TFX:-} ;;
    *) fail "received TFX=$TFX; expected 1.16, 1.21, or nothing for the newest that this system can have." ;;
  esac
  python=""
  if [ -n "${PYTHON:-}" ]; then
    choose_by_python
  fi
  if [ -n "$tfx" ]; then
    reason="as asked by${TFX:+ TFX=$TFX}${PYTHON:+ PYTHON=$PYTHON}"
    local missing
    missing=$(why_not "$tfx")
    [ -z "$missing" ] || fail "TFX $tfx, $reason, cannot be had: $missing. Leave that out for what can be had; docs/sets.md has the systems."
  else
    choose_newest
  fi
  if [ -z "$python" ]; then
    python=$(get_python "$tfx") || fail "TFX $tfx needs Python $(listed_pythons_of "$tfx"), of which there is none in the PATH, in pyenv or from uv. Install one (apt-get install python3 python3-dev, pyenv install, brew install python@3.13) or give the path of one: PYTHON=/path/to/python."
  fi
}

choose_by_python() {
  local version of
  case $PYTHON in
    3.[0-9] | 3.[0-9][0-9])
      python=$(find_python "$PYTHON") || fail "received PYTHON=$PYTHON, and there is no such Python in the PATH, in pyenv or from uv. Install it, or give its path."
      ;;
    *) python=$PYTHON ;;
  esac
  version=$(version_of "$python") || fail "received PYTHON=$PYTHON; expected a version, such as 3.12, or the path of a Python that runs."
  for of in 1.21 1.16; do
    case " $(pythons_of $of) " in
      *" $version "*)
        [ "${tfx:-$of}" = $of ] || fail "received TFX=$tfx and PYTHON=$PYTHON, which is Python $version; TFX $tfx needs Python $(listed_pythons_of "$tfx"). Leave one of them out."
        tfx=$of
        return
        ;;
    esac
  done
  fail "received PYTHON=$PYTHON, which is Python $version; expected $(listed_pythons_of 1.21) (TFX 1.21) or 3.10 (TFX 1.16)."
}

choose_newest() {
  local newer older
  newer=$(why_not 1.21)
  older=$(why_not 1.16)
  [ -z "$newer" ] || [ -z "$older" ] || fail "neither set of versions can be had: $newer; $older. docs/sets.md has the systems."
  tfx=1.21
  reason="since this system has $(base_system)"
  if [ -n "$newer" ]; then
    tfx=1.16
    reason="since $newer"
  elif [ -z "$older" ] && ! python=$(get_python 1.21); then
    tfx=1.16
    reason="since TFX 1.21 needs Python $(listed_pythons_of 1.21), of which there is none"
  fi
}

# Prints the path of a Python for TFX $1, downloaded by uv where there is none.
get_python() {
  local newest
  # shellcheck disable=SC2046 # a list of versions
  find_python $(pythons_of "$1") && return
  newest=$(pythons_of "$1" | cut -d' ' -f1)
  "$uv" python install --quiet "$newest" >/dev/null 2>&1 && find_python "$newest"
}

if is_kept; then
  exit 0
fi
. scripts/system.sh
uv=$(find_uv) || fail "found neither uv nor a Python 3 with venv and pip to install it with. Install Python 3.13 or 3.10 (Debian, Ubuntu: apt-get install python3-venv python3-dev g++) and try again."
choose
version=$(version_of "$python")
lock_of "$tfx"

echo "setup: TFX $tfx on Python $version, $reason"
echo "setup: making $venv from $lock (about 3 GB, once)"
if [ "$(version_of "$venv/bin/python")" != "$version" ]; then
  "$uv" venv --quiet --clear --python "$python" "$venv"
fi
rm -f "$stamp"
"$uv" pip sync --quiet --python "$venv/bin/python" --require-hashes "$lock" ||
  fail "the packages of $lock could not be installed, as said above. Some are compiled here, with a C++ compiler and Python's headers (Debian, Ubuntu: apt-get install g++ python3-dev)."
"$uv" pip install --quiet --python "$venv/bin/python" --no-deps --no-build-isolation -e .
# Compiled once here; otherwise the first run would pay for it.
"$venv/bin/python" -m compileall -q -j 0 "$venv/lib" >/dev/null 2>&1 || true
echo "$(digest_of "$tfx") $tfx $version ${PYTHON:-}" >"$stamp"
