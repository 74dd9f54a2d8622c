"""`millrace predict`: asks a running server about rows of a file, and prints the answers in their order."""

from __future__ import annotations

import json
import shlex
import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from contracts.errors import DataError, MillraceError, SettingsError
from contracts.near_names import did_you_mean, near_names
from pipeline.commands.options import ENVIRONMENT_OPTION, RECIPE_ARGUMENT, reports_errors
from pipeline.commands.predict import inputs, output
from pipeline.commands.predict.columns import Column, tensors
from pipeline.plan import preflight, recipe
from pipeline.run.command_lines import environment_words, shell_line

if TYPE_CHECKING:
    from serving.client import Client, ClientError, Connection, Signature

DEFAULT_SERVER = "http://localhost:8501"
NAMED_COLUMNS = "predict"
DEFAULT_SIGNATURE = "serving_default"
ROWS_A_REQUEST = 512
# Linux takes no longer argument.
LONGEST_ARGUMENT = 128 * 1024 - 1

Item = TypeVar("Item")
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@dataclass(frozen=True)
class Asked:
    """What the user asked for: the command's options by their names."""

    recipe_name: str
    environment_name: str
    csv_file: str | None
    json_text: str | None
    examples_file: str | None
    server: str
    signature: str | None
    version: int | None
    label: str | None
    token_file: Path | None
    ca: Path | None
    certificate: Path | None
    key: Path | None
    timeout: float
    output: str | None
    rows: int | None
    ignore: tuple[str, ...]
    curl: bool


@click.command()
@RECIPE_ARGUMENT
@click.option("--csv", "csv_file", metavar="FILE", help="Rows with a header line; `-` for standard input.")
@click.option("--json", "json_text", metavar="FILE|JSON", help="Objects: a list, an object a line, or one; `-`, too.")
@click.option("--examples", "examples_file", metavar="FILE", help="A TFRecord of tf.Examples, gzip or not; `-`, too.")
@click.option("--server", default=DEFAULT_SERVER, show_default=True, help="http(s)://host:port or grpc(s)://host:port.")
@click.option("--signature", help="Default: `predict` where the model has it; for --examples `serving_default`.")
@click.option("--version", type=click.IntRange(min=0), help="Default: the highest one that is served.")
@click.option("--label", help="A version's label, such as stable.")
@click.option("--token-file", type=FILE, help="Holds the bearer token.")
@click.option("--cacert", "ca", type=FILE, help="The authority of the server's certificate, PEM.")
@click.option("--cert", "certificate", type=FILE, help="The client's own certificate, PEM; with --key.")
@click.option("--key", type=FILE, help="Its private key, PEM.")
@click.option("--timeout", default=30.0, show_default=True, help="Seconds for a request and its retries.")
@click.option("--output", type=click.Choice(["table", "csv", "json"]), help="Default: a table on a terminal.")
@click.option("--rows", type=click.IntRange(min=1), help="Only the first so many rows.")
@click.option("--ignore", metavar="COLUMN", multiple=True, help="A column that the model does not take.")
@click.option("--curl", is_flag=True, help="Print the curl line that asks the same, and ask nothing.")
@ENVIRONMENT_OPTION
@reports_errors
def predict(**options: Any) -> None:
    """Ask a running server for predictions; `millrace serve` starts one.

    \b
    millrace predict taxi --csv trips.csv --rows 5
    millrace predict taxi --json '{"fare": 12.5, …}' --curl

    A file is checked as a whole before anything is sent. Rows are sent by the hundreds and answered in their order.
    Exit codes: 0 answered, 1 error, 2 wrong settings.
    """
    asked = Asked(**options)
    _check(asked)
    # gRPC's messages bring Google's libraries, whose advice on Python versions helps nobody here.
    warnings.filterwarnings("ignore", category=FutureWarning, module="google")
    # The clients load what the other commands do not need.
    from serving import client as clients

    try:
        with clients.connect(asked.server, _connection(asked)) as client:
            _run(asked, client)
    except clients.ClientError as error:
        raise _explained(error, asked) from error


def _check(asked: Asked) -> None:
    given = [value for value in (asked.csv_file, asked.json_text, asked.examples_file) if value is not None]
    if len(given) != 1:
        raise SettingsError(
            f"received {len(given)} of --csv, --json and --examples, expected one.",
            f"For example:  {shell_line('predict', asked.recipe_name, '--csv', 'rows.csv')}",
        )
    if asked.version is not None and asked.label is not None:
        raise SettingsError("received --version and --label, expected one of them.")
    if (asked.certificate is None) != (asked.key is None):
        raise SettingsError("received one of --cert and --key, expected both or none.")
    if asked.timeout <= 0:
        raise SettingsError(f"received --timeout {asked.timeout:g}, expected more than 0 seconds.")
    if asked.curl and not asked.server.startswith("http"):
        raise SettingsError(
            f"received --curl with {asked.server}, expected a server of REST: curl does not speak gRPC."
        )


def _connection(asked: Asked) -> Connection:
    from serving.client import Connection

    token = asked.token_file.read_text(encoding="utf-8").strip() if asked.token_file else None
    return Connection(token=token, ca=asked.ca, certificate=asked.certificate, key=asked.key, timeout=asked.timeout)


def _run(asked: Asked, client: Client) -> None:
    signature = _signature(asked, client)
    columns = _columns(asked, signature)
    if asked.curl:
        rows = [dict(row) for row in islice(_rows(asked, signature, columns, note=_note), asked.rows)]
        click.echo(_curl(asked, signature, rows))
        return
    if "-" not in (asked.csv_file, asked.json_text, asked.examples_file):
        for _ in islice(_rows(asked, signature, columns, note=_note), asked.rows):
            pass
    form = asked.output or ("table" if sys.stdout.isatty() else "csv" if asked.csv_file else "json")
    write = output.writer(form)
    note = _note if asked.csv_file == "-" else _silent
    empty = True
    for batch in _batches(islice(_rows(asked, signature, columns, note), asked.rows)):
        answer = client.predict(
            asked.recipe_name,
            tensors(columns, batch),
            signature=signature.name,
            version=asked.version,
            label=asked.label,
        )
        write(list(answer.rows()))
        empty = False
    if empty:
        raise DataError("received no rows, expected at least one.")


def _signature(asked: Asked, client: Client) -> Signature:
    found = client.metadata(asked.recipe_name, version=asked.version, label=asked.label).signatures
    named = NAMED_COLUMNS in found and asked.examples_file is None
    name = asked.signature or (NAMED_COLUMNS if named else DEFAULT_SIGNATURE)
    if name not in found:
        raise SettingsError(f"{asked.recipe_name} has no signature {name!r}. {did_you_mean(name, found)}")
    inputs = list(found[name].inputs.values())
    if asked.examples_file is not None and [spec.dtype for spec in inputs] != ["string"]:
        raise SettingsError(
            f"signature {name} takes {', '.join(found[name].inputs)}, expected one input of serialized tf.Examples.",
            "Name another with --signature.",
        )
    return found[name]


def _columns(asked: Asked, signature: Signature) -> list[Column]:
    required = {feature.name for feature in _schema(asked) if feature.HasField("shape")}
    return [
        Column(name, spec.dtype, (spec.shape or (None,))[1:], name in required)
        for name, spec in signature.inputs.items()
    ]


def _schema(asked: Asked) -> list[Any]:
    """The features of the recipe's schema: what columns there are besides those that the model takes."""
    if asked.recipe_name not in recipe.names():
        return []
    schema = recipe.load(asked.recipe_name).curated_schema
    return list(preflight.read_schema(schema).feature) if schema else []


def _rows(asked: Asked, signature: Signature, columns: list[Column], note: Any) -> Iterator[dict[str, Any]]:
    ignored = {*asked.ignore, *(feature.name for feature in _schema(asked))}
    if asked.csv_file is not None:
        yield from inputs.from_csv(asked.csv_file, columns, ignored, note)
    elif asked.json_text is not None:
        yield from inputs.from_json(asked.json_text, columns, ignored)
    elif asked.examples_file is not None:
        name = next(iter(signature.inputs))
        yield from ({name: example} for example in inputs.from_tfrecord(asked.examples_file))


def _batches(items: Iterable[Item]) -> Iterator[list[Item]]:
    iterator = iter(items)
    while batch := list(islice(iterator, ROWS_A_REQUEST)):
        yield batch


def _curl(asked: Asked, signature: Signature, rows: list[dict[str, Any]]) -> str:
    """A command that the user's shell reads as it is meant."""
    from serving.client.base import Model
    from serving.client.rest_client import path, to_json

    body = json.dumps({"signature_name": signature.name, "instances": to_json(rows)})
    if len(body) > LONGEST_ARGUMENT:
        raise SettingsError(
            f"received {len(rows)} rows, of {len(body):,} bytes as JSON; a shell takes {LONGEST_ARGUMENT:,}.",
            "Take fewer: --rows 10",
        )
    words = ["curl"]
    for option, file in (("--cacert", asked.ca), ("--cert", asked.certificate), ("--key", asked.key)):
        words += [option, shlex.quote(str(file))] if file else []
    if asked.token_file:
        words += ["-H", f'"Authorization: Bearer $(cat {shlex.quote(str(asked.token_file))})"']
    url = f"{asked.server.rstrip('/')}{path(Model(asked.recipe_name, asked.version, asked.label))}:predict"
    return " ".join([*words, "-d", shlex.quote(body), shlex.quote(url)])


def _explained(error: ClientError, asked: Asked) -> MillraceError:
    from serving.client import Code

    where = environment_words(asked.environment_name)
    if error.unreachable:
        return MillraceError(f"{error.message}.", f"Start one:  {shell_line('serve', asked.recipe_name, *where)}")
    if error.code is Code.NOT_FOUND:
        what = f"the server at {asked.server} does not serve what was asked for: {error.message}."
        near = near_names(asked.recipe_name, recipe.names())
        typo = bool(near) and near[0] != asked.recipe_name
        return MillraceError(what, f"Did you mean {near[0]}?" if typo else None)
    if error.code is Code.UNAUTHENTICATED:
        return MillraceError(f"{error}", "Give the token: --token-file FILE")
    if not error.request_id:
        return SettingsError(error.message)
    return MillraceError(str(error))


def _note(text: str) -> None:
    click.echo(text, err=True)


def _silent(_: str) -> None:
    """Says nothing: the file was told of when it was checked."""
