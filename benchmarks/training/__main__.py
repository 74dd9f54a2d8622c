"""Measures the Trainer against its bars: `python -m benchmarks.training [NAME …]`; see README.md one folder up."""

from __future__ import annotations

from benchmarks.command import command
from benchmarks.training import fit, input_pipeline, precision, recompute, tflite, workers
from benchmarks.training.bench import Bench

BENCHMARKS = {
    "precision": precision.measure,
    "fit": fit.measure,
    "input": input_pipeline.measure,
    "workers": workers.measure,
    "recompute": recompute.measure,
    "tflite": tflite.measure,
}

TEXT = """Measure the Trainer: all of it, or what is named.

Each side of a comparison is a process of its own; they take turns, and ratios are medians over the rounds.

Exit codes: 0 all bars met, 1 a bar missed or a run failed.
"""

main = command("The Trainer", TEXT, Bench, BENCHMARKS)

if __name__ == "__main__":
    main()
