"""TFRecord files, read one record after the other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tensorflow.python.lib.io.tf_record import tf_record_random_reader


def read(file: Path) -> Iterator[bytes]:
    """The records of an uncompressed file; `tf.data` would build a graph first, which takes many times longer.

    Raises:
        tf.errors.OpError: The file is not there or broken.
    """
    reader, offset = tf_record_random_reader(str(file)), 0
    while True:
        try:
            record, offset = reader.read(offset)
        except IndexError:
            return
        yield record
