"""What a node's result depends on besides its input artifacts, as its execution records it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any

PROPERTY = "fingerprint"
"""The execution property that holds a node's fingerprint, as JSON."""


@dataclass(frozen=True)
class Fingerprint:
    """Everything besides the input artifacts that a node's result depends on.

    Attributes:
        settings: The node's own settings, by dotted key.
        code: A digest for each of the project's source files that the node imports, directly or not.
        packages: The versions of the installed packages that do the node's work.
        files: A content digest for each file that the node reads from outside the pipeline; images have one for each
            folder.
    """

    settings: dict[str, Any] = field(default_factory=dict)
    code: dict[str, str] = field(default_factory=dict)
    packages: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """Canonical JSON: equal fingerprints give equal texts."""
        return json.dumps(asdict(self), sort_keys=True)

    @property
    def digest(self) -> str:
        """A short digest of the whole."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:16]

    @property
    def code_digest(self) -> str:
        """A short digest of all the code that a node run used."""
        return hashlib.sha256(json.dumps(self.code, sort_keys=True).encode()).hexdigest()[:16]

    @classmethod
    def from_json(cls, text: str) -> Fingerprint:
        """The inverse of `to_json`."""
        return cls(**json.loads(text))
