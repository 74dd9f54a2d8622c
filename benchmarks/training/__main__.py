"""Measures the Trainer against its bars: `python -m benchmarks.training [NAME …]`; see README.md one folder up."""

from __future__ import annotations

from benchmarks.command import command
from benchmarks.training import fit, precision
from benchmarks.training.bench import TrainingBench

BENCHMARKS = {
    "precision": precision.measure_precision,
    "fit": fit.measure_fit,
    "input": fit.measure_input,
    "workers": fit.measure_workers,
    "recompute": fit.measure_recompute,
    "tflite": precision.measure_tflite,
}

TEXT = """Measure the Trainer: all benchmarks, or the named ones.

Each side of a comparison is a process of its own; they take turns, and ratios are medians over the rounds.

Exit codes: 0 all bars met, 1 a bar missed or a run failed.
"""

main = command("The Trainer", TEXT, TrainingBench, BENCHMARKS)

if __name__ == "__main__":
    main()
