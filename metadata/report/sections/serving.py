"""How to serve the model and how to go back, and how it did in the model server and as a TF Lite model."""

from __future__ import annotations

from dataclasses import dataclass

from metadata.contents import places, reading
from metadata.contents.inspection import InfraReport, TFLiteReport
from metadata.report.source import Source, Surroundings


@dataclass(frozen=True)
class Serving:
    """What a reader needs to go on from here.

    Attributes:
        served: What became of the pushed model since, or an empty text.
        commands: A heading and a command line each.
        infra: How the model server served it; None where it was not tried.
        tflite: How the TF Lite model was judged; None where none was asked for.
    """

    served: str
    commands: tuple[tuple[str, str], ...]
    infra: InfraReport | None
    tflite: TFLiteReport | None


def read(source: Source, surroundings: Surroundings) -> Serving | None:
    """Reads it; None where there is nothing to say."""
    blessing, tflite = source.artifact("InfraValidator", "blessing"), source.artifact("TFLite", "tflite_model")
    found = Serving(
        served=surroundings.served,
        commands=surroundings.commands,
        infra=None if blessing is None else reading.record(blessing.file(places.INFRA_REPORT_FILE), InfraReport),
        tflite=None if tflite is None else reading.record(tflite.file(places.TFLITE_REPORT_FILE), TFLiteReport),
    )
    return found if found.commands or found.served or found.infra or found.tflite else None
