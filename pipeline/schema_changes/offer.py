"""What a run's data ask of a recipe's schema, all told."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tensorflow_metadata.proto.v0 import schema_pb2

from components.errors import MillraceError
from components.example_gen import files as input_files
from metadata.queries import Queries
from metadata.records import RunRecord
from pipeline.checks import UNUSED_STAGES, parse_schema
from pipeline.recipe import Recipe, project_relative
from pipeline.schema_changes import changes, editing, evidence, files, rejections
from pipeline.schema_changes.changes import Proposal
from pipeline.schema_changes.proposals import proposals

_INFERRED = """\
# The {recipe} recipe's schema. It began as what TFDV inferred from the data of {run};
# review it, for from now on data that differ stop the run.

"""


@dataclass(frozen=True)
class Offer:
    """The proposals for a schema.

    Attributes:
        path: Where the curated schema lies, or will.
        run: The run whose data were looked at.
        before: The curated schema's text; None where there is none yet.
        text: What the proposals change: the curated schema's text, or what was inferred.
        proposals: In the schema's order.
        rejected: The features of which something was left out, because it was rejected before.
    """

    path: Path
    run: str
    before: str | None
    text: str
    proposals: Sequence[Proposal]
    rejected: Sequence[str]

    @property
    def digest(self) -> str:
        """A few letters by which a later command knows whether the schema is still the same."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:8]

    def chosen(self, names: Sequence[str]) -> list[Proposal]:
        """The proposals of these features.

        Raises:
            MillraceError: There is none for one of them.
        """
        by_name = {proposal.feature: proposal for proposal in self.proposals}
        for name in names:
            if name not in by_name:
                near = difflib.get_close_matches(name, by_name, n=1)
                hint = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(by_name) or 'none'}."
                raise MillraceError(f"nothing is proposed for {name!r} by the data of {self.run}. {hint}")
        return [by_name[name] for name in dict.fromkeys(names)]

    def text_with(self, accepted: Sequence[Proposal]) -> str:
        """The schema's text with these proposals."""
        return editing.edited(self.text, changes.applied(editing.parse(self.text), accepted))

    def diff(self, accepted: Sequence[Proposal]) -> list[str]:
        """The lines of a unified diff from the curated schema to the one with these proposals."""
        shown = project_relative(self.path)
        before, after = (self.before or "").splitlines(), self.text_with(accepted).splitlines()
        origin = "/dev/null" if self.before is None else shown
        return list(difflib.unified_diff(before, after, origin, shown, lineterm=""))


def make(store: Queries, recipe: Recipe, run: RunRecord, look_at_files: bool) -> Offer:
    """What the data of a run ask of a recipe's schema.

    Args:
        store: Where the run is recorded.
        recipe: The recipe.
        run: One of its runs.
        look_at_files: Whether a required column that the files of today lack counts as gone: a run of them would stop
            before there are statistics.

    Raises:
        MillraceError: The run left nothing to go by, or the schema is not readable.
    """
    path = recipe.schema_path
    before = files.text_of(path)
    schema = None if before is None else parse_schema(before, path)
    absent = _absent(recipe, schema) if look_at_files and schema is not None else {}
    found = evidence.of(store, run, schema, absent)
    text = _INFERRED.format(recipe=recipe.name, run=run.id) + found.schema_text if before is None else before
    unwanted = rejections.read(path.with_name(rejections.FILE))
    current = schema or editing.parse(text)
    made = proposals(current, found.data, unwanted)
    keys = {proposal.feature: proposal.keys for proposal in made}
    asked = proposals(current, found.data, {})
    left_out = [proposal.feature for proposal in asked if proposal.keys != keys.get(proposal.feature, ())]
    return Offer(path, run.id, before, text, made, left_out)


def _absent(recipe: Recipe, schema: schema_pb2.Schema) -> Mapping[str, str]:
    inputs = recipe.find_inputs()
    there = set(input_files.columns(inputs))
    names = (feature.name for feature in schema.feature if feature.lifecycle_stage not in UNUSED_STAGES)
    return {name: project_relative(inputs.files[0]) for name in names if name not in there}
