#!/bin/sh
# What the image runs: a command, such as `millrace node run …`; or Beam's worker, which Beam starts by its flags alone.
set -eu
case "${1:-}" in
  --*) exec "${BEAM_BOOT:-/opt/apache/beam/boot}" "$@" ;;
  *) exec "$@" ;;
esac
