"""The data of a run: rejected rows, anomalies, statistics of all splits side by side, and the schema."""

from __future__ import annotations

from pathlib import Path

from contracts.data_verdict import VERDICT_FILE, read_verdict
from contracts.file_names import SCHEMA_FILE
from ui.contents import data_faults, schema, statistics
from ui.contents.data_faults import Finding, Rejected
from ui.contents.statistics import SplitStatistics
from ui.parts import Bullets, Column, Heading, Parts, Table, Text
from ui.report import features
from ui.report.source import Source, Surroundings
from ui.texts import Inline, bold, code, count, line, link, listed, state


def data_section(source: Source, surroundings: Surroundings) -> Parts:
    """Rows set aside, anomalies, and the features, those with anomalies first.

    Raises:
        ContentError: A file is missing or broken.
    """
    artifact = source.artifact("StatisticsGen", "statistics")
    set_aside = source.artifact("ExampleGen", "rejected_rows")
    rejected = None if set_aside is None else data_faults.read_rejected(set_aside)
    if artifact is None and rejected is None:
        return []
    splits = list(statistics.read_statistics(artifact).values()) if artifact is not None else []
    findings = _findings(source, surroundings.log_folder)
    cards = sorted(features.cards(splits, findings or []), key=lambda card: not card.findings)
    named = {card.name for card in cards}
    # Anomalies in the data set as a whole, and in features without statistics, such as missing columns.
    others = [finding for finding in findings or [] if finding.feature not in named]
    return [
        Text(_in_short(splits, len(cards), findings)) if splits else None,
        _quotes(cards),
        *(part for finding in others for part in (Heading(finding.feature), features.finding_shown(finding))),
        *(_rejected(rejected) if rejected else []),
        # If something is wrong, only that is open.
        *(features.features_shown([split.name for split in splits], cards, closed=bool(findings)) if cards else []),
    ]


def _findings(source: Source, log_folder: Path | None) -> list[Finding] | None:
    """The anomalies, those of the data set first; None if the data were not validated."""
    anomalies = source.artifact("ExampleValidator", "anomalies")
    if anomalies is None:
        return None
    verdict = source.file("DataGate", "verdict", VERDICT_FILE)
    if verdict is not None:
        return data_faults.read_anomalies(anomalies, read_verdict(verdict))
    quoted = data_faults.read_stopping_verdict(log_folder) if log_folder is not None else ()
    return data_faults.read_anomalies(anomalies, quoted)


def _in_short(splits: list[SplitStatistics], number: int, findings: list[Finding] | None) -> Inline:
    rows = listed(line(bold(count(split.rows, "row")), f" in {split.name}") for split in splits)
    if findings is None:
        verdict = state("The data were not held to a schema.", "")
    elif findings:
        verdict = state(count(len(findings), "anomaly", "anomalies"), "bad")
    else:
        verdict = state("No anomalies", "good")
    return line(rows, f"; {count(number, 'feature')}. ", verdict)


def _quotes(cards: list[features.Card]) -> Bullets | None:
    """The anomalies of features that have a card, each with a link to the card."""

    def quote(card: features.Card, finding: Finding) -> Inline:
        samples = f", for example {', '.join(finding.samples)}" if finding.samples else ""
        return line(link(card.name, f"#{card.id}"), f" in {finding.split}: {finding.summary}{samples}")

    items = [quote(card, finding) for card in cards for finding in card.findings]
    return Bullets(items) if items else None


def _rejected(rejected: Rejected) -> Parts:
    first = f" Of the first {rejected.read:,}:" if rejected.read < rejected.count else ""

    def fault(column: str | None, rows: int) -> Inline:
        return line(count(rows, "row"), " as a whole" if column is None else line(" by ", code(column)))

    verbs = "was set aside and is" if rejected.count == 1 else "were set aside and are"
    sentence = line(
        state(count(rejected.count, "row"), "bad"),
        f" {verbs} in none of the splits.{first} ",
        line(listed(fault(*each) for each in rejected.columns), ". ") if rejected.columns else "",
        line("All of them, with the reason for each, are in ", code(rejected.folder), "."),
    )
    columns = [
        Column("File", lambda row: row.file),
        Column("Line", lambda row: "" if row.line is None else row.line, "number"),
        Column("Column", lambda row: row.column or ""),
        Column("Reason", lambda row: row.reason),
        Column("Row", lambda row: code(row.raw or "")),
    ]
    table = Table("The first rows that were set aside", rejected.first, columns, head=None)
    return [Heading("Rows set aside"), Text(sentence), table]


def schema_section(source: Source, _surroundings: Surroundings) -> Parts:
    """The schema that the data were validated against.

    Raises:
        ContentError: Its file is missing or broken.
    """
    artifact = source.artifact("SchemaGen", "schema")
    if artifact is None:
        return []
    proto = schema.read_schema(artifact.file(SCHEMA_FILE))
    rows = schema.schema_rows(proto)
    curated = "schema_file" in source.nodes["SchemaGen"].properties
    origin = (
        "from the schema that the recipe keeps"
        if curated
        else "inferred from these data, for the recipe keeps no schema"
    )
    environments = f" Environments: {', '.join(proto.default_environment)}." if proto.default_environment else ""
    return [
        Text(f"{count(len(rows), 'feature')}, {origin}.{environments}"),
        Table(
            "The schema",
            rows,
            [
                Column("Feature", lambda row: row.name),
                Column("Type", lambda row: row.kind),
                Column("Presence", lambda row: row.presence),
                Column("Values a row", lambda row: row.values),
                Column("Allowed", lambda row: row.domain),
                Column("Drift bar", lambda row: row.drift_bar, when=any(row.drift_bar for row in rows)),
                Column("Skew bar", lambda row: row.skew_bar, when=any(row.skew_bar for row in rows)),
                Column("Environments", lambda row: row.environments),
            ],
            sortable=True,
            filter="features" if len(rows) > features.FEW else "",
        ),
    ]
