#!/bin/sh
# The image's entry point: a command, such as `millrace node run …`, or Beam's worker, which Beam starts with only flags.
set -eu
case "${1:-}" in
  --*) exec "${BEAM_BOOT:-/opt/apache/beam/boot}" "$@" ;;
  *) exec "$@" ;;
esac
