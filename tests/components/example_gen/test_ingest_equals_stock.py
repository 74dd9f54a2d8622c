"""Our Examples are those of TFX's CsvExampleGen, split by split."""

from __future__ import annotations

import csv
import io
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ingest_helpers import canonical, read_splits, stock_splits

from components.example_gen.contract import merge_kinds
from components.example_gen.encoding import encode_examples
from components.example_gen.files import InputFiles, resolve
from components.example_gen.hashing import binary_values, hash_buckets
from components.example_gen.reading import ReadingSettings
from components.example_gen.settings import DataSettings
from components.example_gen.sources import source_of
from contracts.errors import BadRowError

TAXI = "package:tfx/examples/chicago_taxi_pipeline/data/simple/data.csv"


def test_the_real_taxi_trips_land_in_the_same_splits(ingest: Callable[..., Any], tmp_path: Path) -> None:
    file = resolve(DataSettings(path=TAXI), ".").files[0]
    (tmp_path / "stock").mkdir()
    shutil.copy(file, tmp_path / "stock")

    examples, rejected = ingest(TAXI, splits={"train": 2, "eval": 1})

    ours = read_splits(examples)
    assert ours == stock_splits(tmp_path / "stock", tmp_path / "stock-examples")
    assert {split: counter.total() for split, counter in ours.items()} == {"train": 10036, "eval": 4966}
    assert examples.get_int_custom_property("num_rows") == 15002
    assert rejected.num_rows == 0


def stock_examples(file: Path) -> Counter[bytes]:
    """Runs the functions inside CsvExampleGen without Beam."""
    from tfx.components.example_gen.csv_example_gen import executor
    from tfx.utils import io_utils
    from tfx_bsl.coders import csv_decoder

    names = io_utils.load_csv_column_names(str(file))
    parse, infer = csv_decoder.ParseCSVLine(","), csv_decoder.ColumnTypeInferrer(names, skip_blank_lines=True)
    parse.setup()
    records = executor._ReadCsvRecordsFromTextFile().process(str(file))
    cells = [cells for record in records for cells, _ in parse.process(record)]
    types = infer.create_accumulator()
    for row in cells:
        types = infer.add_input(types, row)
    columns, encode = infer.extract_output(types), executor._ParsedCsvToTfExample()
    examples = [example for row in cells for example in encode.process(row, columns)]
    return Counter(example.SerializeToString(deterministic=True) for example in examples)


def our_examples(*files: Path) -> Counter[bytes]:
    source = source_of("csv", ReadingSettings())
    pieces = source.pieces(InputFiles(None, files, "csv"))
    kinds = merge_kinds([source.infer(piece, fail=True) for piece in pieces])
    counts: Counter[bytes] = Counter()
    for piece in pieces:
        for batch in source.read_batches(piece, kinds):
            counts.update(binary_values(encode_examples(batch.columns, batch.num_rows)) if batch.num_rows else [])
    assert all(record == canonical(record) for record in counts)
    return counts


NUMBERS = ["0", "7", "-3", "007", "+5", " 5", "5 ", "1_000", "9223372036854775807", "-9223372036854775808"]
NUMBERS += ["9223372036854775808", "-9223372036854775809", "99999999999999999999", "-0", "1__0", "0x10", "٣"]
FLOATS = ["1.5", ".5", "5.", "-0.0", "1e5", "1E-400", "1e400", "3.4e39", "inf", "-Infinity", "nan", "-nan", "nan(1)"]
FLOATS += ["0.1", "16777217.0", "1_0.5", " 2.5 ", "1e", "0.30000001192092896"]
WORDS = ["NA", "null", "NULL", "None", "true", "False", "2020-01-01", "12:30", "", " ", "a,b", 'say "hi"', '""', "é✓"]
WORDS += ["two\nlines", "two\r\nlines", "a\n\nb", ",", "#N/A", "\t", "'", "\ufeff", "\u2028", "x" * 200]
COLUMN = st.sampled_from([NUMBERS, FLOATS, WORDS, NUMBERS + FLOATS, ["", "1", "2.5"], ["", "1"], [""]]).flatmap(
    lambda values: st.lists(st.sampled_from(values), min_size=12, max_size=12)
)


@st.composite
def csv_bytes(draw: st.DrawFn) -> bytes:
    """CSV with nasty cells, nastily written: quoted or not, with blank lines and either line ending."""
    columns = draw(st.lists(COLUMN, min_size=1, max_size=5))
    out = io.StringIO()
    style = draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]))
    ending = draw(st.sampled_from(["\n", "\r\n"]))
    writer = csv.writer(out, quoting=style, lineterminator=ending)
    for row in list(zip(*columns, strict=True))[: draw(st.integers(1, 12))]:
        writer.writerow(row)
        out.write(ending * draw(st.sampled_from([0, 0, 0, 1, 2])))
    text = out.getvalue()
    if draw(st.booleans()):
        text = text.rstrip("\r\n") or text
    return (",".join(f"c{i}" for i in range(len(columns))) + ending + text).encode()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(csv_bytes())
def test_nasty_cells_become_the_same_examples(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "data.csv")
        file.write_bytes(data)
        assert our_examples(file) == stock_examples(file)


@pytest.mark.parametrize(
    "body",
    [
        'a"b,1\n',  # a quote inside an unquoted cell, twice on one line
        'a"b,c"d\n1,2\n',
        '"a"b"",1\n',
        '"a\rb",1\n',
        '"a"x,1\n',
        ' "a",1\n',
        'x"y,"z,1"\n2,3\n',
    ],
)
def test_odd_quotes_are_read_as_stock_reads_them(body: str, tmp_path: Path) -> None:
    file = tmp_path / "data.csv"
    file.write_bytes(b"u,v\n" + body.encode())
    try:
        expected = stock_examples(file)
    except (ValueError, csv.Error):
        # Stock refuses what it takes for unbalanced quotes; the csv module, which we follow, may know better.
        with file.open(newline="") as opened:
            rows = [row for row in csv.reader(opened) if row][1:]
        if all(len(row) == 2 for row in rows):
            assert our_examples(file).total() == len(rows)
        else:
            with pytest.raises(BadRowError):
                our_examples(file)
    else:
        assert our_examples(file) == expected


def test_a_type_is_inferred_over_all_files(tmp_path: Path) -> None:
    first, second = tmp_path / "1.csv", tmp_path / "2.csv"
    first.write_text("a,b\n1,1\n")
    second.write_text("a,b\nx,2.5\n")
    both = tmp_path / "both.csv"
    both.write_text("a,b\n1,1\nx,2.5\n")
    assert our_examples(first, second) == stock_examples(both)


def test_buckets_are_the_digest_modulo_their_number() -> None:
    import hashlib

    keys = [bytes([i]) * i for i in range(100)]
    expected = [int(hashlib.sha256(key).hexdigest(), 16) % 1_000_003 for key in keys]
    assert hash_buckets(keys, 1_000_003).tolist() == expected
