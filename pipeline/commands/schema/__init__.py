"""`millrace schema`: schema changes that the data call for, to accept or reject; `show`: the schema as a table."""

from __future__ import annotations

import click
from google.protobuf import json_format
from rich.text import Text
from tensorflow_metadata.proto.v0 import schema_pb2

from pipeline.commands import lookup
from pipeline.commands.options import ENVIRONMENT_OPTION, reports_errors
from pipeline.commands.schema.proposals import RECIPE, RUN_OPTION, accept, propose, reject, run_of
from pipeline.plan import preflight, project
from pipeline.plan import recipe as recipes
from pipeline.run.workplace import Workplace
from pipeline.schema import changes, editing, offer

LONGEST = 80


@click.command("show")
@RECIPE
@RUN_OPTION
@lookup.JSON_OPTION
@ENVIRONMENT_OPTION
@reports_errors
def show(recipe_name: str, run_id: str | None, as_json: bool, environment_name: str) -> None:
    """Show RECIPE's curated schema; with --run, or if there is none yet, the one that a run used."""
    path = recipes.load(recipe_name).schema_path
    if run_id is None and path.exists():
        title, parsed = project.relative_path(path), preflight.read_schema(path)
    else:
        store = lookup.open_store(Workplace.load(environment_name))
        run = run_of(store, recipe_name, run_id, environment_name)
        title, parsed = f"The schema of {run.id}", editing.parse_schema(offer.run_schema_text(store, run))
    if as_json:
        lookup.print_json(json_format.MessageToDict(parsed, preserving_proto_field_name=True))
        return
    table = lookup.make_table(
        title, ("Feature", "Type", "At least in", "Values a row", "Allowed"), right=("At least in",)
    )
    for feature in parsed.feature:
        table.add_row(*(Text(cell) for cell in _cells(parsed, feature)))
    lookup.print_wide(table)


def _cells(whole: schema_pb2.Schema, feature: schema_pb2.Feature) -> tuple[str, ...]:
    kind = schema_pb2.FeatureType.Name(feature.type)
    stage = feature.lifecycle_stage
    named = f"{feature.name} ({schema_pb2.LifecycleStage.Name(stage).lower()})" if stage else feature.name
    if feature.HasField("shape"):
        lengths = " by ".join(str(dim.size) for dim in feature.shape.dim) or "1"
    elif feature.HasField("value_count"):
        low, high = feature.value_count.min, feature.value_count.max
        lengths = str(low) if low == high else f"{low} to {high or 'any'}"
    else:
        lengths = "any"
    return named, kind, f"{100 * feature.presence.min_fraction:g} %", lengths, _allowed(whole, feature)


def _allowed(whole: schema_pb2.Schema, feature: schema_pb2.Feature) -> str:
    domain = changes.string_domain(whole, feature)
    if domain is not None:
        listed = ", ".join(domain.value)
        return listed if len(listed) <= LONGEST else f"{listed[:LONGEST]}… ({len(domain.value)} values)"
    kind = feature.WhichOneof("domain_info")
    if kind not in {"int_domain", "float_domain"}:
        return kind or ""
    bounds = getattr(feature, kind)
    digits = "d" if kind == "int_domain" else ".7g"
    low, high = (format(getattr(bounds, bound), digits) if bounds.HasField(bound) else "" for bound in ("min", "max"))
    return f"{low} … {high}".strip()


@click.group()
def schema() -> None:
    """Bring the schema and the data together: propose, accept, reject, show."""


for command in (propose, accept, reject, show):
    schema.add_command(command)
