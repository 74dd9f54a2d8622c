"""The typed contents of an environment's `object_store` section, and `s3://` and `gs://` roots."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field

from contracts.settings import Settings

SCHEMES = ("s3", "gs")
ROOT = re.compile(r"(s3|gs)://([a-z0-9][a-z0-9._-]{1,61}[a-z0-9])(?:/(.*))?")
URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
DEFAULT_CACHE = Path("artifacts/objects")


@dataclass(frozen=True)
class ObjectRoot:
    """A folder in a bucket.

    Attributes:
        scheme: `s3` or `gs`.
        bucket: The bucket's name.
        prefix: The prefix of all object names in it, without slashes at either end; may be empty.
    """

    scheme: str
    bucket: str
    prefix: str

    @classmethod
    def parse(cls, text: str) -> ObjectRoot:
        """Parses a URI such as `s3://bucket/prefix`.

        Raises:
            ValueError: It is not such a URI.
        """
        match = ROOT.fullmatch(text)
        prefix = (match[3] or "").strip("/") if match else ""
        if not match or any(part in {"", ".", ".."} for part in prefix.split("/") if prefix):
            raise ValueError(
                f"received {text!r}, expected a folder, s3://bucket/prefix or gs://bucket/prefix, the bucket in small "
                "letters, digits, `.`, `_` and `-`"
            )
        return cls(match[1], match[2], prefix)

    @property
    def path(self) -> Path:
        """Its path below the cache."""
        return Path(self.scheme, self.bucket, self.prefix)

    def __str__(self) -> str:
        """Its URI, without a slash at the end."""
        return f"{self.scheme}://{self.bucket}" + (f"/{self.prefix}" if self.prefix else "")


def _endpoint(value: object) -> object:
    if not isinstance(value, str):
        return value
    parts = urlsplit(value)
    is_server = parts.scheme in {"http", "https"} and parts.hostname and parts.path in {"", "/"}
    if not is_server or parts.query or parts.fragment or parts.username or parts.password:
        raise ValueError(
            # The part before an @ may be a secret.
            f"received {value.rpartition('@')[2]!r}, expected the URL of a server alone, such as http://minio:9000; "
            "keys have no place in a file"
        )
    return value.rstrip("/")


class ObjectStoreSettings(Settings):
    """How to reach the object store of `pipeline_root`; credentials come from the SDK's usual places, never from here.

    Attributes:
        endpoint: The URL of a server that is not Amazon's or Google's, such as http://minio.minio:9000.
        region: The bucket's region, for `s3://` only; the SDK's own default by default.
        cache: The local folder in which this machine, or this pod, processes the artifacts; it may be emptied while
            nothing runs.
    """

    endpoint: Annotated[str | None, BeforeValidator(_endpoint)] = None
    region: str | None = Field(default=None, min_length=1)
    cache: Path = DEFAULT_CACHE
