"""The metadata store of an environment: the one place where the pipeline and the commands open it."""

from __future__ import annotations

import functools
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import ml_metadata as mlmd
from ml_metadata.proto import metadata_store_pb2 as mlmd_pb2

from components.errors import SettingsError, StoreError
from metadata import connection as connections
from metadata.queries import Queries
from pipeline import lock
from pipeline.environment import Environment, ServerSettings
from pipeline.objects import mirror

Answer = TypeVar("Answer")

LOST = (StoreError, connections.UnreachableError, *connections.LOST)
"""What a store raises that is away now and may come back."""

FIXES = (
    (r"password|authentication|access denied", "Check the user, and the password in the variable {password_env}."),
    (r"translate host|unknown .*server host|name or service", "Check `host`: no such name is known here."),
    (r"unknown database|database .* does not exist", "Make the database, or check its name; it is not made for you."),
    (r"permission denied|command denied", "Let the user make and write tables in it: GRANT ALL, on its schema too."),
    (r"schema.?version|upgrade", "It was made by another version of ML Metadata: upgrade it, or use a database anew."),
    (
        r"connect|timeout|no answer|initialized|refused|unreachable",
        "Start the server, or check host, port and firewall.",
    ),
)
"""What can be done about a server's words."""


def connection(environment: Environment) -> mlmd_pb2.ConnectionConfig:
    """How to reach the store, with the password from its environment variable: never print or write it.

    Raises:
        SettingsError: The variable is not set.
    """
    settings = environment.metadata_store
    server = settings.postgresql or settings.mysql
    if server is None:
        return connections.sqlite(environment.metadata_path)
    make = connections.postgresql if settings.postgresql else connections.mysql
    return make(server.host, server.port, server.database, server.user, _password(server))


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


def opened(environment: Environment) -> Queries | None:
    """The store, for reading; None while there is none yet.

    Its artifacts are come by through `metadata.files`; what its records say goes on may do so by its locks.

    Raises:
        SettingsError: The password's variable is not set.
        StoreError: Its server cannot be reached or refuses us.
    """
    mirror.use(environment)
    with _translated(environment):
        return Queries.open(connection(environment), functools.partial(lock.goes_on, environment))


def writable(environment: Environment) -> mlmd.MetadataStore:
    """The store, for writing; made if need be.

    Raises:
        SettingsError: The password's variable is not set.
        StoreError: Its server cannot be reached or refuses us.
    """
    mirror.use(environment)
    with _translated(environment):
        return connections.connect(connection(environment))


def exists(environment: Environment) -> bool:
    """Whether there is a store to write to; a server's is made when it is first opened."""
    return environment.metadata_store.sqlite is None or environment.metadata_path.exists()


def prepare(environment: Environment) -> None:
    """Makes the folder of an SQLite file."""
    if environment.metadata_store.sqlite is not None:
        environment.metadata_path.parent.mkdir(parents=True, exist_ok=True)


def described(environment: Environment) -> str:
    """The store in a few words, without a password."""
    settings = environment.metadata_store
    if settings.postgresql:
        return f"PostgreSQL {_place(settings.postgresql)}"
    if settings.mysql:
        return f"MySQL {_place(settings.mysql)}"
    return f"SQLite {environment.metadata_path}"


def _place(server: ServerSettings) -> str:
    return f"{server.database} on {server.host}:{server.port}"


def patiently(environment: Environment, ask: Callable[[], Answer]) -> Answer:
    """An answer from a store whose server may be away for some seconds.

    Raises:
        StoreError: It did not come back in time.
    """
    patience = connections.PATIENCE_SECONDS if environment.metadata_store.sqlite is None else 0
    deadline = time.monotonic() + patience
    while True:
        try:
            return ask()
        except LOST:
            if time.monotonic() >= deadline:
                raise
            time.sleep(connections.PAUSE_SECONDS)


@contextmanager
def _translated(environment: Environment) -> Iterator[None]:
    try:
        yield
    except connections.UnreachableError as error:
        raise _unreachable(environment, error) from error


def _unreachable(environment: Environment, error: connections.UnreachableError) -> StoreError:
    settings = environment.metadata_store
    server = settings.postgresql or settings.mysql
    said = str(error)
    fix = next((text for pattern, text in FIXES if re.search(pattern, said, re.IGNORECASE)), "See the server's log.")
    variable = server.password_env if server and server.password_env else "that `password_env` names"
    return StoreError(
        f"the metadata store cannot be used: {described(environment)}: {said}.", fix.format(password_env=variable)
    )
