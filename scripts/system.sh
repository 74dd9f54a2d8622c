# shellcheck shell=bash
# What this system has for the two sets of versions (docs/sets.md). Sourced by setup.sh and test_next.sh; runs in macOS's
# bash 3.2, too.

# Prints the library version that decides which packages there are: "glibc 2.41" or "macOS 14.5".
base_system() {
  if [ "$(uname -s)" = Darwin ]; then
    echo "macOS $(sw_vers -productVersion)"
  else
    getconf GNU_LIBC_VERSION 2>/dev/null || echo "no glibc"
  fi
}

# Prints why there are no packages of TFX $1 for this system, or nothing if there are: the tags of the wheels of
# TensorFlow, ML Metadata and TFDV decide.
why_not() {
  local system needed
  system="$(uname -s) on $(uname -m)"
  case "$1 $system" in
    "1.21 Linux on x86_64") needed="glibc 2.39" ;;
    "1.16 Linux on x86_64") needed="glibc 2.28" ;;
    "1.21 Darwin on arm64" | "1.16 Darwin on x86_64") needed="macOS 12.0" ;;
    *)
      echo "TFX $1 has no packages for $system"
      return
      ;;
  esac
  is_at_least "$needed" "$(base_system)" || echo "TFX $1's packages need $needed and this system has $(base_system)"
}

# Whether "NAME MAJOR.MINOR…" in $2 is the one in $1 or newer.
is_at_least() {
  local major minor
  IFS=. read -r major minor _ <<<"${2##* }"
  case $major${minor:=0} in
    *[!0-9]*) return 1 ;;
  esac
  local least=${1##* }
  [ $((major * 1000 + minor)) -ge $((${least%.*} * 1000 + ${least#*.})) ]
}

# Prints the Pythons that take the packages of TFX $1, the newest first.
pythons_of() {
  if [ "$1" = 1.16 ]; then echo 3.10; else echo 3.13 3.12 3.11; fi
}

# The same for people.
listed_pythons_of() {
  pythons_of "$1" | sed 's/ /, /g'
}

# Prints the version of a Python. It is tried, not just looked up: a version manager's shim may be in the PATH and fail.
version_of() {
  "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' </dev/null 2>/dev/null
}

# Prints the path of the first Python of these versions, tried in this order.
find_python() {
  local version python
  for version in "$@"; do
    while read -r python; do
      if [ "$(version_of "$python")" = "$version" ]; then
        echo "$python"
        return
      fi
    done < <(python_candidates "$version")
  done
  return 1
}

python_candidates() {
  local path
  type -aP "python$1" python3 python | while read -r path; do
    echo "$path"
    # pyenv's shims run only what its settings name.
    ls -d "${path%/shims/*}/versions/$1".*/bin/python 2>/dev/null || true
  done
  "${uv:-uv}" python find --no-project "$1" 2>/dev/null || true
}

# Prints how uv is called, installing it in .venv-uv where it is missing.
find_uv() {
  local python
  if uv --version >/dev/null 2>&1; then
    echo uv
    return
  fi
  if [ ! -x .venv-uv/bin/uv ]; then
    while read -r python; do
      if "$python" -m venv .venv-uv >/dev/null 2>&1 &&
        .venv-uv/bin/pip install --quiet --disable-pip-version-check uv >/dev/null; then
        break
      fi
      rm -rf .venv-uv
    done < <(for version in 3.13 3.12 3.11 3.10; do python_candidates "$version"; done)
  fi
  [ -x .venv-uv/bin/uv ] && echo .venv-uv/bin/uv
}
