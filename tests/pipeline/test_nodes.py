"""The names of the nodes."""

from __future__ import annotations

import pytest

from components.errors import SettingsError
from pipeline import nodes


@pytest.mark.parametrize("written", ["Trainer", "trainer", "TRAINER"])
def test_a_node_is_found_in_any_case(written: str) -> None:
    assert nodes.find(written) == "Trainer"


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("trainr", "no node named 'trainr'. Did you mean Trainer?"),
        ("statistics", "no node named 'statistics'. Did you mean StatisticsGen?"),
        ("zzz", f"no node named 'zzz'. There are: {', '.join(nodes.NODES)}."),
    ],
)
def test_an_unknown_node_gets_the_nearest_name_or_all_names(written: str, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        nodes.find(written)
    assert str(caught.value) == message


def test_a_partial_run_goes_forward() -> None:
    nodes.check_order("Transform", "Trainer")
    nodes.check_order("Trainer", "Trainer")
    nodes.check_order("Trainer", None)
    with pytest.raises(SettingsError, match=r"^--from Pusher comes after --to Trainer; the order is ExampleGen, "):
        nodes.check_order("Pusher", "Trainer")
