"""The card of the model: what it predicts, what it takes and gives, what it was measured at."""

from __future__ import annotations

from dataclasses import dataclass

from metadata.contents.training import Card
from metadata.report.source import Source, Surroundings

MOST_CLASSES = 100


@dataclass(frozen=True)
class ModelCard:
    """The run's model.

    Attributes:
        card: What was exported with it.
        folder: Where the SavedModel's artifact lies.
        artifact: The artifact's id.
        classes: The classes' names, not more than can be read.
        more_classes: How many more there are.
        recipe_text: The README of the recipe.
    """

    card: Card
    folder: str
    artifact: int
    classes: list[str]
    more_classes: int
    recipe_text: str


def read(source: Source, surroundings: Surroundings) -> ModelCard | None:
    """Reads it; None where the Trainer did not come to its end."""
    model, card = source.artifact("Trainer", "model"), source.card
    if model is None or card is None:
        return None
    classes = card.class_names or []
    return ModelCard(
        card=card,
        folder=model.uri,
        artifact=model.id,
        classes=classes[:MOST_CLASSES],
        more_classes=max(len(classes) - MOST_CLASSES, 0),
        recipe_text=surroundings.recipe_text,
    )
