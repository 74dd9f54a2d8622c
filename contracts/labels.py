"""The `label` of a recipe: one transformed feature, or one for each head of a model with several outputs."""

from __future__ import annotations

from typing import TypeAlias

Label: TypeAlias = str | dict[str, str]
"""A transformed feature; or such a feature by the output that learns it."""


def label_features(label: Label) -> list[str]:
    """The transformed features that are labels, each once."""
    return [label] if isinstance(label, str) else list(dict.fromkeys(label.values()))


def label_text(label: Label) -> str:
    """The label for people: `big_tip`, or `tip: big_tip, payment: paid_by`."""
    return label if isinstance(label, str) else ", ".join(f"{head}: {feature}" for head, feature in label.items())
