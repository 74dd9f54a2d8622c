"""Measures the model server against its bars: `python -m benchmarks.serving [NAME …]`; see README.md one folder up."""

from __future__ import annotations

from benchmarks.command import command
from benchmarks.serving import comparisons
from benchmarks.serving.bench import ServingBench

BENCHMARKS = {
    "rest": comparisons.rest,
    "grpc": comparisons.grpc,
    "fastapi": comparisons.fastapi,
    "heavy": comparisons.heavy,
    "batching": comparisons.batching,
    "swap": comparisons.swap,
}

TEXT = """Measure the model server: all benchmarks, or the named ones.

Servers, clients and yardsticks are processes of their own; ratios are medians over the rounds.

Exit codes: 0 all bars met, 1 a bar missed or a run failed.
"""

main = command("The model server", TEXT, ServingBench, BENCHMARKS)

if __name__ == "__main__":
    main()
