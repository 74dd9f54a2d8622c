"""The data part of a run's page: what is read, and what the page shows of it."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from data_scene import SCRIPT, WORST, DataRuns, statistics
from store_builder import StoreBuilder

from contracts.content import ContentError
from metadata.queries import Queries
from ui import rendering
from ui.contents.drift import JENSEN_SHANNON, L_INFINITY
from ui.links import Links
from ui.parts import Parts
from ui.report import comparison, data, drift
from ui.report.page import Reader
from ui.report.source import Surroundings

ANOMALIES = f"""
anomaly_info {{ key: "payment" value {{ description: {json.dumps(WORST)} }} }}
anomaly_info {{ key: "missing" value {{ description: "Column is missing." short_description: "Column dropped" }} }}
dataset_anomaly_info {{ description: "Too few rows." short_description: "Few rows" }}
"""
SAID = {
    "split": "train",
    "feature": "payment",
    "description": WORST,
    "samples": [f"'{WORST}' in 2 rows"],
    "rows": [{"row": 1234, "values": {"payment": WORST, SCRIPT: None}}],
}
BEFORE = {"train": statistics({"Cash": 6, "Card": 4}, [5, 5]), "eval": statistics({"Cash": 5}, [5, 0])}
AFTER = {"train": statistics({"Cash": 3, "Card": 5, WORST: 2}, [9, 1]), "eval": statistics({"Cash": 5}, [5, 0])}


@pytest.fixture
def runs(builder: StoreBuilder, tmp_path: Path) -> DataRuns:
    """Two runs: the data of the second have anomalies, which the gate let pass."""
    data_runs = DataRuns(tmp_path / "files", builder)
    data_runs.add("small-1", BEFORE)
    row = {"file": "a.csv", "line": 3, "column": "fare", "reason": f"found {WORST}", "raw": WORST}
    data_runs.add("small-2", AFTER, ANOMALIES, [SAID], [row])
    return data_runs


@pytest.fixture
def store(runs: DataRuns, places: Any) -> Queries:
    opened = Queries.open_sqlite(places.metadata_path)
    assert opened is not None
    return opened


def around(logs: Path | None = None) -> Surroundings:
    return Surroundings(graph={}, log_folder=logs)


def html(parts: Parts) -> str:
    return "".join(map(rendering.draw, parts))


class Words(HTMLParser):
    """The text of a page, and the tags and attributes that a browser would see."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text: list[str] = []
        self.charts: list[Any] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self._in_json = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_json = ("type", "application/json") in attrs
        self.tags.add(tag if not self._in_json else "json")
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        if self._in_json:
            self.charts.append(json.loads(data))
            self._in_json = False
        elif data.strip():
            self.text.append(" ".join(data.split()))

    @property
    def whole(self) -> str:
        """All of the text, with single spaces."""
        return " ".join(self.text)

    def row(self, head: str) -> list[str]:
        """The texts that follow a text."""
        return self.text[self.text.index(head) :]


def shown_data(runs: DataRuns, store: Queries, run: str, logs: Path | None = None) -> Words:
    return Words(html(data.data_section(runs.source(store, run), around(logs))))


def test_splits_stand_side_by_side(runs: DataRuns, store: Queries) -> None:
    shown = shown_data(runs, store, "small-2")
    assert "10 rows in train, 5 rows in eval; 2 features." in shown.whole
    # The overview, then the cards; the first has anomalies.
    named = [(text, kind) for text, kind in pairwise(shown.row("All features")) if text in {"payment", SCRIPT}]
    assert named[:3] == [("payment", "text"), (SCRIPT, "float"), ("payment", "text")]
    assert (SCRIPT, "float") in named[3:]
    bars = next(chart for chart in shown.charts if chart["title"] == "payment")
    assert bars["kind"] == "bars"
    assert [(side["name"], side["total"], side["counts"]) for side in bars["series"]] == [
        ("train", 10.0, [["Cash", 3.0], ["Card", 5.0], [WORST, 2.0]]),
        ("eval", 5.0, [["Cash", 5.0], ["Card", 0.0], [WORST, 0.0]]),
    ]
    histogram = next(chart for chart in shown.charts if chart["title"] == SCRIPT)
    assert histogram["kind"] == "histogram"
    assert [(side["name"], side["bins"]) for side in histogram["series"]] == [
        ("train", [[0.0, 1.0, 9.0], [1.0, 2.0, 1.0]]),
        ("eval", [[0.0, 1.0, 5.0], [1.0, 2.0, 0.0]]),
    ]


def test_anomalies_stand_with_their_feature_and_quote_rows(runs: DataRuns, store: Queries) -> None:
    page = html(data.data_section(runs.source(store, "small-2"), around()))
    shown = Words(page).text
    assert "3 anomalies" in shown
    # What is wrong with the whole, and with what is not there, comes before the features.
    assert shown[shown.index("the data set") + 1] == "Few rows"
    assert shown[shown.index("missing") + 1] == "Column dropped"
    assert shown.index("the data set") < shown.index("missing") < shown.index("All features")
    at = shown.index("1,234")
    # The feature at fault comes first, then the others.
    assert shown[at : at + 3] == ["1,234", WORST, "missing"]
    assert f"For example '{WORST}' in 2 rows." in shown
    [card] = [part for part in page.split("<details")[1:] if "1,234" in part]
    assert "<strong>payment</strong>" in card


def test_rows_that_were_set_aside_are_shown(runs: DataRuns, store: Queries) -> None:
    shown = shown_data(runs, store, "small-2").text
    assert "1 row" in shown
    assert f"found {WORST}" in shown


def test_what_stopped_a_run_is_quoted_from_its_logs(runs: DataRuns, store: Queries, tmp_path: Path) -> None:
    runs.add("small-3", AFTER, ANOMALIES)
    (tmp_path / "failure.json").write_text(json.dumps({"node": "DataGate", "message": "", "findings": [SAID]}))
    assert shown_data(runs, store, "small-3", tmp_path).row("1,234")[:3] == ["1,234", WORST, "missing"]


def test_data_that_were_not_validated_are_not_called_good(runs: DataRuns, store: Queries) -> None:
    shown = shown_data(runs, store, "small-1").whole
    assert "The data were not held to a schema." in shown
    assert "anomal" not in shown
    assert "No anomalies" not in shown


def test_a_feature_of_one_split_alone_is_reported(runs: DataRuns, store: Queries) -> None:
    runs.add("small-3", {"train": AFTER["train"], "eval": "datasets { num_examples: 5 }"})
    shown = shown_data(runs, store, "small-3").text
    assert "not in this split" in shown
    assert "not there" in shown


def test_many_features_are_closed_but_those_with_anomalies(runs: DataRuns, store: Queries) -> None:
    many = "".join(f'features {{ path {{ step: "f{n}" }} num_stats {{}} }}' for n in range(41))
    runs.add(
        "small-3", {"train": f"datasets {{ {many} }}"}, 'anomaly_info { key: "f7" value { description: "x" } }', []
    )
    page = html(data.data_section(runs.source(store, "small-3"), around()))
    assert page.count('<details class="feature">') == 40
    assert page.count('<details class="feature" open>') == 1


def test_a_run_without_data_has_no_such_part(store: Queries, runs: DataRuns, builder: StoreBuilder) -> None:
    builder.run("small-9")
    builder.node("ExampleGen", "FAILED")
    source = runs.source(store, "small-9")
    for section in (data.data_section, drift.drift_section, data.schema_section):
        assert [part for part in section(source, around()) if part is not None] == []


def test_statistics_that_are_gone_are_named(runs: DataRuns, store: Queries, tmp_path: Path) -> None:
    gone = tmp_path / "files" / "small-2" / "statistics" / "Split-train" / "FeatureStats.pb"
    gone.unlink()
    with pytest.raises(ContentError, match=r"FeatureStats.pb is not there"):
        data.data_section(runs.source(store, "small-2"), around())


def test_drift_is_measured_against_the_run_before(runs: DataRuns, store: Queries) -> None:
    source = runs.source(store, "small-2")
    against, skew = drift.comparisons(source)
    assert (against.title, against.run_id) == ("Drift", "small-1")
    assert against.subject == "The train split (10 rows) against that of run small-1 (10 rows)."
    assert [(row.feature, row.measure, row.bar, row.over) for row in against.rows] == [
        ("payment", L_INFINITY, 0.2, True),
        (SCRIPT, JENSEN_SHANNON, None, False),
    ]
    assert against.rows[0].value == pytest.approx(0.3)
    assert (skew.title, [row.bar for row in skew.rows]) == ("Split skew", [None, None])
    assert skew.subject == "The eval split (5 rows) against the train split (10 rows) of this run."
    shown = Words(html(drift.drift_section(source, around()))).text
    assert {"1 over the bar", "0.3000", "0.2000", "no bar", "The schema sets no bar"} <= set(shown)


@pytest.mark.parametrize("same", [True, False])
def test_the_very_same_examples_cannot_have_drifted(
    builder: StoreBuilder, tmp_path: Path, places: Any, same: bool
) -> None:
    data_runs = DataRuns(tmp_path / "files", builder)
    examples = data_runs.add("small-1", BEFORE)
    data_runs.add("small-2", BEFORE, examples=examples if same else None)
    store = Queries.open_sqlite(places.metadata_path)
    assert store is not None
    against = drift.comparisons(data_runs.source(store, "small-2"))[0]
    sentence = "Run small-1 before this one took the very same examples: nothing can have drifted."
    assert against.why_not == (sentence if same else "")
    assert [row.value for row in against.rows] == ([] if same else [0.0, 0.0])


def test_the_first_run_has_nothing_to_compare_with(runs: DataRuns, store: Queries, tmp_path: Path) -> None:
    assert (
        drift.comparisons(runs.source(store, "small-1"))[0].why_not
        == "No run before this one has statistics to compare with."
    )


def test_the_schema_says_whether_it_was_inferred(runs: DataRuns, store: Queries) -> None:
    shown = Words(html(data.schema_section(runs.source(store, "small-2"), around()))).text
    assert "2 features, inferred from these data, for the recipe keeps no schema." in shown
    assert {"L∞ ≤ 0.2", "every row", "Drift bar"} <= set(shown)
    assert "Skew bar" not in shown


@pytest.mark.parametrize("section", [data.data_section, drift.drift_section, data.schema_section])
def test_what_the_data_hold_is_never_read_as_html(runs: DataRuns, store: Queries, section: Reader) -> None:
    words = Words(html(section(runs.source(store, "small-2"), around())))
    assert not words.tags & {"script", "img"}
    assert "onerror" not in words.attributes
    assert SCRIPT in words.text


def test_two_runs_lie_over_each_other(runs: DataRuns, store: Queries, tmp_path: Path) -> None:
    before, after = store.run("small-1"), store.run("small-2")
    assert before is not None
    assert after is not None
    path = tmp_path / "diff.html"
    comparison.write(store, before, after, path)
    page = path.read_text()
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert list(tmp_path.glob(".diff*")) == []
    words = Words(page)
    assert "The train split (10 rows) against that of run small-1 (10 rows)." in words.whole
    assert [text for text in words.row("All features") if text in {"payment", SCRIPT}][:2] == ["payment", SCRIPT]
    bars = words.charts[0]
    assert (bars["kind"], bars["title"]) == ("bars", "payment")
    assert [side["name"] for side in bars["series"]] == ["small-1", "small-2"]
    assert "img" not in words.tags
    assert SCRIPT in words.text


def test_two_runs_of_which_one_has_no_data(runs: DataRuns, store: Queries, builder: StoreBuilder) -> None:
    builder.run("small-3")
    builder.node("ExampleGen", "FAILED")
    before, after = store.run("small-1"), store.run("small-3")
    assert before is not None
    assert after is not None
    page = comparison.render(store, before, after, inline=True, links=Links())
    assert "The two runs do not both have statistics of a train split." in Words(page).text


def evaluated(builder: StoreBuilder, folder: Path, metrics: list[dict[str, Any]]) -> None:
    """Adds an evaluation to the latest run."""
    folder.mkdir()
    summary = {"blessed": True, "rows": 5, "metrics": metrics, "slices": []}
    (folder / "summary.json").write_text(json.dumps(summary))
    builder.node("Evaluator", outputs={"evaluation": builder.artifact("ModelEvaluation", folder)})


def test_metrics_of_two_runs_stand_with_their_intervals(
    runs: DataRuns, store: Queries, builder: StoreBuilder, tmp_path: Path
) -> None:
    evaluated(builder, tmp_path / "two", [{"name": "AUC", "value": 0.9}, {"name": "Gone", "value": 0.5}])
    runs.add("small-3", AFTER)
    interval = {"low": 0.91, "high": 0.99}
    evaluated(builder, tmp_path / "three", [{"name": "AUC", "value": 0.95, "interval": interval}])
    before, after = store.run("small-2"), store.run("small-3")
    assert before is not None
    assert after is not None
    shown = Words(comparison.render(store, before, after, inline=True, links=Links())).text
    at = shown.index("AUC")
    assert shown[at : at + 5] == ["AUC", "0.9000", "0.9500", "0.9100 to 0.9900", "+0.0500"]
    at = shown.index("Gone")
    assert shown[at : at + 4] == ["Gone", "0.5000", "-", "-"]
