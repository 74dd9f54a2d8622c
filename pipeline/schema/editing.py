"""Edits the text of a schema into that of another, leaving every other character as it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from google.protobuf import text_format
from google.protobuf.descriptor import FieldDescriptor
from tensorflow_metadata.proto.v0 import schema_pb2

from contracts.errors import MillraceError
from contracts.protobuf import is_repeated
from pipeline.schema import syntax
from pipeline.schema.syntax import Block, Field

Edit = tuple[int, int, str]
"""A start, an end, and the text to put between them."""

KEY = "name"
"""The field that identifies repeated messages: features and domains."""

BY_HAND = "Edit the file by hand."


def parse_schema(text: str) -> schema_pb2.Schema:
    """Parses the text of a schema."""
    return text_format.Parse(text, schema_pb2.Schema())


def edit_text(text: str, wanted: schema_pb2.Schema) -> str:
    """The text of `wanted`, in which only the fields that differ are replaced or added.

    Raises:
        MillraceError: The text is written in a way that makes this unsafe.
    """
    changed = _applied(text, list(_Editor(text).message(parse_schema(text), wanted, syntax.parse_fields(text))))
    try:
        same = parse_schema(changed) == wanted
    except text_format.ParseError as error:
        raise MillraceError(f"the schema's text cannot be changed safely: {error}.", BY_HAND) from error
    if not same:
        raise MillraceError("the schema's text cannot be changed safely: it would not mean what was proposed.", BY_HAND)
    return changed


def _applied(text: str, edits: list[Edit]) -> str:
    parts: list[str] = []
    position = 0
    # Sorted by position only, so that insertions at the same position stay in order.
    for start, end, new in sorted(edits, key=lambda edit: edit[:2]):
        parts += [text[position:start], new]
        position = end
    return "".join([*parts, text[position:]])


class _Editor:
    def __init__(self, text: str) -> None:
        self._text = text

    def message(self, old: Any, new: Any, block: Block) -> Iterator[Edit]:
        """The edits that turn `old`, which the block holds, into `new`."""
        differing = [f for f in new.DESCRIPTOR.fields if _value(old, f) != _value(new, f)]
        gone = [f for f in differing if not is_repeated(f) and _is_set(old, f) and not _is_set(new, f)]
        for field in differing:
            if field in gone:
                continue
            if is_repeated(field):
                yield from self._repeated(field, old, new, block)
            elif not _is_set(old, field):
                yield from self._added(field, new, block, gone)
            else:
                # There is only one, because text_format refuses more.
                [written] = block.named(field.name)
                yield from self._replaced(field, old, new, written)
        if gone:
            raise MillraceError(f"{', '.join(f.name for f in gone)} would be removed.", BY_HAND)

    def _replaced(self, field: FieldDescriptor, old: Any, new: Any, written: Field) -> Iterator[Edit]:
        value = getattr(new, field.name)
        if written.block is not None:
            yield from self.message(getattr(old, field.name), value, written.block)
        else:
            yield (*written.value, _rendered(field, value).partition(": ")[2])

    def _added(self, field: FieldDescriptor, new: Any, block: Block, gone: list[FieldDescriptor]) -> Iterator[Edit]:
        rendered = _rendered(field, getattr(new, field.name))
        oneof = field.containing_oneof
        rival = next((f for f in gone if oneof is not None and f.containing_oneof is oneof), None)
        if rival is None:
            yield self._insertion(rendered, block, block.fields[-1:])
            return
        gone.remove(rival)
        [written] = block.named(rival.name)
        yield written.start, written.value[1], rendered

    def _repeated(self, field: FieldDescriptor, old: Any, new: Any, block: Block) -> Iterator[Edit]:
        before, after = list(getattr(old, field.name)), list(getattr(new, field.name))
        written = block.named(field.name)
        listed = next((entry for entry in written if entry.elements is not None), None)
        if listed is not None or len(written) != len(before):
            raise MillraceError(f"{field.name} is written as a list in brackets.", "Write one a line, or edit by hand.")
        if field.message_type is None:
            yield from self._values(field, before, after, block, written)
            return
        positions = {getattr(message, KEY): place for place, message in enumerate(before)}
        for message in after:
            place = positions.get(getattr(message, KEY))
            if place is None:
                yield self._insertion(_rendered_block(field, message), block, written[-1:])
            elif before[place] != message:
                inner = written[place].block
                if inner is None:
                    raise MillraceError(f"{field.name} {getattr(message, KEY)} has no braces.", BY_HAND)
                yield from self.message(before[place], message, inner)

    def _values(
        self, field: FieldDescriptor, before: list[Any], after: list[Any], block: Block, written: list[Field]
    ) -> Iterator[Edit]:
        """Inserts new values of a repeated scalar, each after the one that it follows."""
        places = {value: place for place, value in enumerate(before)}
        anchor: list[Field] = []
        for value in after:
            if value in places:
                anchor = [written[places[value]]]
            elif anchor or not written:
                yield self._insertion(_rendered(field, [value]), block, anchor or block.fields[-1:])
            else:
                yield self._insertion_before(_rendered(field, [value]), written[0])

    def _insertion(self, rendered: str, block: Block, anchor: Sequence[Field]) -> Edit:
        """Inserts after the anchor, on a separate line unless the block is written on one line."""
        if not anchor:
            is_file = block.start == 0 and block.end == len(self._text)
            end = block.fields[-1].end if block.fields else block.start
            return (len(self._text), len(self._text), f"{rendered}\n") if is_file else (end, end, f" {rendered} ")
        place = anchor[0]
        line_end = self._line_end(place.end)
        rest = self._text[place.end : line_end].strip()
        if line_end > block.end or (rest and not rest.startswith("#")):
            return place.end, place.end, f" {rendered}"
        indent = self._indent(place.start)
        lines = "".join(f"\n{indent}{line}" for line in rendered.splitlines())
        return line_end, line_end, lines

    def _insertion_before(self, rendered: str, place: Field) -> Edit:
        line_start = self._text.rfind("\n", 0, place.start) + 1
        between = self._text[line_start : place.start]
        separator = f"\n{between}" if not between.strip() else " "
        return place.start, place.start, f"{rendered}{separator}"

    def _line_end(self, position: int) -> int:
        end = self._text.find("\n", position)
        return len(self._text) if end < 0 else end

    def _indent(self, position: int) -> str:
        line = self._text[self._text.rfind("\n", 0, position) + 1 : position]
        return line[: len(line) - len(line.lstrip())]


def _is_set(message: Any, field: FieldDescriptor) -> bool:
    return bool(message.HasField(field.name))


def _value(message: Any, field: FieldDescriptor) -> Any:
    if is_repeated(field):
        return list(getattr(message, field.name))
    return getattr(message, field.name) if _is_set(message, field) else None


def _rendered(field: FieldDescriptor, value: Any) -> str:
    """`name: value` or `name { … }` on one line."""
    holder = field.containing_type._concrete_class()
    if is_repeated(field):
        getattr(holder, field.name).extend(value)
    elif field.message_type is not None:
        getattr(holder, field.name).CopyFrom(value)
    else:
        setattr(holder, field.name, value)
    return str(text_format.MessageToString(holder, as_one_line=True, as_utf8=True)).strip()


def _rendered_block(field: FieldDescriptor, message: Any) -> str:
    """A message with one line per field, in the order in which people read it."""
    first = {KEY: 0, "type": 1, "presence": 2}
    ordered = sorted(message.ListFields(), key=lambda entry: (first.get(entry[0].name, 3), entry[0].number))
    lines = "".join(f"  {_rendered(inner, value)}\n" for inner, value in ordered)
    return f"{field.name} {{\n{lines}}}"
