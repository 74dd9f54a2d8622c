"""`millrace predict` against a real server, with a model whose predictions are easy to compute by hand."""

from __future__ import annotations

import gzip
import json
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import tensorflow as tf
import yaml
from click.testing import CliRunner, Result

from pipeline import cli
from pipeline.commands import predict as predict_command
from pipeline.plan.environment import Environment
from serving.server import Server
from serving.settings import ServerSettings

HOST = "127.0.0.1"
TOKEN = "top secret"  # noqa: S105
NOTHING = -(2**63)
Predict = Callable[..., Result]


class Trip(tf.Module):
    """Adds up its inputs, and says which are missing."""

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.float32, "fare"),
            tf.TensorSpec([None], tf.float32, "tips"),
            tf.TensorSpec([None], tf.int64, "hour"),
            tf.TensorSpec([None], tf.string, "company"),
        ]
    )
    def predict(self, fare: tf.Tensor, tips: tf.Tensor, hour: tf.Tensor, company: tf.Tensor) -> dict[str, tf.Tensor]:
        total = tf.where(tf.math.is_nan(tips), 0.0, tips) + tf.cast(hour, tf.float32) * tf.cast(
            hour != NOTHING, tf.float32
        )
        return {"sum": tf.expand_dims(fare + total, 1), "who": tf.where(company == "", "nobody", company)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "examples")])
    def serving_default(self, examples: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"double": 2.0 * tf.io.parse_example(examples, {"fare": tf.io.FixedLenFeature([], tf.float32)})["fare"]}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("predict")
    module = Trip()
    signatures = {"serving_default": module.serving_default, "predict": module.predict}
    tf.saved_model.save(module, str(folder / "small" / "1"), signatures=signatures)
    token = folder / "it's a token"
    token.write_text(TOKEN)
    started = Server(
        ServerSettings(
            port=free_port(),
            rest_api_port=free_port(),
            model_name="small",
            model_base_path=folder / "small",
            bearer_token_file=token,
            file_system_poll_wait_seconds=0,
        )
    )
    started.start()
    yield started
    started.drain()


@pytest.fixture
def predict(server: Server, project: Path, places: Environment, monkeypatch: pytest.MonkeyPatch) -> Predict:
    """Calls `millrace predict small` in `project`, whose schema requires `fare` and knows `tips`."""
    environment = places.model_dump(mode="json")
    (project / "environments" / "local.yaml").write_text(yaml.safe_dump(environment))
    schema = project / "schemas" / "small" / "schema.pbtxt"
    # A fixed shape, which makes the exported signature require a value in every row.
    schema.write_text(schema.read_text().replace("min_count: 1 } }", "min_count: 1 } shape { dim { size: 1 } } }"))
    monkeypatch.chdir(project)
    options = ["--server", f"http://{HOST}:{server.rest_api_port}"]
    options += ["--token-file", str(server.settings.bearer_token_file)]

    def call(*words: str, stdin: str | bytes | None = None) -> Result:
        return CliRunner().invoke(cli.main, ["predict", "small", *options, *words], stdin, prog_name="millrace")

    return call


@pytest.fixture
def rows(project: Path) -> Path:
    path = project / "rows.csv"
    path.write_text('fare,tips,hour,company\n1.5,0.5,3,"Blue, Ltd"\n2,,,\n\n3,nan,-1,größer\n')
    return path


ANSWERS = [{"sum": 5.0, "who": "Blue, Ltd"}, {"sum": 2.0, "who": "nobody"}, {"sum": 2.0, "who": "größer"}]


def answers(result: Result) -> list[object]:
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_csv_gives_csv_in_a_pipe(predict: Predict, rows: Path) -> None:
    result = predict("--csv", str(rows))
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == 'sum,who\n5.0,"Blue, Ltd"\n2.0,nobody\n2.0,größer\n'


def test_standard_input_json_lines_and_only_the_first_rows(predict: Predict, rows: Path) -> None:
    text = rows.read_text()
    assert answers(predict("--csv", "-", "--output", "json", "--rows", "2", stdin=text)) == ANSWERS[:2]


def test_a_table_on_a_terminal(predict: Predict, rows: Path) -> None:
    lines = predict("--csv", str(rows), "--output", "table").stdout.splitlines()
    assert [line.split() for line in lines] == [
        ["row", "sum", "who"],
        ["1", "5.0", "Blue,", "Ltd"],
        ["2", "2.0", "nobody"],
        ["3", "2.0", "größer"],
    ]


def test_batches_keep_the_order(predict: Predict, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predict_command, "ROWS_A_REQUEST", 4)
    (project / "many.csv").write_text("hour,company,tips,fare\n" + "".join(f"0,,,{n}\n" for n in range(10)))
    lines = predict("--csv", "many.csv").stdout.splitlines()
    assert lines == ["sum,who", *(f"{n}.0,nobody" for n in range(10))]
    lines = predict("--csv", "many.csv", "--output", "table").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["row", *map(str, range(1, 11))]


JSON_ROWS = [
    {"fare": 1.5, "tips": 0.5, "hour": 3, "company": "Blue, Ltd"},
    {"fare": 2, "tips": None, "hour": None, "company": None},
    {"fare": 3, "tips": None, "hour": -1, "company": {"b64": "Z3LDtsOfZXI="}},
]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(JSON_ROWS),
        "\n".join(map(json.dumps, JSON_ROWS)) + "\n",
        json.dumps({"signature_name": "predict", "instances": JSON_ROWS}, indent=2),
    ],
)
def test_json_in_each_form(predict: Predict, text: str) -> None:
    assert answers(predict("--json", "-", stdin=text)) == ANSWERS
    if not text.startswith("{"):
        assert answers(predict("--json", text)) == ANSWERS


@pytest.mark.parametrize("zipped", [False, True])
def test_examples_go_to_the_default_signature(predict: Predict, tmp_path: Path, zipped: bool) -> None:
    path = tmp_path / "rows.tfrecord"
    with tf.io.TFRecordWriter(str(path), "GZIP" if zipped else "") as writer:
        for fare in (1.0, 2.5):
            feature = tf.train.Feature(float_list=tf.train.FloatList(value=[fare]))
            writer.write(tf.train.Example(features=tf.train.Features(feature={"fare": feature})).SerializeToString())
    assert answers(predict("--examples", str(path))) == [{"double": 2.0}, {"double": 5.0}]
    assert answers(predict("--examples", "-", stdin=path.read_bytes())) == [{"double": 2.0}, {"double": 5.0}]
    whole = gzip.decompress(path.read_bytes()) if zipped else path.read_bytes()
    path.write_bytes(whole[:-3])
    result = predict("--examples", str(path))
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"{path}, record 2: received a wrong or incomplete checksum" in result.stderr


def test_grpc_answers_the_same(predict: Predict, server: Server, rows: Path) -> None:
    result = predict("--server", f"grpc://{HOST}:{server.port}", "--csv", str(rows), "--output", "json")
    assert answers(result) == ANSWERS


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fare,tips,hour,company\n1,,,\nx,,,\n", "rows.csv:3, column fare: received 'x', expected a number."),
        ("fare,tips,hour,company\n1,,2.5,\n", "rows.csv:2, column hour: received '2.5', expected a whole number."),
        ("fare,tips,hour,company\n,,,\n", "rows.csv:2, column fare: received '', expected a number: it is required."),
        ('fare,tips,hour,company\n1,,,"a\nb"\n1,1e,,\n', "rows.csv:4, column tips: received '1e', expected a number."),
        ("fare,tips,hour,company\n1,2\n", "rows.csv:2: received 2 cells, expected 4 as in the header."),
        ("fare,tips,hour\n1,,\n", "rows.csv:1: lacks company.\nAdd the columns; "),
        (
            "fare,tips,hour,compny\n1,,,\n",
            "rows.csv:1: no such column: 'compny'. Did you mean company?\nOr leave it out: --ignore compny",
        ),
        ("fare,tips,hour,company,fare\n1,,,,\n", "rows.csv:1: the column 'fare' is there twice, expected it once."),
        ("fare,tips,hour,company\n", "received no rows, expected at least one."),
        ("", "rows.csv is empty.\nGive it a first line with the columns' names."),
        ('fare,tips,hour,company\n1,,,"a\n', "rows.csv:3: not CSV in UTF-8: unexpected end of data."),
    ],
)
def test_a_csv_that_does_not_fit_is_refused_before_anything_is_sent(
    predict: Predict, rows: Path, text: str, message: str
) -> None:
    rows.write_text(text)
    result = predict("--csv", "rows.csv")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"error: {message}")


def test_a_column_that_the_schema_knows_or_the_user_names_is_left_out(
    predict: Predict, project: Path, rows: Path
) -> None:
    schema = project / "schemas" / "small" / "schema.pbtxt"
    schema.write_text(schema.read_text() + 'feature { name: "label" type: FLOAT }\n')
    rows.write_text("fare,tips,hour,company,label,id\n1,,,,1,7\n")
    result = predict("--csv", "rows.csv", "--ignore", "id")
    assert (result.exit_code, result.stdout) == (0, "sum,who\n1.0,nobody\n")
    assert result.stderr == "Not taken by the model: label, id\n"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ('{"fare": "1", "tips": 1, "hour": 1, "company": "a"}', "row 1, column fare: received '1', expected a number."),
        ('{"fare": 1, "tips": 1, "hour": 1, "company": 7}', "row 1, column company: received 7, expected text."),
        ('{"fare": 1, "tips": 1, "hour": true, "company": ""}', "row 1, column hour: received True, expected a whole"),
        ('[{"fare": 1, "tips": 1, "hour": 1}]', "row 1: lacks company."),
        ("[1]", "row 1: received 1, expected an object with company, fare, hour, tips."),
        ('{"fare": ', "is not JSON: Expecting value"),
    ],
)
def test_json_that_does_not_fit(predict: Predict, given: str, message: str) -> None:
    result = predict("--json", given)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: the JSON given")
    assert message in result.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "received 0 of --csv, --json and --examples, expected one.\nFor example:  "),
        (["--json", "{}", "--csv", "-"], "received 2 of --csv, --json and --examples, expected one."),
        (["--json", "{}", "--version", "1", "--label", "a"], "received --version and --label, expected one of them."),
        (["--json", "{}", "--signature", "predct"], "small has no signature 'predct'. Did you mean predict?"),
        (["--json", "{}", "--timeout", "0"], "received --timeout 0, expected more than 0 seconds."),
        (["--json", "{}", "--server", "localhost"], "received server 'localhost', expected one of http://host:port, "),
        (["--json", "{}", "--server", "grpc://a:1", "--curl"], "received --curl with grpc://a:1, expected a server of"),
        (["--examples", "-", "--signature", "predict"], "signature predict takes company, fare, hour, tips, expected"),
    ],
)
def test_wrong_settings_of_predict_end_with_2(predict: Predict, words: list[str], message: str) -> None:
    result = predict(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"error: {message}")


def test_where_there_is_no_server_the_command_that_starts_one_is_printed(predict: Predict, rows: Path) -> None:
    url = f"http://{HOST}:{free_port()}"
    result = predict("--csv", str(rows), "--server", url, "--env", "environments/local.yaml")
    assert result.exit_code == 1
    first, fix = result.stderr.splitlines()
    assert first == f"error: no server answers at {url}: Connection refused."
    assert fix.startswith("Start one:  ")
    assert fix.endswith("millrace serve small --env environments/local.yaml")


def test_refusals_of_the_server_are_explained(predict: Predict, tmp_path: Path) -> None:
    result = predict("--json", "{}", "--version", "9")
    assert result.exit_code == 1
    assert "does not serve what was asked for: Servable not found for request: Specific(small, 9)." in result.stderr
    (tmp_path / "wrong").write_text("wrong")
    result = predict("--json", "{}", "--token-file", str(tmp_path / "wrong"))
    assert result.exit_code == 1
    assert result.stderr.startswith("error: UNAUTHENTICATED: received a wrong bearer token (request ")
    assert result.stderr.endswith("Give the token: --token-file FILE\n")


@pytest.mark.usefixtures("server")
def test_the_printed_curl_line_asks_the_same(predict: Predict) -> None:
    row = {"fare": 1.5, "tips": None, "hour": 3, "company": 'it\'s "Blue" $HOME `x`'}
    result = predict("--json", json.dumps(row), "--version", "1", "--curl")
    assert (result.exit_code, result.stderr) == (0, "")
    reply = subprocess.run(["sh", "-c", f"{result.stdout.strip()} -sS"], capture_output=True, check=True).stdout
    assert json.loads(reply) == {"predictions": [{"sum": [4.5], "who": row["company"]}]}


def test_a_curl_line_too_long_for_a_shell_is_refused(predict: Predict, project: Path) -> None:
    (project / "many.csv").write_text("hour,company,tips,fare\n" + "1,a company,2,3\n" * 3000)
    result = predict("--csv", "many.csv", "--curl")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.endswith("a shell takes 131,071.\nTake fewer: --rows 10\n")
    assert predict("--csv", "many.csv", "--curl", "--rows", "2").exit_code == 0
