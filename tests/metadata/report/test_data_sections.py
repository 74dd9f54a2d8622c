"""The data part of a run's page: what is read, and what its templates make of it."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from data_scene import SCRIPT, WORST, DataRuns, statistics
from store_builder import StoreBuilder

from metadata.contents.drift import JENSEN_SHANNON, L_INFINITY
from metadata.contents.reading import ContentError
from metadata.pages import rendering
from metadata.pages.charts import Bars, Histogram
from metadata.pages.links import Links
from metadata.queries import Queries
from metadata.report import comparison
from metadata.report.sections import drift, schema
from metadata.report.sections import statistics as data
from metadata.report.source import Surroundings

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
    made = DataRuns(tmp_path / "files", builder)
    made.add("small-1", BEFORE)
    row = {"file": "a.csv", "line": 3, "column": "fare", "reason": f"found {WORST}", "raw": WORST}
    made.add("small-2", AFTER, ANOMALIES, [SAID], [row])
    return made


@pytest.fixture
def store(runs: DataRuns, places: Any) -> Queries:
    opened = Queries.open_sqlite(places.metadata_path)
    assert opened is not None
    return opened


def around(logs: Path | None = None) -> Surroundings:
    return Surroundings(graph={}, log_folder=logs)


def html(name: str, section: object) -> str:
    template = rendering.templates().get_template(f"run/sections/{name}.html")
    return template.render(section=section, links=Links(), inline=True)


class Words(HTMLParser):
    """The text of a page, and the tags and attributes that a browser would see."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text: list[str] = []
        self.json: list[Any] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self._in_json = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_json = ("type", "application/json") in attrs
        self.tags.add(tag if not self._in_json else "json")
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, found: str) -> None:
        if self._in_json:
            self.json.append(json.loads(found))
            self._in_json = False
        elif found.strip():
            self.text.append(" ".join(found.split()))


def test_splits_stand_side_by_side(runs: DataRuns, store: Queries) -> None:
    found = data.read(runs.source(store, "small-2"), around())
    assert found is not None
    assert found.splits == [("train", 10), ("eval", 5)]
    assert [(card.name, card.kind) for card in found.cards] == [("payment", "text"), (SCRIPT, "float")]
    [bars] = found.cards[0].charts
    assert isinstance(bars, Bars)
    assert [(side.name, side.total, side.counts) for side in bars.series] == [
        ("train", 10.0, [("Cash", 3.0), ("Card", 5.0), (WORST, 2.0)]),
        ("eval", 5.0, [("Cash", 5.0), ("Card", 0.0), (WORST, 0.0)]),
    ]
    [histogram] = found.cards[1].charts[:1]
    assert isinstance(histogram, Histogram)
    assert [(side.name, side.bins) for side in histogram.series] == [
        ("train", [(0.0, 1.0, 9.0), (1.0, 2.0, 1.0)]),
        ("eval", [(0.0, 1.0, 5.0), (1.0, 2.0, 0.0)]),
    ]


def test_anomalies_stand_with_their_feature_and_quote_rows(runs: DataRuns, store: Queries) -> None:
    found = data.read(runs.source(store, "small-2"), around())
    assert found is not None
    assert (found.checked, found.findings) == (True, 3)
    assert [finding.summary for finding in found.data_set] == ["Few rows"]
    assert [(finding.feature, finding.summary) for finding in found.others] == [("missing", "Column dropped")]
    [finding] = found.cards[0].findings
    assert (finding.description, finding.samples) == (WORST, (f"'{WORST}' in 2 rows",))
    words = Words(html("statistics", found))
    shown = words.text
    at = shown.index("1,234")
    # The feature at fault comes first, then the others.
    assert shown[at : at + 3] == ["1,234", WORST, "missing"]
    assert "3 anomalies" in shown


def test_rows_that_were_set_aside_are_shown(runs: DataRuns, store: Queries) -> None:
    found = data.read(runs.source(store, "small-2"), around())
    shown = Words(html("statistics", found)).text
    assert "1 row" in shown
    assert f"found {WORST}" in shown


def test_what_stopped_a_run_is_quoted_from_its_logs(runs: DataRuns, store: Queries, tmp_path: Path) -> None:
    runs.add("small-3", AFTER, ANOMALIES)
    (tmp_path / "failure.json").write_text(json.dumps({"node": "DataGate", "message": "", "findings": [SAID]}))
    found = data.read(runs.source(store, "small-3"), around(tmp_path))
    assert found is not None
    [finding] = found.cards[0].findings
    assert finding.rows[0].values == {"payment": WORST, SCRIPT: None}


def test_data_that_were_not_validated_are_not_called_good(runs: DataRuns, store: Queries) -> None:
    found = data.read(runs.source(store, "small-1"), around())
    assert found is not None
    assert (found.checked, found.findings) == (False, 0)
    shown = " ".join(Words(html("statistics", found)).text)
    assert "The data were not held to a schema." in shown
    assert "No anomalies" not in shown


def test_a_feature_of_one_split_alone_is_told(runs: DataRuns, store: Queries) -> None:
    runs.add("small-3", {"train": AFTER["train"], "eval": "datasets { num_examples: 5 }"})
    found = data.read(runs.source(store, "small-3"), around())
    assert found is not None
    assert found.cards[0].sides[1] is None
    assert "not there" in Words(html("statistics", found)).text


def test_many_features_are_closed_but_those_with_anomalies(runs: DataRuns, store: Queries) -> None:
    many = "".join(f'features {{ path {{ step: "f{n}" }} num_stats {{}} }}' for n in range(41))
    runs.add(
        "small-3", {"train": f"datasets {{ {many} }}"}, 'anomaly_info { key: "f7" value { description: "x" } }', []
    )
    page = html("statistics", data.read(runs.source(store, "small-3"), around()))
    assert page.count('<details class="feature">') == 40
    assert page.count('<details class="feature" open>') == 1


def test_a_run_without_data_has_no_such_part(store: Queries, runs: DataRuns, builder: StoreBuilder) -> None:
    builder.run("small-9")
    builder.node("ExampleGen", "FAILED")
    source = runs.source(store, "small-9")
    assert (data.read(source, around()), drift.read(source, around()), schema.read(source, around())) == (None,) * 3


def test_statistics_that_are_gone_are_named(runs: DataRuns, store: Queries, tmp_path: Path) -> None:
    gone = tmp_path / "files" / "small-2" / "statistics" / "Split-train" / "FeatureStats.pb"
    gone.unlink()
    with pytest.raises(ContentError, match=r"FeatureStats.pb is not there"):
        data.read(runs.source(store, "small-2"), around())


def test_drift_is_measured_against_the_run_before(runs: DataRuns, store: Queries) -> None:
    found = drift.read(runs.source(store, "small-2"), around())
    assert found is not None
    against, skew = found.comparisons
    assert (against.title, against.run_id, against.over, against.bars) == ("Drift", "small-1", 1, 1)
    assert against.what == "The train split (10 rows) against that of run small-1 (10 rows)."
    assert [(row.feature, row.measure, row.bar, row.over) for row in against.rows] == [
        ("payment", L_INFINITY, 0.2, True),
        (SCRIPT, JENSEN_SHANNON, None, False),
    ]
    assert against.rows[0].value == pytest.approx(0.3)
    assert (skew.title, skew.bars) == ("Split skew", 0)
    assert skew.what == "The eval split (5 rows) against the train split (10 rows) of this run."
    shown = Words(html("drift", found)).text
    assert {"1 over the bar", "0.3000", "0.2000", "no bar", "The schema sets no bar"} <= set(shown)


@pytest.mark.parametrize("same", [True, False])
def test_the_very_same_examples_cannot_have_drifted(
    builder: StoreBuilder, tmp_path: Path, places: Any, same: bool
) -> None:
    made = DataRuns(tmp_path / "files", builder)
    examples = made.add("small-1", BEFORE)
    made.add("small-2", BEFORE, examples=examples if same else None)
    store = Queries.open_sqlite(places.metadata_path)
    assert store is not None
    found = drift.read(made.source(store, "small-2"), around())
    assert found is not None
    against = found.comparisons[0]
    told = "Run small-1 before this one took the very same examples: nothing can have drifted."
    assert against.why_not == (told if same else "")
    assert [row.value for row in against.rows] == ([] if same else [0.0, 0.0])


def test_the_first_run_has_nothing_to_compare_with(runs: DataRuns, store: Queries, tmp_path: Path) -> None:
    found = drift.read(runs.source(store, "small-1"), around())
    assert found is not None
    assert found.comparisons[0].why_not == "No run before this one has statistics to compare with."


def test_the_schema_says_whether_it_was_inferred(runs: DataRuns, store: Queries) -> None:
    found = schema.read(runs.source(store, "small-2"), around())
    assert found is not None
    assert (found.curated, found.drift, found.skew) == (False, True, False)
    shown = Words(html("schema", found)).text
    assert {"L∞ ≤ 0.2", "every row", "Drift bar"} <= set(shown)
    assert "Skew bar" not in shown


@pytest.mark.parametrize("name", ["statistics", "drift", "schema"])
def test_what_the_data_hold_is_never_read_as_html(runs: DataRuns, store: Queries, name: str) -> None:
    section = {"statistics": data, "drift": drift, "schema": schema}[name].read(runs.source(store, "small-2"), around())
    words = Words(html(name, section))
    assert not words.tags & {"script", "img"}
    assert "onerror" not in words.attributes
    assert SCRIPT in words.text


def test_two_runs_lie_over_each_other(runs: DataRuns, store: Queries, tmp_path: Path) -> None:
    before, after = store.run("small-1"), store.run("small-2")
    assert before is not None
    assert after is not None
    found = comparison.compare(store, before, after)
    assert found.data is not None
    assert found.data.names == ("small-1", "small-2")
    assert found.data.rows == (10, 10)
    assert [card.name for card in found.data.cards] == ["payment", SCRIPT]
    [bars] = found.data.cards[0].charts
    assert isinstance(bars, Bars)
    assert [side.name for side in bars.series] == ["small-1", "small-2"]
    path = tmp_path / "diff.html"
    comparison.write(store, before, after, path)
    page = path.read_text()
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert list(tmp_path.glob(".diff*")) == []
    words = Words(page)
    assert "The train split (10 rows) against that of run small-1 (10 rows)." in " ".join(words.text)
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
