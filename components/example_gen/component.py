"""The first node of the pipeline: raw files in, Examples out; on Beam where there is work for more than one worker."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import apache_beam as beam
from tfx import types
from tfx.components.example_gen import utils
from tfx.components.util import examples_utils
from tfx.dsl.components.base import base_beam_component, base_beam_executor, executor_spec
from tfx.dsl.io import fileio
from tfx.proto import example_gen_pb2
from tfx.types import artifact, artifact_utils, component_spec, standard_artifacts
from tfx.types.channel import Channel
from tfx.utils.typing_utils import ArtifactMultiDict as Artifacts

from components.cores import worker_processes
from components.engine import is_columnar
from components.example_gen.contract import assign_splits, merge_kinds
from components.example_gen.files import InputFiles, resolve
from components.example_gen.kinds import Kind
from components.example_gen.outcome import Outcome, check_outcome, merge_outcomes, notes_on
from components.example_gen.settings import DataSettings
from components.example_gen.shards import Job, Shard, infer_shard, make_shards, write_shard
from components.example_gen.sources import all_files, source_of
from components.memo import content_digests
from components.progress import PROGRESS, count_at, counting_rows
from contracts import errors
from contracts.data_verdict import INFINITE_PROPERTY, NOTES_PROPERTY
from contracts.errors import MillraceError
from contracts.file_names import COLUMNS_FILE

PROCESS_BYTES = 192 << 20
"""From this size of the input on, starting processes pays for itself."""


class RejectedRows(artifact.Artifact):
    """The rows, or image files, that were set aside, by `data.on_bad_row` or another such setting.

    Files `rejected-00000-of-0000N.jsonl`, one for each shard that has such rows; each line an object with `file`,
    `line` (from 1), `column` (or null), `reason` and `raw`. Bytes in `raw` that are not UTF-8 are lone surrogates:
    encode with the error handler `surrogateescape` to get the bytes back. For an image file, `line` and `raw` are null;
    for Parquet, TFRecord and Python, `line` is the row's number and `raw` is null.
    """

    TYPE_NAME = "RejectedRows"
    PROPERTIES = {"num_rows": artifact.Property(type=artifact.PropertyType.INT)}  # noqa: RUF012  # TFX's own form


class Executor(base_beam_executor.BaseBeamExecutor):
    """The executor of `component.ExampleGen`."""

    def Do(self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]) -> None:  # noqa: N802
        """Writes the splits of the `examples` artifact and fills in its properties.

        Args:
            input_dict: Empty.
            output_dict: `examples` and `rejected_rows`, one artifact each.
            exec_properties: `settings`, `base_dir`, `labels` and optionally `span`; see the component.

        Raises:
            SettingsError: The settings do not fit the files.
            DataError: There are no data, or they cannot be read.
        """
        progress_path = exec_properties.pop(PROGRESS, None)
        self._log_startup(input_dict, output_dict, exec_properties)
        examples = artifact_utils.get_single_instance(output_dict["examples"])
        rejected = artifact_utils.get_single_instance(output_dict["rejected_rows"])
        settings = DataSettings.model_validate_json(exec_properties["settings"])
        if exec_properties.get("span") is not None:
            settings = settings.model_copy(update={"span": exec_properties["span"]})
        inputs = resolve(settings, exec_properties["base_dir"])
        examples.split_names = artifact_utils.encode_split_names(list(settings.splits))

        pieces = assign_splits(source_of(inputs.format, inputs.reading).pieces(inputs), inputs)
        shards = make_shards(pieces)
        uris = {split: artifact_utils.get_split_uri([examples], split) for split in settings.splits}
        labels = tuple(json.loads(exec_properties["labels"]))
        places = (uris, f"{examples.uri}/.partial", rejected.uri)
        job = Job(settings, inputs.format, len(shards), *places, labels, progress_path)
        for folder in (*uris.values(), job.partial_uri):
            fileio.makedirs(folder)
        with counting_rows(progress_path, total_bytes=sum(piece.size for piece in pieces)):
            outcome = self._ingest(shards, job)
        fileio.rmtree(job.partial_uri)
        check_outcome(outcome, settings, pieces[0].file)
        with fileio.open(f"{examples.uri}/{COLUMNS_FILE}", "w") as file:
            json.dump(dict(outcome.kinds), file)
        notes = notes_on(outcome, settings)
        for note in notes:
            logging.warning(note)
        _describe(examples, inputs, outcome, pieces[0].classes, notes)
        rejected.num_rows = outcome.rejected

    def _ingest(self, shards: list[Shard], job: Job) -> Outcome:
        if len(shards) == 1 or is_columnar(self._beam_pipeline_args):
            # With one shard there is nothing to distribute, and Beam takes several times as long as the work.
            in_processes = len(shards) > 1 and sum(shard.size for shard in shards) >= PROCESS_BYTES
            return _ingested_in_processes(shards, job) if in_processes else _ingested_here(shards, job)
        report_uri = f"{job.rejected_uri}/outcome.json"
        with self._make_beam_pipeline() as pipeline:
            spread = pipeline | "Shards" >> beam.Create(shards) | "Spread" >> beam.Reshuffle()
            kinds = spread | "Infer" >> beam.Map(_try_infer, job) | "Merge" >> beam.CombineGlobally(_merge)
            outcomes = spread | "Write" >> beam.Map(_try_write, beam.pvalue.AsSingleton(kinds), job)
            _ = outcomes | "Gather" >> beam.combiners.ToList() | "Report" >> beam.Map(_report, report_uri)
        return _read_report(report_uri)


def _ingested_here(shards: Sequence[Shard], job: Job) -> Outcome:
    kinds = merge_kinds([infer_shard(shard, job) for shard in shards])
    return merge_outcomes([write_shard(shard, kinds, job) for shard in shards])


def _ingested_in_processes(shards: Sequence[Shard], job: Job) -> Outcome:
    with worker_processes() as pool:
        kinds = merge_kinds(list(pool.map(partial(infer_shard, job=job), shards)))
        outcomes = []
        written = pool.map(partial(write_shard, kinds=kinds, job=job), shards)
        for shard, outcome in zip(shards, written, strict=True):
            outcomes.append(outcome)
            # The other processes count for nobody.
            count_at(job.progress, outcome.num_rows, shard.size)
    return merge_outcomes(outcomes)


# Runners turn a worker's exception into one of their own, with our message somewhere in it. So our errors travel as
# values, and the result comes back through a file, the one channel that every runner has.


def _try_infer(shard: Shard, job: Job) -> dict[str, Kind] | MillraceError:
    try:
        return infer_shard(shard, job)
    except MillraceError as error:
        return error


def _merge(parts: Iterable[dict[str, Kind] | MillraceError]) -> dict[str, Kind] | MillraceError:
    kinds = []
    for part in parts:
        if isinstance(part, MillraceError):
            return part
        kinds.append(part)
    return merge_kinds(kinds)


def _try_write(shard: Shard, kinds: dict[str, Kind] | MillraceError, job: Job) -> Outcome | MillraceError:
    if isinstance(kinds, MillraceError):
        return kinds
    try:
        return write_shard(shard, kinds, job)
    except MillraceError as error:
        return error


def _report(outcomes: list[Outcome | MillraceError], uri: str) -> None:
    reports = [
        {"error": type(outcome).__name__, "what": outcome.what, "fix": outcome.fix}
        if isinstance(outcome, MillraceError)
        else dataclasses.asdict(outcome)
        for outcome in outcomes
    ]
    with fileio.open(uri, "w") as file:
        file.write(json.dumps(reports))


def _read_report(uri: str) -> Outcome:
    with fileio.open(uri, "r") as file:
        reports = json.loads(file.read())
    fileio.remove(uri)
    for report in reports:
        if "error" in report:
            raise getattr(errors, report["error"])(report["what"], report["fix"])
    return merge_outcomes([Outcome.from_dict(report) for report in reports])


def _describe(
    examples: types.Artifact, inputs: InputFiles, outcome: Outcome, classes: Sequence[str], notes: Sequence[str]
) -> None:
    """Fills in what people and the next components need to know about an Examples artifact."""
    examples.span = inputs.span or 0
    examples.set_int_custom_property(utils.SPAN_PROPERTY_NAME, inputs.span or 0)  # Where stock TFX looks for the span.
    examples_utils.set_payload_format(examples, example_gen_pb2.FORMAT_TF_EXAMPLE)
    examples_utils.set_file_format(examples, "tfrecords_gzip")
    read = content_digests(all_files(inputs))
    digests = "".join(f"{digest}  {inputs.name_of(file)}\n" for file, digest in read.items())
    input_digest = hashlib.sha256(digests.encode("utf-8", "surrogateescape")).hexdigest()
    examples.set_string_custom_property("input_digest", input_digest)
    examples.set_int_custom_property("num_rows", outcome.num_rows)
    if outcome.infinite:
        examples.set_string_custom_property(INFINITE_PROPERTY, json.dumps(outcome.infinite))
    if notes:
        examples.set_string_custom_property(NOTES_PROPERTY, json.dumps(notes))
    if classes:
        examples.set_string_custom_property("class_names", json.dumps(classes))


class ExampleGenSpec(component_spec.ComponentSpec):
    """The parameters and outputs of `ExampleGen`; see there."""

    PARAMETERS = {  # noqa: RUF012  # TFX's own form
        "settings": component_spec.ExecutionParameter(type=str),
        "base_dir": component_spec.ExecutionParameter(type=str),
        "labels": component_spec.ExecutionParameter(type=str),
        "span": component_spec.ExecutionParameter(type=int, optional=True),
    }
    INPUTS: dict[str, component_spec.ChannelParameter] = {}  # noqa: RUF012
    OUTPUTS = {  # noqa: RUF012
        "examples": component_spec.ChannelParameter(type=standard_artifacts.Examples),
        "rejected_rows": component_spec.ChannelParameter(type=RejectedRows),
    }


class ExampleGen(base_beam_component.BaseBeamComponent):
    """Reads tables or images (see `DataSettings.format`) and writes TFRecords of `tf.train.Example`, in splits.

    For CSV, the Examples and their splits equal those of TFX's CsvExampleGen.

    Outputs:
        examples: Examples, with the custom properties `num_rows`, `input_digest` (a SHA-256 of the files' contents),
            where people should know of something `notes` (a JSON list of sentences) and, for images, `class_names` (a
            JSON list of text in the order of the class ids).
        rejected_rows: RejectedRows; empty unless one of `data.on_bad_row`, `on_missing_label` and `on_overflow` is
            `set_aside`.

    Args:
        settings: The recipe's `data` section.
        base_dir: The folder that a relative `data.path` starts from.
        labels: The recipe's labels; those that are columns of the data must be there in every row.
        span: The span to read, found beforehand by `files.resolve` so that it is part of TFX's cache key; None reads
            the span that `data.span` gives, or the newest.
    """

    SPEC_CLASS = ExampleGenSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(Executor)

    def __init__(
        self, settings: DataSettings, base_dir: str, labels: Sequence[str] = (), span: int | None = None
    ) -> None:
        spec = ExampleGenSpec(
            settings=settings.model_dump_json(),
            base_dir=base_dir,
            labels=json.dumps(list(labels)),
            span=span,
            examples=Channel(type=standard_artifacts.Examples),
            rejected_rows=Channel(type=RejectedRows),
        )
        super().__init__(spec=spec)
