"""A run with artifacts in a bucket, each node in a process with its own cache, against a run in folders."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

from copied_project import TIME_LIMIT_SECONDS, Project
from object_server import ObjectServer

from metadata.store import Store

NODES = ("ExampleGen", "StatisticsGen")


def digests(store: Store, run: str, read: Callable[[str], dict[str, bytes]]) -> dict[str, dict[str, str]]:
    """The digests of the files of all artifacts of a run, by node and output, then by file name."""
    by_node = {}
    for node, record in store.node_runs("taxi", run).items():
        for name, [artifact] in store.outputs(record.id).items():
            files = read(artifact.uri)
            by_node[f"{node} {name}"] = {file: hashlib.sha256(content).hexdigest() for file, content in files.items()}
    return by_node


def in_folder(uri: str) -> dict[str, bytes]:
    paths = [path for path in Path(uri).rglob("*") if path.is_file()]
    return {path.relative_to(uri).as_posix(): path.read_bytes() for path in paths}


def test_nodes_that_share_a_bucket_alone_make_what_a_run_in_folders_makes(
    project: Project, object_environment: Callable[..., str], object_server: ObjectServer, tmp_path: Path
) -> None:
    root = json.loads(Path(object_environment("here")).read_text())["pipeline_root"]

    def in_bucket(uri: str) -> dict[str, bytes]:
        assert uri.startswith(f"{root}/taxi/")
        return object_server.objects(uri.removeprefix("s3://"))

    def states(run: str) -> dict[str, str]:
        return {node: record.state for node, record in store.node_runs("taxi", run).items()}

    folders = project.start("run", "taxi", "--to", NODES[-1])
    for node in NODES:
        finished = project.millrace("node", "run", "taxi", node, "--run", "one", "--env", object_environment(node))
        assert (finished.code, finished.errors) == (0, "")
    assert folders.communicate(timeout=TIME_LIMIT_SECONDS)[1] == ""
    assert project.store
    store = Store.open_sqlite(tmp_path / "metadata.sqlite")
    assert store
    by_node = digests(store, "one", in_bucket)
    assert by_node == digests(project.store, project.run_ids()[0], in_folder)
    assert by_node["ExampleGen examples"]

    # On an empty machine, every node is cached and nothing is downloaded.
    again = project.millrace("run", "taxi", "--to", NODES[-1], "--env", object_environment("other"))
    assert again.code == 0, again.errors
    [second, _] = store.run_ids("taxi")
    assert states(second) == dict.fromkeys(NODES, "CACHED")
    assert not list((tmp_path / "other").rglob("*.gz"))

    object_server.remove(f"{root.removeprefix('s3://')}/taxi/StatisticsGen")
    after = project.millrace("run", "taxi", "--to", NODES[-1], "--env", object_environment("ExampleGen"))
    assert after.code == 0, after.errors
    third = store.run_ids("taxi")[0]
    assert states(third) == {"ExampleGen": "CACHED", "StatisticsGen": "COMPLETE"}
    assert digests(store, third, in_bucket) == by_node
