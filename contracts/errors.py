"""The error tree.

    MillraceError            anything that a user can mend; `str(error)` is all they need to read
    ├── SettingsError        a recipe, an environment or a flag is wrong; found before anything runs
    ├── DataError            the data cannot be read or do not fit
    │   ├── BadRowError      one row is malformed
    │   └── AnomalyError     the data do not match their schema; from the data gate, or found before it
    ├── TrainingError        training cannot begin or went wrong
    ├── ExportError          a trained model cannot be written in the requested form
    ├── PushError            a version cannot be written to the serving folder, or there is none to go back to
    ├── BusyError            another process is already doing it; try again
    ├── StoreError           the metadata store cannot be reached, or refuses us
    ├── BrokenStoreError     the metadata store's file is damaged; the message says how to go back to its copy
    ├── ClusterError         the cluster that schedules runs cannot be reached, or refuses us
    ├── EngineError          the engine of the data work cannot be reached; it may come back
    └── NodeError            a node failed; carries which node, where its log is and how to go on

Exceptions of TFX, Beam and TensorFlow are translated into this tree where they reach us, and kept as `__cause__`.
"""

from __future__ import annotations

from typing import Any


class MillraceError(Exception):
    """What went wrong, in one message: what was received, what was expected, and how to mend it.

    Args:
        what: The fault, with the received and the expected value.
        fix: What the user can do about it, as an imperative sentence.
    """

    def __init__(self, what: str, fix: str | None = None) -> None:
        super().__init__(what if fix is None else f"{what}\n{fix}")
        self.what = what
        self.fix = fix

    def __reduce__(self) -> tuple[object, ...]:
        # Beam pickles exceptions between workers; the default would call __init__ with the joined message.
        return type(self), (self.what, self.fix)


class SettingsError(MillraceError):
    """A recipe, an environment or a flag is wrong; raised before anything runs."""


class DataError(MillraceError):
    """The data cannot be read or do not fit."""


class BadRowError(DataError):
    """One row is malformed; the message names file, line and column."""


class AnomalyError(DataError):
    """The data do not match their schema.

    Args:
        what: The fault.
        fix: What the user can do about it.
        findings: The anomalies as in the gate's verdict; carried here because a failed node's artifacts are removed.
    """

    def __init__(self, what: str, fix: str | None = None, findings: list[dict[str, Any]] | None = None) -> None:
        super().__init__(what, fix)
        self.findings = findings or []

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.what, self.fix, self.findings)


class TrainingError(MillraceError):
    """Training cannot begin or went wrong."""


class ExportError(MillraceError):
    """A trained model cannot be written in the requested form."""


class PushError(MillraceError):
    """A version cannot be written to the serving folder, or there is none to go back to."""


class BusyError(MillraceError):
    """Another process is already doing this; it can be tried again."""


class StoreError(MillraceError):
    """The metadata store cannot be reached, or refuses us; a server's may come back."""


class BrokenStoreError(MillraceError):
    """The metadata store's file is damaged."""


class ClusterError(MillraceError):
    """The cluster that schedules runs cannot be reached, or refuses us."""


class EngineError(MillraceError):
    """The engine of the data work, such as Flink, cannot be reached; it may come back."""


class NodeError(MillraceError):
    """A node failed; the message names the node, its log and the command that resumes.

    Args:
        what: The node, what it said, and where its log is.
        fix: The command that resumes.
        kind: The name of the error's class in the node, if known.
    """

    def __init__(self, what: str, fix: str | None = None, kind: str | None = None) -> None:
        super().__init__(what, fix)
        self.kind = kind

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.what, self.fix, self.kind)
