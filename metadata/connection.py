"""Connections to the metadata store: an SQLite file, PostgreSQL or MySQL, through ML Metadata's own client."""

from __future__ import annotations

import os
import random
import re
import socket
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import ml_metadata as mlmd
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from ml_metadata.proto import metadata_store_pb2 as mlmd_pb2

from contracts.protobuf import is_repeated
from metadata import probe

PATIENCE_SECONDS = 60.0
"""How long a process that writes a run waits for a store that is away."""

PAUSE_SECONDS = 1.0
CONNECT_SECONDS = 5
INITIAL_TRIES = 5
CALL_TRIES = 3

BUSY = (mlmd.errors.FailedPreconditionError, mlmd.errors.AbortedError, mlmd.errors.NotFoundError)
"""What ML Metadata raises while another process creates the store, or locks it for longer than the client retries."""

LOST = (mlmd.errors.InternalError, mlmd.errors.UnavailableError)
"""What it raises when the connection to a server broke; the same client never reconnects."""


OTHER_VERSION = re.compile(r"MLMD database version (\d+) is (?:older|greater) than library version (\d+)")
"""How ML Metadata refuses a store whose tables are those of another version, server's or file."""


class UnreachableError(Exception):
    """A store cannot be opened; the message is the reason that the server, the system or ML Metadata gave."""


def sqlite(path: Path, read_only: bool = False) -> mlmd_pb2.ConnectionConfig:
    """A connection to an SQLite file."""
    connection = mlmd_pb2.ConnectionConfig()
    connection.sqlite.filename_uri = str(path)
    modes = mlmd_pb2.SqliteMetadataSourceConfig
    connection.sqlite.connection_mode = modes.READONLY if read_only else modes.READWRITE_OPENCREATE
    return connection


def postgresql(host: str, port: int, database: str, user: str, password: str) -> mlmd_pb2.ConnectionConfig:
    """A connection to a PostgreSQL database, which must exist; a `host` that is a folder holds its Unix socket."""
    connection = mlmd_pb2.ConnectionConfig()
    # ML Metadata pastes these into libpq's connection string: without quotes, what follows a space in a password would
    # be taken for a setting and be named in libpq's error.
    settings = connection.postgresql
    settings.host, settings.port, settings.dbname = _quoted(host), str(port), _quoted(database)
    settings.user, settings.password = _quoted(user), _quoted(password)
    settings.skip_db_creation = True
    return connection


def mysql(host: str, port: int, database: str, user: str, password: str) -> mlmd_pb2.ConnectionConfig:
    """A connection to a MySQL database, which must exist."""
    connection = mlmd_pb2.ConnectionConfig()
    settings = connection.mysql
    settings.host, settings.port, settings.database = host, port, database
    settings.user, settings.password = user, password
    settings.skip_db_creation = True
    return connection


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def is_server(connection: mlmd_pb2.ConnectionConfig) -> bool:
    """Whether the store is on a server, not in a file."""
    return not connection.HasField("sqlite")


def connect(connection: mlmd_pb2.ConnectionConfig) -> mlmd.MetadataStore:
    """Opens a store, creating its tables if it has none yet.

    Raises:
        UnreachableError: A server cannot be reached, refuses us, or holds something else; or the tables of a server or
            file are those of another version of ML Metadata.
    """
    if is_server(connection):
        return ServerStore(connection)
    try:
        return mlmd.MetadataStore(connection)
    except RuntimeError as error:
        if OTHER_VERSION.search(str(error)):
            raise UnreachableError(_explained(str(error))) from error
        raise


def _explained(reason: str) -> str:
    """The reason; for a store of another version of ML Metadata, what was found and what is expected."""
    versions = OTHER_VERSION.search(reason)
    if versions is None:
        return reason
    return f"its tables are of schema version {versions[1]}, and ML Metadata {mlmd.__version__} expects {versions[2]}"


def _limit_waiting() -> None:
    # ML Metadata lets us set libpq's timeout only through the environment; the default waits minutes for a dead host.
    os.environ.setdefault("PGCONNECT_TIMEOUT", str(CONNECT_SECONDS))


def _reach(host: str, port: int) -> None:
    """Checks that the server can be reached: for MySQL, ML Metadata has no timeout of its own and gives no reason."""
    if host == "localhost":
        # MySQL's client uses its socket file instead.
        return
    try:
        socket.create_connection((host, port), timeout=CONNECT_SECONDS).close()
    except OSError as error:
        raise UnreachableError(f"could not connect to server {host}:{port}: {error.strerror or error}") from error


class ServerStore(mlmd.MetadataStore):  # type: ignore[misc]
    """ML Metadata's client for a server, which reopens a lost connection and can store backslashes in PostgreSQL.

    An interrupted call is repeated. Each call is one transaction, which the server rolls back when its client is gone,
    so a call takes effect twice only if the connection breaks between the server's commit and its response.
    """

    patience_seconds = 0.0

    def __init__(self, config: mlmd_pb2.ConnectionConfig, enable_upgrade_migration: bool = False) -> None:
        _limit_waiting()
        deadline = time.monotonic() + self.patience_seconds
        while True:
            try:
                if config.HasField("mysql"):
                    _reach(config.mysql.host, config.mysql.port)
                self._open(config, enable_upgrade_migration)
            except UnreachableError:
                if time.monotonic() >= deadline:
                    raise
            except RuntimeError as error:
                if time.monotonic() >= deadline:
                    # Not as a RuntimeError, which TFX would retry ten times.
                    raise UnreachableError(_explained(probe.reason(config) or str(error))) from error
            else:
                return
            time.sleep(PAUSE_SECONDS)

    def _open(self, config: mlmd_pb2.ConnectionConfig, enable_upgrade_migration: bool) -> None:
        """Opens the store; tries again if another process creates the tables at the same time, for one then fails."""
        for _ in range(INITIAL_TRIES - 1):
            try:
                super().__init__(config, enable_upgrade_migration)
            except RuntimeError as error:
                if "already exists" not in str(error) and "duplicate key" not in str(error):
                    raise
                time.sleep(random.uniform(0.1, PAUSE_SECONDS))  # noqa: S311 - no secret: it spreads the tries
            else:
                return
        super().__init__(config, enable_upgrade_migration)

    def _call_method(self, method_name: str, request: Message, response: Message) -> None:
        for _ in range(CALL_TRIES - 1):
            try:
                super()._call_method(method_name, request, response)
            except LOST:
                # A client has no state but its connection.
                self.__init__(self._config)  # type: ignore[misc]
            else:
                return
        super()._call_method(method_name, request, response)

    def _pywrap_cc_call(self, method: object, request: Message, response: Message) -> None:
        escapes = self._config.HasField("postgresql")
        super()._pywrap_cc_call(method, hide_backslashes(request) if escapes else request, response)
        if escapes:
            show_backslashes(response)


class PatientServerStore(ServerStore):
    """Waits for a server that is down."""

    patience_seconds = PATIENCE_SECONDS


def be_patient(connection: mlmd_pb2.ConnectionConfig) -> None:
    """Makes every client that this process creates from now on, TFX's included, wait for a server that is down."""
    if is_server(connection):
        mlmd.MetadataStore = PatientServerStore


BACKSLASH = "\\"
STAND_IN = "\uf05c"


def hide_backslashes(message: Message) -> Message:
    """The message, or a copy of it with each backslash replaced by the stand-in."""
    if BACKSLASH.encode() not in message.SerializeToString():
        return message
    copied = type(message)()
    copied.CopyFrom(message)
    _replace_texts(copied, BACKSLASH, STAND_IN)
    return copied


def show_backslashes(message: Message) -> None:
    """Puts the backslashes back, in place."""
    if STAND_IN.encode() in message.SerializeToString():
        _replace_texts(message, STAND_IN, BACKSLASH)


def _replace_texts(message: Message, old: str, new: str) -> None:
    for field, value in message.ListFields():
        repeated = is_repeated(field)
        if field.type == field.TYPE_MESSAGE:
            for inner in _messages(field, value) if repeated else [value]:
                _replace_texts(inner, old, new)
        elif field.type == field.TYPE_STRING and repeated:
            value[:] = [text.replace(old, new) for text in value]
        elif field.type == field.TYPE_STRING:
            setattr(message, field.name, value.replace(old, new))


def _messages(field: FieldDescriptor, value: Any) -> Iterable[Message]:
    """The messages in a repeated field or, for a map, among its values."""
    if not field.message_type.GetOptions().map_entry:
        return cast(Iterable[Message], value)
    values = field.message_type.fields_by_name["value"]
    return value.values() if values.type == values.TYPE_MESSAGE else ()
