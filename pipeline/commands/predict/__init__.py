"""`millrace predict`: sends rows to a running server, and prints the predictions in the same order."""

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
# The longest argument that Linux allows, in bytes.
LONGEST_ARGUMENT = 128 * 1024 - 1

Item = TypeVar("Item")
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@dataclass(frozen=True)
class Options:
    """The command's options, by name."""

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
@click.option(
    "--json", "json_text", metavar="FILE|JSON", help="Objects: a list, one per line, or a single one; or `-`."
)
@click.option("--examples", "examples_file", metavar="FILE", help="A TFRecord of tf.Examples, gzip or not; or `-`.")
@click.option("--server", default=DEFAULT_SERVER, show_default=True, help="http(s)://host:port or grpc(s)://host:port.")
@click.option("--signature", help="Default: `predict` if the model has it; for --examples `serving_default`.")
@click.option("--version", type=click.IntRange(min=0), help="Default: the highest that is served.")
@click.option("--label", help="A version's label, such as stable.")
@click.option("--token-file", type=FILE, help="A file with the bearer token.")
@click.option("--cacert", "ca", type=FILE, help="The CA certificate for the server's, PEM.")
@click.option("--cert", "certificate", type=FILE, help="The client's own certificate, PEM; with --key.")
@click.option("--key", type=FILE, help="Its private key, PEM.")
@click.option("--timeout", default=30.0, show_default=True, help="Seconds for a request and its retries.")
@click.option("--output", type=click.Choice(["table", "csv", "json"]), help="Default: a table on a terminal.")
@click.option("--rows", type=click.IntRange(min=1), help="Only the first rows, this many.")
@click.option("--ignore", metavar="COLUMN", multiple=True, help="A column that the model does not take.")
@click.option("--curl", is_flag=True, help="Print the equivalent curl command, and send nothing.")
@ENVIRONMENT_OPTION
@reports_errors
def predict(**options: Any) -> None:
    """Ask a running server for predictions; `millrace serve` starts one.

    \b
    millrace predict taxi --csv trips.csv --rows 5
    millrace predict taxi --json '{"fare": 12.5, …}' --curl

    A file is checked completely before anything is sent. Rows are sent in batches and printed in their order.
    Exit codes: 0 answered, 1 error, 2 wrong settings.
    """
    chosen = Options(**options)
    _check(chosen)
    # gRPC's messages import Google's libraries, which warn about Python versions to no use here.
    warnings.filterwarnings("ignore", category=FutureWarning, module="google")
    # Imported here because other commands do not need the clients.
    from serving import client as clients

    try:
        with clients.connect(chosen.server, _connection(chosen)) as client:
            _run(chosen, client)
    except clients.ClientError as error:
        raise _explained(error, chosen) from error


def _check(options: Options) -> None:
    sources = [value for value in (options.csv_file, options.json_text, options.examples_file) if value is not None]
    if len(sources) != 1:
        raise SettingsError(
            f"received {len(sources)} of --csv, --json and --examples, expected one.",
            f"For example:  {shell_line('predict', options.recipe_name, '--csv', 'rows.csv')}",
        )
    if options.version is not None and options.label is not None:
        raise SettingsError("received --version and --label, expected one of them.")
    if (options.certificate is None) != (options.key is None):
        raise SettingsError("received one of --cert and --key, expected both or none.")
    if options.timeout <= 0:
        raise SettingsError(f"received --timeout {options.timeout:g}, expected more than 0 seconds.")
    if options.curl and not options.server.startswith("http"):
        raise SettingsError(
            f"received --curl with {options.server}, expected a server of REST: curl does not speak gRPC."
        )


def _connection(options: Options) -> Connection:
    from serving.client import Connection

    token = options.token_file.read_text(encoding="utf-8").strip() if options.token_file else None
    return Connection(
        token=token, ca=options.ca, certificate=options.certificate, key=options.key, timeout=options.timeout
    )


def _run(options: Options, client: Client) -> None:
    signature = _signature(options, client)
    columns = _columns(options, signature)
    if options.curl:
        rows = [dict(row) for row in islice(_rows(options, signature, columns, note=_note), options.rows)]
        click.echo(_curl(options, signature, rows))
        return
    if "-" not in (options.csv_file, options.json_text, options.examples_file):
        for _ in islice(_rows(options, signature, columns, note=_note), options.rows):
            pass
    form = options.output or ("table" if sys.stdout.isatty() else "csv" if options.csv_file else "json")
    write = output.writer(form)
    note = _note if options.csv_file == "-" else _silent
    empty = True
    for batch in _batches(islice(_rows(options, signature, columns, note), options.rows)):
        predictions = client.predict(
            options.recipe_name,
            tensors(columns, batch),
            signature=signature.name,
            version=options.version,
            label=options.label,
        )
        write(list(predictions.rows()))
        empty = False
    if empty:
        raise DataError("received no rows, expected at least one.")


def _signature(options: Options, client: Client) -> Signature:
    signatures = client.metadata(options.recipe_name, version=options.version, label=options.label).signatures
    named = NAMED_COLUMNS in signatures and options.examples_file is None
    name = options.signature or (NAMED_COLUMNS if named else DEFAULT_SIGNATURE)
    if name not in signatures:
        raise SettingsError(f"{options.recipe_name} has no signature {name!r}. {did_you_mean(name, signatures)}")
    chosen = signatures[name]
    if options.examples_file is not None and [spec.dtype for spec in chosen.inputs.values()] != ["string"]:
        raise SettingsError(
            f"signature {name} takes {', '.join(chosen.inputs)}, expected one input of serialized tf.Examples.",
            "Name another with --signature.",
        )
    return chosen


def _columns(options: Options, signature: Signature) -> list[Column]:
    required = {feature.name for feature in _schema(options) if feature.HasField("shape")}
    return [
        Column(name, spec.dtype, (spec.shape or (None,))[1:], name in required)
        for name, spec in signature.inputs.items()
    ]


def _schema(options: Options) -> list[Any]:
    """The features of the recipe's schema: columns that a file may have, whether or not the model takes them."""
    if options.recipe_name not in recipe.names():
        return []
    schema = recipe.load(options.recipe_name).curated_schema
    return list(preflight.read_schema(schema).feature) if schema else []


def _rows(options: Options, signature: Signature, columns: list[Column], note: Any) -> Iterator[dict[str, Any]]:
    ignored = {*options.ignore, *(feature.name for feature in _schema(options))}
    if options.csv_file is not None:
        yield from inputs.from_csv(options.csv_file, columns, ignored, note)
    elif options.json_text is not None:
        yield from inputs.from_json(options.json_text, columns, ignored)
    elif options.examples_file is not None:
        name = next(iter(signature.inputs))
        yield from ({name: example} for example in inputs.from_tfrecord(options.examples_file))


def _batches(items: Iterable[Item]) -> Iterator[list[Item]]:
    iterator = iter(items)
    while batch := list(islice(iterator, ROWS_A_REQUEST)):
        yield batch


def _curl(options: Options, signature: Signature, rows: list[dict[str, Any]]) -> str:
    """The equivalent curl command, quoted for the user's shell."""
    from serving.client.base import Model
    from serving.client.rest_client import path, to_json

    body = json.dumps({"signature_name": signature.name, "instances": to_json(rows)})
    if len(body) > LONGEST_ARGUMENT:
        raise SettingsError(
            f"received {len(rows)} rows, of {len(body):,} bytes as JSON; a shell takes {LONGEST_ARGUMENT:,}.",
            "Take fewer: --rows 10",
        )
    words = ["curl"]
    for option, file in (("--cacert", options.ca), ("--cert", options.certificate), ("--key", options.key)):
        words += [option, shlex.quote(str(file))] if file else []
    if options.token_file:
        words += ["-H", f'"Authorization: Bearer $(cat {shlex.quote(str(options.token_file))})"']
    url = f"{options.server.rstrip('/')}{path(Model(options.recipe_name, options.version, options.label))}:predict"
    return " ".join([*words, "-d", shlex.quote(body), shlex.quote(url)])


def _explained(error: ClientError, options: Options) -> MillraceError:
    from serving.client import Code

    where = environment_words(options.environment_name)
    if error.unreachable:
        return MillraceError(f"{error.message}.", f"Start one:  {shell_line('serve', options.recipe_name, *where)}")
    if error.code is Code.NOT_FOUND:
        message = f"the server at {options.server} does not serve what was asked for: {error.message}."
        near = near_names(options.recipe_name, recipe.names())
        typo = bool(near) and near[0] != options.recipe_name
        return MillraceError(message, f"Did you mean {near[0]}?" if typo else None)
    if error.code is Code.UNAUTHENTICATED:
        return MillraceError(f"{error}", "Give the token: --token-file FILE")
    if not error.request_id:
        return SettingsError(error.message)
    return MillraceError(str(error))


def _note(text: str) -> None:
    click.echo(text, err=True)


def _silent(_: str) -> None:
    """Prints nothing: the notes about the file were printed when it was checked."""
