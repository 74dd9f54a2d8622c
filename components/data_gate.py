"""The data gate: anomalies stop the run, with the features, what is wrong with them, and sample values."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from tensorflow_metadata.proto.v0 import anomalies_pb2, schema_pb2
from tfx.components.example_validator import executor as example_validator
from tfx.dsl.components.base import base_component, base_executor, executor_spec
from tfx.types import Artifact, BaseChannel, Channel, artifact_utils, component_spec, standard_artifacts
from tfx.types.artifact import Property, PropertyType
from tfx.utils.typing_utils import ArtifactMultiDict as Artifacts

from components import offending, schemas
from components.errors import AnomalyError
from components.examples import split_files
from components.statistics_gen import decode

VERDICT_FILE = "verdict.json"
MAX_SAMPLES = 3
MAX_QUOTED = 20
"""Of so many anomalies of a split rows are quoted."""


class GateVerdict(Artifact):
    """What the gate saw: `verdict.json`, a list of anomalies.

    Each with split, feature, description, sample values, and some of the rows in which it is seen: `row`, their place
    in the split from 0, and `values`, all columns as text, null where there is none.
    """

    TYPE_NAME = "GateVerdict"
    PROPERTIES = {"num_anomalies": Property(type=PropertyType.INT)}  # noqa: RUF012 (TFX reads a plain dict)


class DataGateSpec(component_spec.ComponentSpec):
    """Inputs, outputs and parameters of the data gate."""

    PARAMETERS = {"on_anomaly": component_spec.ExecutionParameter(type=str)}  # noqa: RUF012
    INPUTS = {  # noqa: RUF012
        "anomalies": component_spec.ChannelParameter(type=standard_artifacts.ExampleAnomalies),
        "examples": component_spec.ChannelParameter(type=standard_artifacts.Examples),
        "schema": component_spec.ChannelParameter(type=standard_artifacts.Schema),
    }
    OUTPUTS = {"verdict": component_spec.ChannelParameter(type=GateVerdict)}  # noqa: RUF012


class Executor(base_executor.BaseExecutor):
    """Raises when a split has anomalies and the recipe says `on_anomaly: stop`."""

    def Do(self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]) -> None:  # noqa: N802
        """Writes the verdict.

        Raises:
          AnomalyError: There are anomalies and they must stop the run; the message lists them all.
        """
        schema = schemas.read(input_dict["schema"])
        findings = list(_findings(input_dict, schema))
        verdict = artifact_utils.get_single_instance(output_dict["verdict"])
        verdict.num_anomalies = len(findings)
        Path(verdict.uri, VERDICT_FILE).write_text(json.dumps(findings, indent=2), encoding="utf-8")
        if not findings:
            return
        message = describe(findings)
        if exec_properties["on_anomaly"] == "stop":
            raise AnomalyError(
                message,
                "Mend the data, or, if the data are right, the schema under schemas/; "
                "`--set gate.on_anomaly=warn` lets this run go on.",
                findings,
            )
        logging.warning(message)


class DataGate(base_component.BaseComponent):
    """Stops the run when ExampleValidator found anomalies."""

    SPEC_CLASS = DataGateSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(Executor)

    def __init__(self, anomalies: BaseChannel, examples: BaseChannel, schema: BaseChannel, on_anomaly: str) -> None:
        super().__init__(
            DataGateSpec(
                anomalies=anomalies,
                examples=examples,
                schema=schema,
                on_anomaly=on_anomaly,
                verdict=Channel(type=GateVerdict),
            )
        )


def describe(findings: list[dict[str, Any]]) -> str:
    """The anomalies as text, a line each."""
    noun = "anomaly" if len(findings) == 1 else "anomalies"
    lines = [f"The data do not look like their schema: {len(findings)} {noun}."]
    for finding in findings:
        samples = f" e.g. {', '.join(finding['samples'])}" if finding["samples"] else ""
        lines.append(f"  {finding['feature']} ({finding['split']}): {finding['description']}{samples}")
    return "\n".join(lines)


def _findings(input_dict: dict[str, list[Artifact]], schema: schema_pb2.Schema) -> Iterator[dict[str, Any]]:
    anomalies_artifact = artifact_utils.get_single_instance(input_dict["anomalies"])
    examples = artifact_utils.get_single_instance(input_dict["examples"])
    for split in artifact_utils.decode_split_names(anomalies_artifact.split_names):
        folder = artifact_utils.get_split_uri([anomalies_artifact], split)
        anomalies = anomalies_pb2.Anomalies()
        anomalies.ParseFromString(Path(folder, example_validator.DEFAULT_FILE_NAME).read_bytes())
        if anomalies.HasField("dataset_anomaly_info"):
            info = anomalies.dataset_anomaly_info
            yield _finding(split, "the data set", info, [], [])
        if not anomalies.anomaly_info:
            continue
        rows = decode(split_files(examples, split))
        domains = {feature.name: feature for feature in schema.feature}
        for index, (name, info) in enumerate(sorted(anomalies.anomaly_info.items())):
            samples = offending_values(rows, domains[name], schema) if name in domains else []
            quoted = offending.quoted_rows(rows, name, info, schema) if index < MAX_QUOTED else []
            yield _finding(split, name, info, samples, quoted)


def _finding(
    split: str, feature: str, info: anomalies_pb2.AnomalyInfo, samples: list[str], rows: list[dict[str, Any]]
) -> dict[str, Any]:
    return {"split": split, "feature": feature, "description": info.description, "samples": samples, "rows": rows}


def offending_values(rows: pa.RecordBatch, feature: schema_pb2.Feature, schema: schema_pb2.Schema) -> list[str]:
    """Up to three distinct values of a column outside the feature's domain, each with how many rows hold it.

    Args:
      rows: Decoded tf.Examples, a list column a feature.
      feature: The schema's feature; only string, int and float domains can be broken by single values.
      schema: Holds the string domains that features share.
    """
    if feature.name not in rows.schema.names:
        return []
    column = rows.column(rows.schema.get_field_index(feature.name))
    if pa.types.is_null(column.type):
        return []
    values = column.flatten()
    outside = offending.outside_domain(values, feature, schema)
    if outside is None:
        return []
    counts = sorted(pc.value_counts(values.filter(outside)).to_pylist(), key=lambda entry: -entry["counts"])
    return [f"{_shown(entry['values'])} in {_rows(entry['counts'])}" for entry in counts[:MAX_SAMPLES]]


def _rows(count: int) -> str:
    return f"{count} row" if count == 1 else f"{count} rows"


def _shown(value: Any) -> str:
    return repr(value.decode("utf-8", "replace")) if isinstance(value, bytes) else f"{value:g}"
