"""The schema changes that data call for: each kind is described in a sentence, and satisfies TFDV."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import tensorflow_data_validation as tfdv
from schema_data import Split, statistics, write_examples

from pipeline.schema import changes, editing
from pipeline.schema.changes import Proposal
from pipeline.schema.data import MOST_BYTES, Rows, read_columns
from pipeline.schema.rules import Data, propose_changes

SCHEMA = """
feature { name: "company" type: BYTES domain: "companies" presence { min_fraction: 1.0 min_count: 1 }
  shape { dim { size: 1 } } }
feature { name: "partner" type: BYTES domain: "companies" }
feature { name: "pay" type: BYTES string_domain { value: "Card" } distribution_constraints { min_domain_mass: 0.9 } }
feature { name: "fare" type: FLOAT float_domain { min: 0.0 max: 700.0 } presence { min_fraction: 0.99 } }
feature { name: "hour" type: INT int_domain { min: 0 max: 23 } value_count { min: 1 max: 1 } }
feature { name: "rare" type: INT presence { min_count: 3 } }
feature { name: "old" type: INT presence { min_count: 1 } }
feature { name: "older" type: INT presence { min_count: 1 } lifecycle_stage: DEPRECATED }
feature { name: "maybe" type: INT }
string_domain { name: "companies" value: "Red" value: "Blue" }
"""
GOOD: dict[str, list[object]] = {
    "company": ["Red"] * 60 + ["Blue"] * 40,
    "partner": ["Red"] * 100,
    "pay": ["Card"] * 95 + ["Coin"] * 5,
    "fare": [1.5] * 100,
    "hour": [0, 23] * 50,
    "rare": [1, 2, 3] + [None] * 97,
    "old": [1] * 100,
}


class Asked:
    """The changes that two splits call for in SCHEMA, with TFDV's own verdict to compare."""

    def __init__(
        self, folder: Path, train: Split, evaluation: Split, rejected: Mapping[str, frozenset[str]], **more: object
    ) -> None:
        self.splits = {"train": train, "eval": evaluation}
        files = [write_examples(split, folder / name / "data.gz") for name, split in self.splits.items()]
        self.statistics = {name: statistics(split) for name, split in self.splits.items()}
        data_sets = {name: data_set.datasets[0] for name, data_set in self.statistics.items()}
        inputs = {"rows": Rows(files), "absent": {}, "anomalies": {}} | more
        sizes = {name: int(data_set.num_examples) for name, data_set in data_sets.items()}
        self.schema = editing.parse_schema(SCHEMA)
        data = Data(columns=read_columns(data_sets), num_rows=sizes, **inputs)
        self.proposals = propose_changes(self.schema, data, rejected)

    @property
    def descriptions(self) -> dict[str, list[tuple[str, int | None]]]:
        return {p.feature: [(c.text, c.count and c.count.rows) for c in p.changes if c.text] for p in self.proposals}

    def proposal(self, name: str) -> Proposal:
        return next(proposal for proposal in self.proposals if proposal.feature == name)

    def anomalies_after(self) -> set[str]:
        """The features in which TFDV still finds anomalies after everything is accepted."""
        text = editing.edit_text(SCHEMA, changes.apply_changes(self.schema, self.proposals))
        accepted = editing.parse_schema(text)
        return {name for s in self.statistics.values() for name in tfdv.validate_statistics(s, accepted).anomaly_info}


Ask = Callable[..., Asked]
Columns = Mapping[str, "list[object] | None"]


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """Proposes with some columns of GOOD replaced in `train`, and by default in `eval` too; None removes one."""

    def make(
        evaluation: Columns | None = None,
        rejected: Mapping[str, frozenset[str]] | None = None,
        more: Mapping[str, object] | None = None,
        **replaced: list[object] | None,
    ) -> Asked:
        def split(values: Columns) -> Split:
            return {name: column for name, column in (GOOD | values).items() if column is not None}

        train = split(replaced)
        return Asked(
            tmp_path, train, train if evaluation is None else split(evaluation), rejected or {}, **(more or {})
        )

    return make


def test_good_data_ask_for_nothing_and_tfdv_agrees(ask: Ask) -> None:
    asked = ask()
    assert asked.proposals == []
    assert asked.anomalies_after() == set()


CASES = [
    (
        "new texts, counted over both splits, the most frequent first",
        {"company": ["Red"] * 70 + ["Cab"] * 20 + ["Ace"] * 7 + ["Zed"] * 2 + ["One"]},
        {
            "company": [
                (
                    "4 new values, in 60 rows, e.g. 'Cab' (40 rows), 'Ace' (14 rows), 'Zed' (4 rows), …; "
                    "shared with partner",
                    60,
                )
            ]
        },
    ),
    (
        "texts in several values a row are counted as often as they occur",
        {"partner": [["Red", "Cab"]] * 2 + [["Cab", "Cab"]] + ["Red"] * 97},
        {"partner": [("1 new value, 8 times, e.g. 'Cab' (8 times); shared with company", None)]},
    ),
    (
        "more unknown texts than min_domain_mass lets pass",
        {"pay": ["Card"] * 88 + ["Coin"] * 12},
        {"pay": [("1 new value, in 24 rows, e.g. 'Coin' (24 rows)", 24)]},
    ),
    (
        "numbers beyond both bounds",
        {"fare": [1.5] * 97 + [812.5, 900.25, -3.0], "hour": [25, 24] + [0] * 98},
        {
            "fare": [
                ("smallest value -3, below min 0", 2),
                ("largest value 900.25, above max 700", 4),
            ],
            "hour": [("largest value 25, above max 23", 4)],
        },
    ),
    (
        "missing more often than allowed",
        {"fare": [1.5] * 93 + [None] * 7, "company": ["Red"] * 98 + [None] * 2},
        {
            "company": [
                ("missing in 2 % of rows, schema allows none", 4),
                ("not always there: a number of values, no shape", None),
            ],
            "fare": [("missing in 7 % of rows, schema allows 1 %", 14)],
        },
    ),
    (
        "fewer rows with a value than asked",
        {"rare": [1] + [None] * 99},
        {"rare": [("a value in 1 row, schema requires 3", None)]},
    ),
    (
        "more values in a row, and fewer",
        {"hour": [[1, 2]] * 3 + [1] * 97, "company": [["Red", "Blue", "Red"]] * 2 + ["Red"] * 98},
        {
            "company": [("1 to 3 values a row, schema allows 1", 4)],
            "hour": [("1 to 2 values a row, schema allows 1", 6)],
        },
    ),
    (
        "new columns",
        {"x": [0.5] * 100, "seldom": ["a"] * 31 + [None] * 69, "many": [[1, 2]] * 99 + [[3]]},
        {
            "many": [("new column, INT, in all rows", 200)],
            "seldom": [("new column, BYTES, in 31 % of rows", 62)],
            "x": [("new column, FLOAT, in all rows", 200)],
        },
    ),
    ("a column that is gone", {"old": None}, {"old": [("required, and gone from the data", None)]}),
    (
        "a column that is empty",
        {"old": [None] * 100},
        {"old": [("required, and without a value in all rows", None)]},
    ),
    ("a new column without a value", {"void": [None] * 100}, {"void": [("new column, BYTES, in 0 % of rows", 0)]}),
]


@pytest.mark.parametrize(("data", "descriptions"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_every_kind_of_change_is_reported_and_satisfies_tfdv(ask: Ask, data: Columns, descriptions: object) -> None:
    asked = ask(**data)
    assert asked.descriptions == descriptions
    assert asked.anomalies_after() == set()


def test_a_change_that_one_split_asks_for_fits_the_other_too(ask: Ask) -> None:
    worse = {"fare": [1.5] * 80 + [None] * 20, "seldom": [1] * 100, "company": [["Red", "Blue"]] * 100}
    asked = ask(evaluation=worse)
    assert asked.descriptions == {
        "company": [("1 to 2 values a row, schema allows 1", 100)],
        "fare": [("missing in 20 % of rows of eval, schema allows 1 %", 20)],
        "seldom": [("new column, INT, in 50 % of rows", 100)],
    }
    assert asked.anomalies_after() == set()


def test_the_new_share_is_in_whole_percents_below_and_optional_columns_need_code(ask: Ask) -> None:
    company = ask(company=["Red"] * 98 + [None] * 2).proposal("company")
    assert company.keys == ("presence.min_fraction: 0.98", "value_count.min: 1", "value_count.max: 1")
    assert company.notes == ("features.py must take a missing value of it from then on",)
    assert ask(fare=[700.1] * 100).proposal("fare").keys == ("float_domain.max: 700.1",)
    two_thirds = {name: values * 3 for name, values in GOOD.items()} | {"fare": [1.0] * 200 + [None] * 100}
    assert ask(**two_thirds).proposal("fare").keys == ("presence.min_fraction: 0.66",)


def test_a_change_of_type_needs_a_person(ask: Ask) -> None:
    hour = ask(hour=[0.5] * 100).proposal("hour")
    assert hour.changes == ()
    assert hour.reasons == (
        "INT in the schema, FLOAT in the data: features.py and model.py rest on the type, so changing it needs a "
        "person",
    )
    mixed = ask(evaluation={"x": ["a"] * 100}, x=[1] * 100).proposal("x")
    assert mixed.reasons == ("new column, BYTES and INT: which type it is to have needs a person",)


# NumPy's warning, from TFDV's own statistics of infinite values.
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_what_no_bound_or_list_can_hold_needs_a_person(ask: Ask) -> None:
    assert ask(fare=[float("inf")] + [1.0] * 99).proposal("fare").reasons == (
        "largest value inf, above max 700: mend the data, or take max away",
    )
    many_texts = {name: values * 15 for name, values in GOOD.items()} | {"partner": [f"text {n}" for n in range(1500)]}
    assert ask(**many_texts).proposal("partner").reasons == (
        "more than 1,000 different values: a list of allowed ones does not suit it; take its domain away, or mend "
        "the data",
    )


def test_what_tfdv_says_beyond_the_rules_is_passed_on(ask: Ask) -> None:
    anomalies = {"fare": ("Float values contain NaN",), "the data set": ("Too few examples",)}
    asked = ask(more={"anomalies": anomalies}, fare=[900.0] * 100)
    assert asked.proposal("fare").reasons == ("Float values contain NaN",)
    assert asked.proposal("fare").keys == ("float_domain.max: 900.0",)
    assert asked.proposal("the data set") == Proposal("the data set", reasons=("Too few examples",))


def test_a_column_that_the_current_files_lack_is_gone(ask: Ask) -> None:
    asked = ask(more={"absent": {"old": "trips.csv", "maybe": "trips.csv"}})
    assert asked.descriptions == {"old": [("required, and gone from trips.csv", None)]}


def test_rejected_changes_are_left_out_and_others_stay(ask: Ask) -> None:
    rejected = {
        "company": frozenset({"string_domain.value: Cab"}),
        "fare": frozenset({"float_domain.max: 812.5"}),
        "x": frozenset({"new column: INT"}),
    }
    asked = ask(rejected=rejected, company=["Cab"] * 50 + ["Ace"] * 50, fare=[812.5] * 100, x=[1] * 100)
    assert asked.descriptions == {
        "company": [("1 new value, in 100 rows, e.g. 'Ace' (100 rows); shared with partner", 100)]
    }
    assert ask(rejected=rejected, fare=[812.75] * 100, x=["a"] * 100).descriptions.keys() == {"fare", "x"}


def test_rows_that_are_not_read_are_reported_as_at_least(tmp_path: Path) -> None:
    gone = Rows([])
    assert str(gone.outside("fare", None, 700.0)) == "at least 1 row"
    large = tmp_path / "data.gz"
    large.write_bytes(b"\0" * (MOST_BYTES + 1))
    assert str(Rows([large]).of_length("hour", 1, 1)) == "at least 1 row"
    counted = Rows([write_examples({"fare": [[1.0, 800.0, 900.0], [800.0], 5.0, None]}, tmp_path / "small.gz")])
    assert str(counted.outside("fare", None, 700.0)) == "2 rows"
    assert str(counted.of_length("fare", 2, 0)) == "2 rows"
