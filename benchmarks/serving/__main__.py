"""Measures the model server against its bars: `python -m benchmarks.serving [NAME …]`; see README.md one folder up."""

from __future__ import annotations

from benchmarks.command import command
from benchmarks.serving import protocols, sizes, swap
from benchmarks.serving.bench import Bench

BENCHMARKS = {
    "rest": protocols.rest,
    "grpc": protocols.grpc,
    "fastapi": protocols.fastapi,
    "heavy": sizes.heavy,
    "batching": sizes.batching,
    "swap": swap.measure,
}

TEXT = """Measure the model server: all of it, or what is named.

Servers, clients and yardsticks are processes of their own; ratios are medians over the rounds.

Exit codes: 0 all bars met, 1 a bar missed or a run failed.
"""

main = command("The model server", TEXT, Bench, BENCHMARKS)

if __name__ == "__main__":
    main()
