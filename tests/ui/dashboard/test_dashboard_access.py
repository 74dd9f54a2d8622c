"""Who gets what: hosts, methods, paths that lead out, names that are HTML, ETags, and a store that changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_metadata as mlmd
import pytest
from aiohttp.test_utils import TestClient
from dashboard_scene import get, read, values, visit
from store_builder import StoreBuilder

from contracts.fingerprints import Fingerprint
from metadata.files import Files, UnavailableError
from metadata.queries import Queries
from pipeline.plan.environment import Environment
from ui.dashboard import reading, responses
from ui.dashboard.site import Site, UnreadableError

HOSTILE = "<script>alert(1)</script>"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8090", "127.0.0.1.evil.example", ""])
def test_what_was_sent_to_another_name_gets_nothing(shown: Site, ids: dict[str, int], host: str) -> None:
    answer = get(shown, "/", {"Host": host})
    assert (answer.status, answer.text) == (421, "This server answers to localhost and 127.0.0.1 alone.\n")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8090", "LOCALHOST:1", "[::1]:8090"])
def test_the_names_of_this_machine_are_answered(shown: Site, ids: dict[str, int], host: str) -> None:
    assert get(shown, "/", {"Host": host}).status == 200


def test_any_name_is_answered_only_where_other_machines_are_let_in() -> None:
    assert responses.names_of("127.0.0.1") == {"localhost", "127.0.0.1", "::1"}
    assert "127.0.0.2" in responses.names_of("127.0.0.2")
    assert responses.names_of("0.0.0.0") == frozenset()  # noqa: S104 - what is asked about
    assert not responses.is_loopback("example.org")


def test_pages_run_no_script_of_theirs_and_set_no_cookie(shown: Site, ids: dict[str, int]) -> None:
    for path in ("/", "/nothing", "/static/pages.js"):
        headers = get(shown, path).headers
        policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
        assert (policy["default-src"], policy["script-src"], policy["frame-ancestors"]) == (
            "'none'",
            "'self'",
            "'none'",
        )
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "Set-Cookie" not in headers


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_can_be_changed(shown: Site, ids: dict[str, int], method: str) -> None:
    answer = get(shown, "/runs/small-1?format=json", method=method)
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")
    assert answer.values["error"] == f"These pages can only be read; {method} changes things."


def test_head_tells_the_length_of_a_page(shown: Site, ids: dict[str, int]) -> None:
    page = get(shown, "/")
    head = get(shown, "/", method="HEAD")
    assert (head.status, head.text, head.headers["ETag"]) == (200, "", page.headers["ETag"])
    assert int(head.headers["Content-Length"]) == len(page.text.encode())


@pytest.mark.parametrize(
    "path", ["..%2fsecret.txt", "%2e%2e/secret.txt", "%2fetc%2fpasswd", "link.txt", "folder/secret.txt", "a%00b", "."]
)
def test_no_file_outside_an_artifact_is_shown(shown: Site, builder: StoreBuilder, tmp_path: Path, path: str) -> None:
    folder = tmp_path / "artifact"
    folder.mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "folder").symlink_to(tmp_path)
    (folder / "own.txt").write_text("own")
    number = builder.artifact("Model", folder)
    answer = get(shown, f"/artifacts/{number}/files/{path}")
    assert answer.status in {404, 400}
    assert "secret\n" not in answer.text
    assert ">secret<" not in answer.text
    files = {file["path"]: file["outside"] for file in values(shown, f"/artifacts/{number}")["files"]}
    assert files == {"folder": True, "link.txt": True, "own.txt": False}


@pytest.mark.parametrize("run_id", ["%2e%2e%2f%2e%2e", "small-1%2f..%2fsmall-1"])
def test_no_log_outside_the_logs_is_shown(shown: Site, ids: dict[str, int], run_id: str) -> None:
    for path in (f"/runs/{run_id}/nodes/Trainer/log", f"/reports/{run_id}", f"/runs/{run_id}"):
        assert get(shown, path).status == 404


def test_names_that_are_html_are_shown_as_text(shown: Site, builder: StoreBuilder, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / f"{HOSTILE[8:16]}.txt").write_text(HOSTILE)
    number = builder.artifact("Model", folder, note=HOSTILE)
    builder.run(f"run {HOSTILE}")
    builder.node("Trainer", fingerprint=Fingerprint(settings={HOSTILE: HOSTILE}), outputs={HOSTILE: number})
    builder.run("run 2")
    builder.node("Trainer", fingerprint=Fingerprint(settings={HOSTILE: 2}), inputs={HOSTILE: number})
    run = "run%20%3Cscript%3Ealert(1)%3C%2Fscript%3E"
    paths = ["/", f"/runs/{run}", f"/runs/{run}/nodes/Trainer", f"/artifacts/{number}", f"/artifacts/{number}/lineage"]
    paths += ["/models", "/compare", f"/diff/{run}/run%202", "/artifacts"]
    for path in paths:
        answer = get(shown, path)
        assert answer.status == 200, path
        assert HOSTILE not in answer.text, path
    assert HOSTILE not in get(shown, f"/runs/{HOSTILE.replace('/', '%2F')}").text


def test_a_page_that_did_not_change_is_not_sent_again(shown: Site, ids: dict[str, int], builder: StoreBuilder) -> None:
    async def visiting(client: TestClient[Any, Any]) -> None:
        first = await read(await client.get("/?format=json"))
        known = {"If-None-Match": first.headers["ETag"]}
        again = await read(await client.get("/?format=json", headers=known))
        assert (again.status, again.text) == (304, "")
        builder.run("small-3")
        builder.node("ExampleGen", "RUNNING")
        changed = await read(await client.get("/?format=json", headers=known))
        assert changed.status == 200
        assert [run["run"] for run in changed.values] == ["small-3", "small-2", "small-1"]

    visit(shown, visiting)


def test_what_did_not_change_is_read_once(shown: Site, ids: dict[str, int], places: Environment) -> None:
    opened = 0

    def counted() -> Queries | None:
        nonlocal opened
        opened += 1
        return shown.opened()

    async def visiting(client: TestClient[Any, Any]) -> None:
        for _ in range(3):
            assert (await client.get("/runs/small-2")).status == 200
        assert opened == 1
        (places.log_root / "small-2" / "Pusher.log").write_text("more")
        assert (await client.get("/runs/small-2")).status == 200
        assert opened == 2

    visit(replace(shown, opened=counted), visiting)


def test_before_the_first_run_the_page_says_how_to_make_one(shown: Site) -> None:
    answer = get(shown, "/")
    assert answer.status == 404
    assert "Nothing has run yet" in answer.text
    assert "run taxi" in answer.text
    assert "data-again" in answer.text
    assert get(shown, "/?format=json").values["command"].endswith("run taxi")


def test_a_store_that_comes_and_goes_while_it_runs(shown: Site, places: Environment, tmp_path: Path) -> None:
    def made(run_id: str) -> None:
        builder = StoreBuilder(places.metadata_path, tmp_path / run_id)
        builder.run(run_id)
        builder.node("ExampleGen")

    async def visiting(client: TestClient[Any, Any]) -> None:
        async def runs() -> Any:
            return (await read(await client.get("/?format=json"))).values

        assert "error" in await runs()
        made("one")
        assert [run["run"] for run in await runs()] == ["one"]
        places.metadata_path.unlink()
        assert (await client.get("/")).status == 404
        made("two")
        assert [run["run"] for run in await runs()] == ["two"]

    visit(shown, visiting)


def test_a_busy_store_is_read_again(shown: Site, ids: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PAUSE_SECONDS", 0)
    left = 2

    def busy() -> Queries | None:
        nonlocal left
        left -= 1
        if left >= 0:
            raise mlmd.errors.AbortedError("database is locked")
        return shown.opened()

    assert get(replace(shown, opened=busy), "/").status == 200
    left = 9
    answer = get(replace(shown, opened=busy), "/")
    assert (answer.status, answer.headers["Retry-After"]) == (503, "2")
    assert "It is busy: database is locked" in answer.text
    assert "data-again" in answer.text


def test_a_store_that_cannot_be_reached_says_why(shown: Site) -> None:
    def away() -> Queries | None:
        raise UnreadableError("could not connect to server")

    answer = get(replace(shown, opened=away, store_file=None), "/?format=json")
    assert answer.status == 503
    assert answer.values["error"] == "The metadata store cannot be read now. could not connect to server"


def test_artifacts_that_cannot_be_reached_say_why(shown: Site, builder: StoreBuilder) -> None:
    class Away:
        def sizes(self, uri: str) -> None:
            raise UnavailableError(f"{uri} does not answer")

    def opened() -> Queries | None:
        store = shown.opened()
        assert store
        store.files = Files({"s3": Away()})  # type: ignore[dict-item]
        return store

    number = builder.artifact("Examples", "s3://models/examples/1")
    away = replace(shown, opened=opened)
    answer = get(away, f"/artifacts/{number}?format=json")
    assert (answer.status, answer.values["error"]) == (503, "s3://models/examples/1 does not answer")
    # What needs no files is shown.
    assert get(away, "/artifacts").status == 200


def test_a_file_that_is_no_store(shown: Site, places: Environment) -> None:
    places.metadata_path.write_bytes(b"no database" * 100)
    assert get(shown, "/").status == 503


def test_what_is_unknown_names_the_nearest(shown: Site, ids: dict[str, int]) -> None:
    run = get(shown, "/runs/smal-2?format=json")
    assert (run.status, run.values) == (404, {"error": "There is no run smal-2.", "near": ["small-2", "small-1"]})
    node = get(shown, "/runs/small-2/nodes/Trainr?format=json")
    assert (node.status, node.values["near"][2]) == (404, "Trainer")
    artifact = get(shown, "/artifacts/99999999999999?format=json")
    assert (artifact.status, artifact.values["near"]) == (404, [f"PushedModel {ids['pushed']}"])
    assert get(shown, "/artifacts/x").status == 404
    assert get(shown, "/nothing?format=json").values["error"] == "There is no page /nothing."
    assert get(shown, "/?before=x").status == 400


def test_a_fault_of_ours_is_in_the_log_alone(
    shown: Site, ids: dict[str, int], caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_arguments: object) -> str:
        raise RuntimeError("the inside")

    answer = get(replace(shown, why=broken), "/runs/small-1/nodes/Trainer")
    assert answer.status == 500
    assert "the inside" not in answer.text
    assert "Traceback" not in answer.text
    assert "the inside" in caplog.text
