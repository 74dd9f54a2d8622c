"""TFT's analysis by columns, in this process.

TFT turns a `preprocessing_fn` into a graph of operations, each of which is a stage or more of a Beam pipeline. Here the
same graph is worked off operation by operation: `analysis` does what TFT's `AnalyzeDataset` does, `operations` knows
each of them, and `accumulators` are what a pass over the rows adds up.
"""
