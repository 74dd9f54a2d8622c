"""Measures our ExampleGen against TFX's CsvExampleGen.

    python benchmarks/ingest.py            # about four minutes on two cores

The data are the Chicago taxi trips that come with TFX, repeated 20 times (300,040 rows). Each executor runs in a
process of its own, in memory; imports do not count. Prints the seconds of each, their ratio, whether both wrote equal
Examples to each split, and how much more memory (peak resident set) ours takes for ten times the rows.
"""

from __future__ import annotations

import hashlib
import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TAXI = "package:tfx/examples/chicago_taxi_pipeline/data/simple/data.csv"
SPEED_BAR, MEMORY_BAR = 20.0, 1.3
_DIGEST_BITS = 256


def main() -> None:
    """Runs every measurement in a child process, prints the table, and exits with 1 if a bar is missed."""
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder, "small"), Path(folder, "large")
        _write_taxi(small, repeats=20)
        _write_taxi(large, repeats=200)
        stock = _in_child("stock", small, Path(folder, "stock"))
        ours = _in_child("ours", small, Path(folder, "ours"))
        ours_large = _in_child("ours-large", large, Path(folder, "ours-large"))
    ratio, growth = stock["seconds"] / ours["seconds"], ours_large["peak_mib"] / ours["peak_mib"]
    print(f"CsvExampleGen  {stock['rows']:>9,} rows  {stock['seconds']:7.2f} s  {stock['peak_mib']:6.0f} MiB")
    for result in (ours, ours_large):
        print(f"ours           {result['rows']:>9,} rows  {result['seconds']:7.2f} s  {result['peak_mib']:6.0f} MiB")
    print(f"times as fast: {ratio:.1f} (bar: {SPEED_BAR:.0f})")
    equal = stock["digests"] == ours["digests"]
    print(f"same Examples in the same splits: {'yes' if equal else 'NO'}")
    print(f"memory for ten times the rows: {growth:.2f} times (bar: {MEMORY_BAR})")
    if not (equal and ratio >= SPEED_BAR and growth < MEMORY_BAR):
        sys.exit("A bar is missed.")


def _write_taxi(folder: Path, repeats: int) -> None:
    sys.path.insert(0, str(ROOT))
    from components.example_gen.files import resolve
    from components.example_gen.settings import DataSettings

    header, rows = resolve(DataSettings(path=TAXI), ".").files[0].read_bytes().split(b"\n", 1)
    folder.mkdir()
    with Path(folder, "data.csv").open("wb") as file:
        file.write(header + b"\n")
        for _ in range(repeats):
            file.write(rows)


def _in_child(which: str, data: Path, output: Path) -> dict[str, Any]:
    command = [sys.executable, __file__, which, str(data), str(output)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def _child(which: str, data: Path, output: Path) -> None:
    sys.path.insert(0, str(ROOT))
    warnings.simplefilter("ignore")
    examples, run = (_stock if which == "stock" else _ours)(data, output)
    start = time.perf_counter()
    run()
    seconds = time.perf_counter() - start
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if which == "ours-large":  # Nothing to compare with: stock takes minutes and gigabytes.
        rows = examples.get_int_custom_property("num_rows")
        digests: dict[str, int] = {}
    else:
        rows, digests = _digests(examples)
    print(json.dumps({"seconds": seconds, "peak_mib": peak_mib, "rows": rows, "digests": digests}))


def _ours(data: Path, output: Path) -> tuple[Any, Any]:
    import components  # noqa: F401, I001  # settles the environment before TensorFlow loads
    from components.example_gen.artifacts import RejectedRows
    from components.example_gen.executor import Executor
    from components.example_gen.settings import DataSettings
    from tfx.types import standard_artifacts

    examples, rejected = standard_artifacts.Examples(), RejectedRows()
    examples.uri, rejected.uri = str(output / "examples"), str(output / "rejected")
    for artifact in (examples, rejected):
        Path(artifact.uri).mkdir(parents=True)
    properties = {"settings": DataSettings(path=str(data)).model_dump_json(), "base_dir": ".", "fingerprint": ""}
    outputs = {"examples": [examples], "rejected_rows": [rejected]}
    return examples, lambda: Executor().Do({}, outputs, properties)


def _stock(data: Path, output: Path) -> tuple[Any, Any]:
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
    """Returns the number of rows, and for each split the sum of its Examples' digests, which no order changes."""
    import tensorflow as tf

    rows, digests = 0, {}
    for split in json.loads(examples.split_names):
        files = sorted(map(str, Path(examples.uri, f"Split-{split}").iterdir()))
        digests[split] = 0
        for record in tf.data.TFRecordDataset(files, "GZIP").as_numpy_iterator():
            canonical = tf.train.Example.FromString(record).SerializeToString(deterministic=True)
            digests[split] += int.from_bytes(hashlib.sha256(canonical).digest(), "big")
            rows += 1
        digests[split] %= 2**_DIGEST_BITS
    return rows, digests


if __name__ == "__main__":
    if len(sys.argv) == 4:
        _child(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        main()
