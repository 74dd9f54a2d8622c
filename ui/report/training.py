"""The trained model: the curves of one or two trainings, the best epoch, and the model's card."""

from __future__ import annotations

import json
from collections.abc import Mapping

from contracts.competition import Candidate, read_competition
from contracts.content import ContentError
from contracts.history import VALIDATION, History, read_history
from contracts.labels import label_text
from contracts.model_card import Card, Signature
from ui.charts import Line, Lines
from ui.parts import Column, Details, Facts, Group, Heading, Parts, Table, Text, Verbatim
from ui.report.source import Source, Surroundings
from ui.texts import code, count, line, link, number

MONITOR = "val_loss"
FACTS = ("precision", "steps_per_epoch", "replicas", "strategy")
FEW_EPOCHS = 30
"""Curves with up to this many epochs have dots; a single epoch would otherwise be invisible."""
MOST_CLASSES = 100
LEARNING_RATE = "learning rate"


def training_section(source: Source, _surroundings: Surroundings) -> Parts:
    """How training went: curves, the best epoch, whether it ended early."""
    history, card = _history(source), source.card
    if history is None or card is None:
        return []
    monitor, mode, exported = _judged_by(card)
    best, planned = history.best(monitor, mode), card.training.get("epochs")
    early = isinstance(planned, int) and 0 < history.epochs < planned
    sentences = [
        count(history.epochs, "epoch"),
        f" of {planned}: it ended early, for {monitor} no longer improved" if early else "",
        f"; {monitor} was best in epoch {best}" if best else "",
        f". The exported model is that of {exported}.",
    ]

    def value(column: str, epoch: int | None) -> str:
        values = history.columns.get(column)
        return number(values[epoch - 1] if values and epoch else None)

    def columns(epoch: int | None, name: str) -> list[Column]:
        return [
            Column(f"Training, {name} epoch", lambda metric: value(metric, epoch), "number"),
            Column(f"Validation, {name} epoch", lambda metric: value(f"{VALIDATION}{metric}", epoch), "number"),
        ]

    facts = [(name.replace("_", " "), str(value)) for name, value in card.training.items() if name in FACTS]
    return [
        *_competed(source),
        Text("".join(sentences)),
        Group(_curves({"": history}), "grid"),
        Table(
            "Metrics of the training",
            history.metrics,
            [Column("Metric", str), *columns(history.epochs, "last"), *columns(best, "best")],
        ),
        Facts(facts) if facts else None,
    ]


def _competed(source: Source) -> Parts:
    """Which kinds of model were compared on training rows, and why one was trained; empty if none were."""
    model_run = source.artifact("Trainer", "model_run")
    competition = model_run and read_competition(model_run)
    if not competition:
        return []

    def ahead(candidate: Candidate) -> str:
        if candidate.name == competition.winner:
            return "trained on all rows"
        return f"{number(candidate.ahead)} ({number(candidate.ahead_low)} to {number(candidate.ahead_high)})"

    return [
        Text(f"Trained: {competition.winner}, {competition.why}."),
        Table(
            f"Candidates, by {competition.metric} on {competition.rows:,} training rows that they did not learn from",
            competition.candidates,
            [
                Column("Candidate", lambda candidate: candidate.name),
                Column(competition.metric, lambda candidate: number(candidate.value), "number"),
                Column("The trained one is ahead by (95 %)", ahead, "number"),
            ],
        ),
    ]


def _history(source: Source) -> History | None:
    """The training history of a run; None if the Trainer did not succeed.

    Raises:
        ContentError: It is missing or broken.
    """
    model_run = source.artifact("Trainer", "model_run")
    return None if model_run is None else read_history(model_run)


def _judged_by(card: Card) -> tuple[str, str, str]:
    """The monitored metric, its mode, and the epoch whose model was exported."""
    checkpoint, stopping = card.callbacks.get("best_checkpoint"), card.callbacks.get("early_stopping")
    watching = checkpoint or stopping
    if not isinstance(watching, dict):
        return MONITOR, "auto", "the last epoch"
    restored = checkpoint or watching.get("restore_best_weights")
    monitor, mode = str(watching.get("monitor", MONITOR)), str(watching.get("mode", "auto"))
    return monitor, mode, "the best epoch" if restored else "the last epoch"


def trainings_compared(before: Source, after: Source) -> Parts:
    """The curves of two runs over each other, or why they are not drawn; empty unless both trained a model."""
    model_runs = [source.artifact("Trainer", "model_run") for source in (before, after)]
    if model_runs[0] is None or model_runs[1] is None:
        return []
    if model_runs[0].id == model_runs[1].id:
        return [Text("Both runs have the very same model: it was trained once.")]
    try:
        histories = {source.run.id: history for source in (before, after) if (history := _history(source))}
    except ContentError as error:
        return [Text(f"{error}.")]
    charts = _curves(histories)
    return [Group(charts, "grid") if charts else Text("The two trainings have no metric in common.")]


def _curves(histories: Mapping[str, History]) -> list[Lines]:
    """A chart for each metric that all trainings have, and one of their learning rates if all logged them.

    Args:
        histories: By run, each with its own colour; the key of a single one is empty.
    """
    first, *others = histories.values()
    few = max(history.epochs for history in histories.values()) <= FEW_EPOCHS
    charts = [
        Lines(name, _lines(histories, name), x="epoch", y=name, markers=few)
        for name in first.metrics
        if all(name in other.metrics for other in others)
    ]
    if all(history.learning_rate for history in histories.values()):
        lines = [
            Line(run or LEARNING_RATE, list(enumerate(history.learning_rate or [], 1)), group=group if others else None)
            for group, (run, history) in enumerate(histories.items())
        ]
        charts.append(Lines(LEARNING_RATE, lines, x="epoch", y=LEARNING_RATE, markers=few))
    return charts


def _lines(histories: Mapping[str, History], metric: str) -> list[Line]:
    named = (("training", metric, False), ("validation", f"{VALIDATION}{metric}", True))
    return [
        Line(
            f"{run}, {name}" if run else name,
            list(enumerate(history.columns[column], 1)),
            dashed,
            group if run else None,
        )
        for group, (run, history) in enumerate(histories.items())
        for name, column, dashed in named
        if column in history.columns
    ]


def model_card_section(source: Source, surroundings: Surroundings) -> Parts:
    """What the model predicts, its inputs and outputs, and its metrics."""
    model, card = source.artifact("Trainer", "model"), source.card
    if model is None or card is None:
        return []
    classes = card.class_names or []
    more = f" and {len(classes) - MOST_CLASSES} more" if len(classes) > MOST_CLASSES else ""
    return [
        Facts(
            [
                ("Model", card.name),
                ("Predicts", label_text(card.label)),
                ("Weights", number(card.num_parameters)),
                ("Exported", card.created.isoformat(" ", "seconds")),
                ("Artifact", line(link(model.id, surroundings.links.artifact(model.id)), " in ", code(model.uri))),
                ("Embedding", f"the output of the layer {card.embedding_layer}" if card.embedding_layer else None),
                ("Classes", ", ".join(classes[:MOST_CLASSES]) + more if classes else None),
                ("Schema", line("SHA-256 ", code(card.schema_sha256))),
            ]
        ),
        *_measured(card.validation_metrics),
        Heading("Signatures"),
        *(_signature(name, signature) for name, signature in card.signatures.items()),
        Details("The recipe, as its README tells it now", [Verbatim(surroundings.recipe_text)])
        if surroundings.recipe_text
        else None,
    ]


def _measured(metrics: Mapping[str, float | None]) -> Parts:
    if not metrics:
        return []
    facts = Facts([(name, number(value)) for name, value in metrics.items()])
    return [Heading("At the end of the training, on the evaluation split"), facts]


def _signature(name: str, signature: Signature) -> Details:
    tensors = [("input", *named) for named in signature.inputs.items()]
    tensors += [("output", *named) for named in signature.outputs.items()]
    sizes = f": {count(len(signature.inputs), 'input')}, {count(len(signature.outputs), 'output')}"
    table = Table(
        f"Signature {name}",
        tensors,
        [
            Column("", lambda row: row[0]),
            Column("Name", lambda row: code(row[1])),
            Column("Type", lambda row: row[2].dtype),
            Column("Shape", lambda row: code(row[2].shape_text)),
            Column("Feature", lambda row: row[2].feature or ""),
            Column("Missing is", lambda row: "" if row[2].missing is None else code(json.dumps(row[2].missing))),
        ],
        head=1,
    )
    return Details(line(code(name), sizes), [table])
