#!/usr/bin/env bash
# `make test-next`: all tests on TFX 1.21, on a system that cannot have it (docs/sets.md): in a Debian 13 root, made once in
# .trixie/, by chroot; then what the two sets make is compared. $FLAGS goes to pytest, and leaves the comparison out.
# What is mounted and started is in namespaces of its own, which end with this script however it ends; so
# `rm -rf .trixie` is all that removes it.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/system.sh

root=$PWD/.trixie/root
project=$root/millrace
exchange=$PWD/.trixie/exchange # at the same path inside: artifacts are stored by their paths
packages="python3-venv python3-dev g++ git make ca-certificates procps curl chromium fonts-liberation"

skip() {
  echo "test-next: skipped: $*. The tests did not run on TFX 1.21."
  exit 0
}

check_system() {
  local reason
  reason=$(why_not 1.21)
  if [ -z "$reason" ]; then
    echo "test-next: this system can have TFX 1.21 itself: \`make test\` tests it."
    exit 0
  fi
  [ "$(uname -s) $(uname -m)" = "Linux x86_64" ] || skip "$reason, and a Debian 13 for it needs Linux on x86-64"
  [ "$(id -u)" = 0 ] || skip "$reason, and a Debian 13 for it needs root"
  "${alone[@]}" true 2>/dev/null || skip "$reason, and a Debian 13 for it needs the right to mount, which this container lacks"
  [ -d "$root" ] || command -v debootstrap >/dev/null || install_debootstrap ||
    skip "$reason, and debootstrap, which makes a Debian 13 for it, is missing and could not be installed"
  git rev-parse --git-dir >/dev/null 2>&1 || skip "only git tells which files belong to the project, and this is no repository"
}

install_debootstrap() {
  command -v apt-get >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get update -qq &&
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends debootstrap
} >/dev/null 2>&1

# Killed with this script, and all that it starts with it: `alone` is the only way into the root.
alone=(setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --propagation private)

make_root() {
  local log=$PWD/.trixie/making.log new=$root.partial
  echo "test-next: making a Debian 13 in .trixie (2 GB, once; \`rm -rf .trixie\` removes it)"
  rm -rf "$new"
  if ! "${alone[@]}" debootstrap --variant=minbase trixie "$new" >"$log" 2>&1 ||
    ! in_root "$new" "apt-get update && apt-get install -y --no-install-recommends --download-only $packages" >>"$log" 2>&1; then
    skip "a Debian 13 could not be had from Debian's mirror; .trixie/making.log ends: $(tail -n 1 "$log")"
  fi
  in_root "$new" "apt-get install -y --no-install-recommends $packages" >>"$log" 2>&1 || {
    echo "test-next: the packages could not be installed; .trixie/making.log says why." >&2
    exit 1
  }
  mv "$new" "$root"
}

# Runs the shell command $2, with the arguments after it, in the root $1: with its own mounts and processes, and of the
# environment only what installing packages needs.
in_root() {
  local root=$1 command=$2 name settings=()
  shift 2
  for name in $(compgen -e | grep -iE '^(PIP_.*|UV_.*|.*_PROXY|SSL_CERT_FILE|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE)$'); do
    # Caches and the like are the root's own.
    [ -d "${!name}" ] || settings+=("$name=${!name}")
    copy_file "$root" "${!name}"
  done
  mkdir -p "$exchange" "$root$exchange"
  for name in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/ssl/certs/ca-certificates.crt; do
    copy_file "$root" "$name"
  done
  # shellcheck disable=SC2016 # expanded inside
  "${alone[@]}" bash -euc '
    root=$1 exchange=$2
    mount --bind "$exchange" "$root$exchange"
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys" && mount -o remount,bind,ro "$root/sys"
    mount -t tmpfs -o mode=755 dev "$root/dev"
    mkdir "$root/dev/pts" "$root/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts "$root/dev/pts"
    mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
    for device in null zero full random urandom tty; do
      touch "$root/dev/$device" && mount --bind "/dev/$device" "$root/dev/$device"
    done
    ln -s pts/ptmx "$root/dev/ptmx"
    ln -s /proc/self/fd "$root/dev/fd"
    for number in 0:stdin 1:stdout 2:stderr; do ln -s "fd/${number%:*}" "$root/dev/${number#*:}"; done
    exec chroot "$root" env -i "${@:3}"
  ' bash "$root" "$exchange" "${settings[@]}" HOME=/root LANG=C.UTF-8 TERM="${TERM:-dumb}" DEBIAN_FRONTEND=noninteractive \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin bash -c "$command" bash "$@"
}

# Copies the file $2 to the same place in the root $1, if it is a file; it is not mounted, since what runs there may write it.
copy_file() {
  [[ $2 != /* || ! -f $2 ]] || install -D -m 644 "$2" "$1$2"
}

copy_project() {
  local path
  mkdir -p "$project"
  find "$project" -mindepth 1 -maxdepth 1 ! -name '.venv*' -exec rm -rf {} +
  find "$root/tmp" -mindepth 1 -delete
  git ls-files -z --cached --others --exclude-standard |
    while IFS= read -r -d '' path; do
      [ ! -e "$path" ] || printf '%s\0' "$path"
    done | tar --null --files-from=- --create | tar --extract --directory "$project"
}

# What each set makes of the same files, and whether it serves and goes on with what the other one made.
compare_sets() {
  local run=tests/end_to_end/other_set.py test=tests/end_to_end/test_other_set.py
  echo "test-next: comparing what the two sets make"
  rm -rf "${exchange:?}"/*
  .venv/bin/python -W ignore "$run" "$exchange/older"
  # shellcheck disable=SC2016 # expanded inside
  in_root "$root" 'cd /millrace && MILLRACE_OTHER_SET=$1/older .venv/bin/pytest "$2" && .venv/bin/python -W ignore "$3" "$1/newer"' \
    "$exchange" "$test" "$run"
  MILLRACE_OTHER_SET=$exchange/newer .venv/bin/pytest "$test" -k "not both_make_the_same"
}

check_system
mkdir -p .trixie
exec 9>.trixie/lock
flock --nonblock 9 || { echo "test-next: another one is running (.trixie/lock); wait for it." >&2; exit 1; }
[ -d "$root" ] || make_root
copy_project
# shellcheck disable=SC2016 # expanded inside
in_root "$root" 'cd /millrace && exec make test FLAGS="$1"' "${FLAGS:-}"
[ -n "${FLAGS:-}" ] || compare_sets
