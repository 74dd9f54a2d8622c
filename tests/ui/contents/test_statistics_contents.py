"""Statistics are read as they were written, both from hand-made protos and from TFDV's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import tensorflow_data_validation as tfdv
from google.protobuf import text_format
from tensorflow_data_validation.statistics import stats_impl
from tensorflow_metadata.proto.v0 import statistics_pb2

from contracts.content import ContentError
from metadata.records import ArtifactRecord
from ui.contents import statistics
from ui.contents.statistics import FeatureStatistics, SplitStatistics

HAND_MADE = """
datasets {
  num_examples: 10
  features {
    path { step: "trip" step: "fare" } type: FLOAT
    num_stats {
      common_stats { num_non_missing: 8 num_missing: 2 min_num_values: 1 max_num_values: 2 tot_num_values: 9 }
      mean: 2.5 std_dev: 1.5 num_zeros: 1 min: 0 median: 2 max: 5
      histograms { num_nan: 3 buckets { low_value: 0 high_value: 5 sample_count: 9 } }
      histograms {
        type: QUANTILES
        buckets { low_value: 0 high_value: 2 sample_count: 5 } buckets { low_value: 2 high_value: 5 sample_count: 4 }
      }
    }
  }
  features {
    name: "company" type: STRING
    string_stats {
      common_stats { num_non_missing: 10 min_num_values: 1 max_num_values: 1 avg_num_values: 1 }
      unique: 3 avg_length: 4.5 invalid_utf8_count: 4
      top_values { value: "__BYTES_VALUE__" frequency: 4 } top_values { value: "Blue" frequency: 3 }
      rank_histogram { buckets { label: "Blue" sample_count: 3 } buckets { label: "Red" sample_count: 2 } }
    }
    custom_stats {
      name: "string_lengths"
      histogram { buckets { low_value: 3 high_value: 4 sample_count: 5 } }
    }
  }
  features { path { step: "gone" } type: INT num_stats { common_stats { num_missing: 10 } } }
}
datasets { name: "a slice" num_examples: 2 }
"""


def of_text(text: str) -> SplitStatistics:
    proto = text_format.Parse(text, statistics_pb2.DatasetFeatureStatisticsList())
    return statistics.statistics_of_split("train", proto)


def test_numbers_are_read() -> None:
    split = of_text(HAND_MADE)
    fare = split.features["trip.fare"]
    assert (split.rows, fare.kind, fare.missing, fare.missing_share) == (10, "float", 2, 0.2)
    assert (fare.values, fare.fewest, fare.most, fare.texts) == (9, 1, 2, None)
    assert fare.numbers is not None
    assert (fare.numbers.min, fare.numbers.median, fare.numbers.max) == (0.0, 2.0, 5.0)
    assert (fare.numbers.mean, fare.numbers.std_dev, fare.numbers.zeros, fare.numbers.not_numbers) == (2.5, 1.5, 1, 3)
    assert fare.numbers.bins == ((0.0, 5.0, 9.0),)
    assert fare.numbers.deciles == [0.0, 2.0, 5.0]


def test_texts_are_read_without_what_stands_for_bytes() -> None:
    company = of_text(HAND_MADE).features["company"]
    assert company.texts is not None
    assert (company.texts.unique, company.texts.mean_length, company.texts.not_text) == (3, 4.5, 4)
    assert company.texts.top == (("Blue", 3.0),)
    assert company.texts.counts == {"Blue": 3.0, "Red": 2.0}
    assert company.texts.lengths == ((3.0, 4.0, 5.0),)
    # Older statistics do not have the total.
    assert company.values == 10


def test_a_feature_without_values_has_no_numbers() -> None:
    gone = of_text(HAND_MADE).features["gone"]
    assert (gone.kind, gone.missing_share, gone.numbers, gone.texts) == ("int", 1.0, None, None)


def test_statistics_of_nothing() -> None:
    assert of_text("") == SplitStatistics("train", 0, {})
    assert of_text('datasets { features { name: "a" } }').features["a"].missing_share == 0.0


def tfdvs(**columns: pa.Array) -> dict[str, FeatureStatistics]:
    batch = pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
    proto = stats_impl.generate_statistics_in_memory(batch, tfdv.StatsOptions())
    return statistics.statistics_of_split("train", proto).features


def test_tfdvs_statistics_are_read() -> None:
    draw = np.random.default_rng(3)
    splits = tfdvs(
        fare=pa.array([[float(value)] for value in range(100)], pa.large_list(pa.float32())),
        payment=pa.array([[b"Cash"]] * 75 + [[b"Card"]] * 20 + [None] * 5, pa.large_list(pa.large_binary())),
        image=pa.array([[b"\xff\xd8" + draw.bytes(50)] for _ in range(100)], pa.large_list(pa.large_binary())),
        wide=pa.array([list(range(500))] * 100, pa.large_list(pa.int64())),
    )
    fare, payment, image, wide = (splits[name] for name in ("fare", "payment", "image", "wide"))
    assert fare.numbers is not None
    assert (fare.numbers.min, fare.numbers.max, fare.numbers.mean, fare.numbers.zeros) == (0.0, 99.0, 49.5, 1)
    assert sum(count for _, _, count in fare.numbers.bins) == pytest.approx(100)
    assert (len(fare.numbers.bins), len(fare.numbers.deciles)) == (10, 11)
    assert payment.texts is not None
    assert (payment.missing, payment.texts.top) == (5, (("Cash", 75.0), ("Card", 20.0)))
    assert image.texts is not None
    assert (image.texts.top, image.texts.not_text, image.texts.mean_length) == ((), 100, 52.0)
    assert wide.numbers is not None
    assert (wide.most, wide.values, wide.numbers.max) == (500, 50_000, 499.0)


def artifact(folder: Path, splits: str) -> ArtifactRecord:
    return ArtifactRecord(1, "ExampleStatistics", str(folder), "LIVE", {"split_names": splits}, 0)


def write(folder: Path, split: str, text: str) -> None:
    proto = text_format.Parse(text, statistics_pb2.DatasetFeatureStatisticsList())
    (folder / f"Split-{split}").mkdir()
    (folder / f"Split-{split}" / "FeatureStats.pb").write_bytes(proto.SerializeToString())


def test_train_comes_before_eval_before_others(tmp_path: Path) -> None:
    for rows, split in enumerate(("test", "eval", "train")):
        write(tmp_path, split, f"datasets {{ num_examples: {rows} }}")
    splits = statistics.read_statistics(artifact(tmp_path, '["test", "eval", "train"]'))
    assert {name: split.rows for name, split in splits.items()} == {"train": 2, "eval": 1, "test": 0}
    assert list(splits) == ["train", "eval", "test"]


def test_a_file_that_is_gone_or_broken_is_named(tmp_path: Path) -> None:
    gone = tmp_path / "Split-train" / "FeatureStats.pb"
    with pytest.raises(ContentError) as caught:
        statistics.read_statistics(artifact(tmp_path, '["train"]'))
    assert str(caught.value) == f"{gone} is not there (any more)"
    gone.parent.mkdir()
    gone.write_bytes(b"\x0a\xff")
    with pytest.raises(ContentError) as broken:
        statistics.read_statistics(artifact(tmp_path, '["train"]'))
    assert str(broken.value).startswith(f"{gone} cannot be read: ")
