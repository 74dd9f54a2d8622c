"""The artifact types of the ingest."""

from tfx.types import artifact


class RejectedRows(artifact.Artifact):
    """The rows, or image files, that `data.on_bad_row: set_aside` set aside.

    Files `rejected-00000-of-0000N.jsonl`, one for each shard that has such rows; each line an object with `file`,
    `line` (from 1), `column` (or null), `reason` and `raw`. Bytes of `raw` that are no UTF-8 stand as lone surrogates:
    encode with the error handler `surrogateescape` to get the bytes back. Of an image file, `line` and `raw` are null.
    """

    TYPE_NAME = "RejectedRows"
    PROPERTIES = {"num_rows": artifact.Property(type=artifact.PropertyType.INT)}  # noqa: RUF012  # TFX's own form
