"""An environment in use: its name, its settings, and its stores, which are opened when they are needed."""

from __future__ import annotations

import functools
import os
import re
import shlex
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TypeVar

import ml_metadata as mlmd
from ml_metadata.proto import metadata_store_pb2 as mlmd_pb2
from typing_extensions import Self

from contracts.errors import BrokenStoreError, SettingsError, StoreError
from metadata import connection as connections
from metadata import sqlite_file
from metadata.files import Files
from metadata.queries import Queries
from metadata.records import NEVER_ENDED
from pipeline.plan import environment as environments
from pipeline.plan.environment import Environment, ServerSettings
from pipeline.run import lock
from pipeline.run.command_lines import DEFAULT_ENVIRONMENT
from pipeline.run.folder import RunFolder
from pipeline.run.objects.mirror import Mirror

Answer = TypeVar("Answer")

LOST = (StoreError, connections.UnreachableError, *connections.LOST)
"""What a store raises when it is down and may come back."""

FIXES = (
    (r"password|authentication|access denied", "Check the user, and the password in the variable {password_env}."),
    (r"translate host|unknown .*server host|name or service", "Check `host`: no such name is known here."),
    (r"unknown database|database .* does not exist", "Make the database, or check its name; it is not made for you."),
    (r"permission denied|command denied", "Let the user make and write tables in it: GRANT ALL, on its schema too."),
    (
        r"schema version|upgrade",
        "Use the version of TFX that wrote it, or name another store in the environment's `metadata_store`. An older "
        "one can be upgraded, in a copy: ml_metadata.MetadataStore(connection, enable_upgrade_migration=True).",
    ),
    (
        r"connect|timeout|no answer|initialized|refused|unreachable",
        "Start the server, or check host, port and firewall.",
    ),
)
"""What to do about a server's message, by patterns; the first that matches counts."""


class Workplace:
    """Where runs happen, and where their results are read.

    Args:
        environment: Its settings.
        name: What the user calls the environment: a name or a file.
        waits: Whether to wait about a minute for an object store that is down.
    """

    def __init__(self, environment: Environment, name: str = DEFAULT_ENVIRONMENT, waits: bool = False) -> None:
        self.environment = environment
        self.name = name
        self._waits = waits

    @classmethod
    def load(cls, name: str) -> Self:
        """The workplace for the environment with that name, or in that file.

        Raises:
            SettingsError: There is none, or its settings are wrong.
        """
        return cls(environments.load(name), name)

    def patient(self) -> Workplace:
        """The same workplace, but waiting about a minute for an object store that is down."""
        return Workplace(self.environment, self.name, waits=True)

    def run_folder(self, run_id: str) -> RunFolder:
        """A run's log folder."""
        return RunFolder(self.environment.log_root / run_id)

    @cached_property
    def mirror(self) -> Mirror | None:
        """The local mirror of its object root; None if artifacts are in folders."""
        root, settings = self.environment.object_root, self.environment.object_store
        if root is None or settings is None:
            return None
        return Mirror(root, settings, self._waits)

    @property
    def files(self) -> Files:
        """The files of artifacts, in its object root and in local folders."""
        return Files({self.mirror.root.scheme: self.mirror} if self.mirror else {})

    @property
    def connection(self) -> mlmd_pb2.ConnectionConfig:
        """The metadata store's connection, with the password from its environment variable: never print or write it.

        Raises:
            SettingsError: The variable is not set.
        """
        settings = self.environment.metadata_store
        server = settings.postgresql or settings.mysql
        if server is not None:
            make = connections.postgresql if settings.postgresql else connections.mysql
            return make(server.host, server.port, server.database, server.user, _password(server))
        return connections.sqlite(self.environment.metadata_path)

    @property
    def described_store(self) -> str:
        """The metadata store in a few words, without a password."""
        settings = self.environment.metadata_store
        for kind, server in (("PostgreSQL", settings.postgresql), ("MySQL", settings.mysql)):
            if server is not None:
                return f"{kind} {server.database} on {server.host}:{server.port}"
        return f"SQLite {self.environment.metadata_path}"

    def open_store(self) -> Queries | None:
        """Opens the metadata store for reading; None while there is none yet.

        Its records can read their artifacts' files, and see from the runs' locks what is still going on.

        Raises:
            SettingsError: The password's variable is not set.
            StoreError: Its server cannot be reached or refuses us.
            BrokenStoreError: Its file is damaged.
        """
        self.check_file()
        with self._translated():
            return Queries.open(self.connection, functools.partial(lock.goes_on, self.environment), self.files)

    def open_for_writing(self) -> mlmd.MetadataStore:
        """Opens the metadata store for writing, creating it if need be.

        Raises:
            SettingsError: The password's variable is not set.
            StoreError: Its server cannot be reached or refuses us.
            BrokenStoreError: Its file is damaged.
        """
        self.check_file()
        with self._translated():
            return connections.connect(self.connection)

    @property
    def has_store(self) -> bool:
        """Whether there is a metadata store to write to; one on a server is created when it is first opened."""
        return self.environment.metadata_store.sqlite is None or self.environment.metadata_path.exists()

    def prepare_store(self) -> None:
        """Creates the folder of an SQLite store."""
        if self.environment.metadata_store.sqlite is not None:
            self.environment.metadata_path.parent.mkdir(parents=True, exist_ok=True)

    def keep_copy(self) -> None:
        """Copies the file of an SQLite store, to go back to if it is ever damaged.

        Raises:
            BrokenStoreError: It is damaged now.
        """
        if self.environment.metadata_store.sqlite is not None and self.environment.metadata_path.exists():
            self.check_file(whole=True)
            sqlite_file.keep_copy(self.environment.metadata_path)

    def check_file(self, whole: bool = False) -> None:
        """Checks the file of an SQLite store; see `sqlite_file.damage`.

        Raises:
            BrokenStoreError: It is damaged.
        """
        if self.environment.metadata_store.sqlite is not None:
            wrong = sqlite_file.damage(self.environment.metadata_path, whole)
            if wrong is not None:
                raise self._broken(wrong)

    def _broken(self, wrong: str) -> BrokenStoreError:
        path = self.environment.metadata_path
        copy = sqlite_file.copy_of(path)
        what = f"the metadata store {path} is damaged: {wrong}."
        if not copy.exists():
            away = shlex.join(["mv", str(path), f"{path}.damaged"])
            return BrokenStoreError(what, f"There is no copy of it. Without it, all runs begin anew:  {away}")
        # The journal belongs to the damaged file, and SQLite would write its pages into the copy.
        back = shlex.join(["cp", str(copy), str(path)])
        journal = shlex.join(["rm", "-f", f"{path}-journal"])
        return BrokenStoreError(what, f"Go back to what it was at the end of the last run:  {journal} && {back}")

    def patiently(self, ask: Callable[[], Answer]) -> Answer:
        """Queries a metadata store whose server may be down for some seconds.

        Raises:
            StoreError: It did not come back in time.
        """
        patience = connections.PATIENCE_SECONDS if self.environment.metadata_store.sqlite is None else 0
        deadline = time.monotonic() + patience
        while True:
            try:
                return ask()
            except LOST:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(connections.PAUSE_SECONDS)

    def sweep_leftovers(
        self, pipeline: str, run_id: str | None = None, node: str | None = None, still_writing: bool = False
    ) -> None:
        """Cancels what a killed run left unfinished and removes its folders; the caller must hold its lock.

        Args:
            pipeline: The recipe's name.
            run_id: The run; None for the latest one.
            node: One node of it; None for all.
            still_writing: Whether threads of this process, which is about to end, may still be writing; files that they
                write during the removal are left.
        """
        store = self.open_store()
        if store is None:
            return
        unfinished = [
            record
            for chosen in ([run_id] if run_id else store.run_ids(pipeline)[:1])
            for record in store.node_runs(pipeline, chosen).values()
            if record.state in NEVER_ENDED and node in {None, record.node}
        ]
        if not unfinished:
            return
        writable = self.open_for_writing()
        executions = writable.get_executions_by_id([record.id for record in unfinished])
        # Before they are cancelled, because nothing looks again for what a cancelled execution has written.
        for record in unfinished:
            folder = self.environment.pipeline_root / pipeline / record.node
            if self.mirror is not None:
                self.mirror.remove_uploaded(str(folder), record.id)
            for left in [*folder.glob(f"*/{record.id}"), *folder.glob(f".system/executor_execution/{record.id}")]:
                shutil.rmtree(left, ignore_errors=still_writing)
        for execution in executions:
            execution.last_known_state = mlmd_pb2.Execution.CANCELED
        writable.put_executions(executions)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except connections.UnreachableError as error:
            raise self._unreachable(error) from error

    def _unreachable(self, error: connections.UnreachableError) -> StoreError:
        settings = self.environment.metadata_store
        server = settings.postgresql or settings.mysql
        message = str(error)
        fix = next((text for pattern, text in FIXES if re.search(pattern, message, re.IGNORECASE)), None)
        variable = server.password_env if server and server.password_env else "that `password_env` names"
        return StoreError(
            f"the metadata store cannot be used: {self.described_store}: {message}.",
            (fix or "See the server's log.").format(password_env=variable),
        )


def _password(server: ServerSettings) -> str:
    if server.password_env is None:
        return ""
    password = os.environ.get(server.password_env)
    if not password:
        raise SettingsError(
            f"the environment variable {server.password_env} is not set; the metadata store takes the password of "
            f"{server.user} from it.",
            f"Set it: export {server.password_env}=…",
        )
    return password
