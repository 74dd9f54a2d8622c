"""Measures our ExampleGen against TFX's CsvExampleGen: `python -m benchmarks.ingest`; about four minutes on two cores.

The data are the Chicago taxi trips that come with TFX, repeated 20 times (300,040 rows). Each executor runs in a
process of its own, in memory; imports do not count. Prints the seconds of each, their ratio, whether both wrote equal
Examples to each split, and how much more memory (peak resident set) ours takes for ten times the rows.
"""

from __future__ import annotations

import hashlib
import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import children, command, millrace

SPEED_BAR, MEMORY_BAR = 20.0, 1.3
DIGEST_BITS = 256


def main() -> None:
    """Runs every measurement in a child process, prints the table, and exits with 1 if a bar is missed."""
    with command.temporary_folder(Console()) as folder:
        for name, times in (("small", 20), ("large", 200)):
            Path(folder, name).mkdir()
            millrace.write_taxi_rows(folder / name / "data.csv", times)
        stock = _in_child(folder, "stock", "small", digest=True)
        ours = _in_child(folder, "ours", "small", digest=True)
        # Not compared with stock, which takes minutes and gigabytes.
        ours_large = _in_child(folder, "ours", "large", digest=False)
    ratio, growth = stock["seconds"] / ours["seconds"], ours_large["peak_mib"] / ours["peak_mib"]
    for name, result in (("CsvExampleGen", stock), ("ours", ours), ("ours", ours_large)):
        print(f"{name:<13}  {result['rows']:>9,} rows  {result['seconds']:7.2f} s  {result['peak_mib']:6.0f} MiB")
    print(f"times as fast: {ratio:.1f} (bar: {SPEED_BAR:.0f})")
    equal = stock["digests"] == ours["digests"]
    print(f"same Examples in the same splits: {'yes' if equal else 'NO'}")
    print(f"memory for ten times the rows: {growth:.2f} times (bar: {MEMORY_BAR})")
    if not (equal and ratio >= SPEED_BAR and growth < MEMORY_BAR):
        sys.exit("A bar is missed.")


def _in_child(folder: Path, side: str, data: str, digest: bool) -> dict[str, Any]:
    arguments = {"side": side, "data": str(folder / data), "output": str(folder / f"{side}-{data}"), "digest": digest}
    return dict(children.call_in_child("benchmarks.ingest:measure", arguments, folder / "children"))


def measure(side: str, data: str, output: str, digest: bool) -> dict[str, Any]:
    """Runs an executor in this process.

    Args:
        side: `stock` or `ours`.
        data: The folder of the CSV.
        output: The folder of the Examples.
        digest: Whether to compute digests of the Examples; if not, our executor reports their number.

    Returns:
        `seconds`, `peak_mib`, `rows`, and `digests` by split.
    """
    examples, run = (_stock if side == "stock" else _ours)(Path(data), Path(output))
    start = time.perf_counter()
    run()
    seconds = time.perf_counter() - start
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rows, digests = _digests(examples) if digest else (examples.get_int_custom_property("num_rows"), {})
    return {"seconds": seconds, "peak_mib": peak_mib, "rows": rows, "digests": digests}


def _ours(data: Path, output: Path) -> tuple[Any, Callable[[], Any]]:
    from tfx.types import standard_artifacts

    from components.example_gen.component import Executor, RejectedRows
    from components.example_gen.settings import DataSettings

    examples, rejected = standard_artifacts.Examples(), RejectedRows()
    examples.uri, rejected.uri = str(output / "examples"), str(output / "rejected")
    for artifact in (examples, rejected):
        Path(artifact.uri).mkdir(parents=True)
    properties = {"settings": DataSettings(path=str(data)).model_dump_json(), "base_dir": ".", "labels": "[]"}
    outputs = {"examples": [examples], "rejected_rows": [rejected]}
    return examples, lambda: Executor().Do({}, outputs, properties)


def _stock(data: Path, output: Path) -> tuple[Any, Callable[[], Any]]:
    from tfx.components.example_gen import utils
    from tfx.components.example_gen.csv_example_gen.executor import Executor
    from tfx.proto import example_gen_pb2
    from tfx.types import standard_artifacts
    from tfx.utils import proto_utils

    examples = standard_artifacts.Examples()
    examples.uri = str(output)
    input_config = utils.make_default_input_config()
    properties = {
        "input_base": str(data),
        "input_config": proto_utils.proto_to_json(input_config),
        "output_config": proto_utils.proto_to_json(utils.make_default_output_config(input_config)),
        "output_data_format": example_gen_pb2.FORMAT_TF_EXAMPLE,
        "output_file_format": example_gen_pb2.FORMAT_TFRECORDS_GZIP,
    }
    return examples, lambda: Executor().Do({}, {"examples": [examples]}, properties)


def _digests(examples: Any) -> tuple[int, dict[str, int]]:
    """Returns the number of rows, and for each split the sum of its Examples' digests, whatever their order."""
    import tensorflow as tf

    rows, digests = 0, {}
    for split in json.loads(examples.split_names):
        files = sorted(map(str, Path(examples.uri, f"Split-{split}").iterdir()))
        digests[split] = 0
        for record in tf.data.TFRecordDataset(files, "GZIP").as_numpy_iterator():
            canonical = tf.train.Example.FromString(record).SerializeToString(deterministic=True)
            digests[split] += int.from_bytes(hashlib.sha256(canonical).digest(), "big")
            rows += 1
        digests[split] %= 2**DIGEST_BITS
    return rows, digests


if __name__ == "__main__":
    main()
