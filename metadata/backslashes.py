r"""Texts with backslashes in a PostgreSQL store.

ML Metadata 1.16 cannot write them: libpq escapes such a text as ` E'…'`, of which ML Metadata takes the first and the
last character for the quotes. JSON and regular expressions are full of them, so they are written as another character,
U+F05C: the place in Unicode's private use area where Cygwin, too, puts the backslashes of file names.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

BACKSLASH = "\\"
STAND_IN = "\uf05c"


def hidden(message: Message) -> Message:
    """The message, or a copy of it that has the stand-in for each backslash."""
    if BACKSLASH.encode() not in message.SerializeToString():
        return message
    copied = type(message)()
    copied.CopyFrom(message)
    _replace(copied, BACKSLASH, STAND_IN)
    return copied


def show(message: Message) -> None:
    """Puts the backslashes back, in place."""
    if STAND_IN.encode() in message.SerializeToString():
        _replace(message, STAND_IN, BACKSLASH)


def _replace(message: Message, old: str, new: str) -> None:
    for field, value in message.ListFields():
        repeated = field.label == field.LABEL_REPEATED
        if field.type == field.TYPE_MESSAGE:
            for inner in _messages(field, value) if repeated else [value]:
                _replace(inner, old, new)
        elif field.type == field.TYPE_STRING and repeated:
            value[:] = [text.replace(old, new) for text in value]
        elif field.type == field.TYPE_STRING:
            setattr(message, field.name, value.replace(old, new))


def _messages(field: FieldDescriptor, value: Any) -> Iterable[Message]:
    """The messages of a repeated field; of a map those that are its values."""
    if not field.message_type.GetOptions().map_entry:
        return cast(Iterable[Message], value)
    values = field.message_type.fields_by_name["value"]
    return value.values() if values.type == values.TYPE_MESSAGE else ()
