"""What users read when something is wrong with an object store, and how to mend it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from object_server import ObjectServer

from pipeline import cli
from pipeline.plan.object_store_settings import ObjectRoot
from pipeline.run.objects.faults import ObjectStoreError, translated

RIGHTS = "to list the bucket, and to read, write and delete objects below the prefix"
WHO = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile, or the pod's role"


def check(path: str) -> dict[str, str]:
    """The output of `millrace check` by setting, with the lines of each joined."""
    result = CliRunner().invoke(cli.main, ["check", "--env", path])
    messages: dict[str, str] = {}
    for line in result.output.splitlines():
        name = line[:16].strip() or list(messages)[-1]
        messages[name] = f"{messages[name]}\n{line.strip()}" if name in messages else line[17:]
    return messages


def test_a_bucket_is_listed_written_and_cleaned(
    object_environment: Callable[..., str], object_server: ObjectServer, tmp_path: Path
) -> None:
    path = object_environment("here")
    bucket = Path(path).read_text().partition("s3://")[2].partition("/")[0]
    object_server.requests.clear()
    messages = check(path)
    assert messages["pipeline_root"] == (
        f"fine   s3://{bucket}/team/pipelines: can be listed, read, written to and deleted from"
    )
    assert messages["object_store"].startswith(f"fine   {tmp_path}/here/s3/{bucket}/team/pipelines: will be made, ")
    assert {request.split()[0] for request in object_server.requests} >= {"GET", "POST", "PUT", "DELETE"}
    assert object_server.objects(bucket) == {}


def test_a_bucket_that_is_not_there(object_environment: Callable[..., str], object_server: ObjectServer) -> None:
    path = object_environment("here", pipeline_root="s3://nobody-made-it/team")
    assert check(path)["pipeline_root"] == (
        f"fails  the object store cannot be listed: s3://nobody-made-it/team at {object_server.endpoint}: "
        "The specified bucket does not exist (NO_SUCH_BUCKET).\n"
        "Make the bucket, or check its name in pipeline_root; it is not made for you."
    )


def test_keys_that_nobody_has(object_environment: Callable[..., str], object_server: ObjectServer) -> None:
    path = object_environment("here", pipeline_root="s3://models/team")
    object_server.demand_known_keys()
    try:
        message = check(path)["pipeline_root"]
    finally:
        object_server.demand_known_keys(False)
    assert message == (
        f"fails  the object store cannot be listed: s3://models/team at {object_server.endpoint}: "
        "The AWS Access Key Id you provided does not exist in our records. (INVALID_ACCESS_KEY_ID).\n"
        f"Check the credentials: {WHO}."
    )


@pytest.mark.parametrize(
    ("status", "code", "said", "message"),
    [
        ("403 Forbidden", "AccessDenied", "Access Denied", f"Allow these credentials {RIGHTS}. Without any, "),
        ("403 Forbidden", "SignatureDoesNotMatch", "The signature is another", f"Check the credentials: {WHO}."),
        ("400 Bad Request", "ExpiredToken", "The token has expired.", f"Check the credentials: {WHO}."),
        ("301 Moved Permanently", "PermanentRedirect", "Elsewhere", "Set object_store.region to the bucket's region."),
    ],
)
def test_what_the_store_refuses(
    status: str,
    code: str,
    said: str,
    message: str,
    object_environment: Callable[..., str],
    object_server: ObjectServer,
) -> None:
    path = object_environment("here")
    object_server.refuse(status, code, said)
    assert check(path)["pipeline_root"].splitlines()[1].startswith(message)


def test_a_store_that_is_busy_for_a_moment_is_asked_again(
    object_environment: Callable[..., str], object_server: ObjectServer
) -> None:
    path = object_environment("here")
    object_server.refuse("503 Slow Down", "SlowDown", "Please reduce your request rate.")
    assert check(path)["pipeline_root"].startswith("fine")


def test_a_store_that_does_not_answer(object_environment: Callable[..., str]) -> None:
    # Port 9 is the discard service, if anything listens there at all.
    path = object_environment("here", object_store={"endpoint": "http://127.0.0.1:9"})
    message = check(path)["pipeline_root"]
    assert "at http://127.0.0.1:9: curlCode: 7, " in message
    assert message.splitlines()[1] == (
        "Start the server, or check object_store.endpoint, the network and the firewall; it may come back."
    )


@pytest.mark.parametrize(
    ("said", "fix"),
    [
        (
            "google::cloud::Status(UNAUTHENTICATED: Request had invalid authentication credentials.)",
            "Check the credentials: GOOGLE_APPLICATION_CREDENTIALS, or the pod's service account.",
        ),
        (
            "google::cloud::Status(PERMISSION_DENIED: robot does not have storage.objects.list access.)",
            f"Allow these credentials {RIGHTS}. Without any, requests are anonymous: GOOGLE_APPLICATION_CREDENTIALS, "
            "or the pod's service account.",
        ),
        (
            "google::cloud::Status(UNAVAILABLE: Retry policy exhausted GetObjectMetadata: couldn't connect)",
            "Start the server, or check object_store.endpoint, the network and the firewall; it may come back.",
        ),
        (
            "google::cloud::Status(NOT_FOUND: The specified bucket does not exist.)",
            "Make the bucket, or check its name in pipeline_root; it is not made for you.",
        ),
        ("a riddle", "See the server's log."),
    ],
)
def test_googles_messages(said: str, fix: str) -> None:
    root = ObjectRoot("gs", "models", "team")
    with pytest.raises(ObjectStoreError) as caught, translated(root, None, "listed"):
        raise OSError(said)
    assert caught.value.what.startswith("the object store cannot be listed: gs://models/team: ")
    assert caught.value.fix == fix


def test_a_full_disk_is_not_the_stores_fault() -> None:
    with pytest.raises(OSError, match="No space left") as caught, translated(ObjectRoot("s3", "b", ""), None, "read"):
        raise OSError(28, "No space left on device")
    assert not isinstance(caught.value, ObjectStoreError)
