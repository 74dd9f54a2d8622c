"""Parses protocol buffer text format with its fields' positions, which `google.protobuf.text_format` does not keep."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from contracts.errors import MillraceError

_TOKEN = re.compile(
    r"""(?P<blank>\s+|\#[^\n]*)|(?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')"""
    r"""|(?P<word>[\w.+\-/]+)|(?P<mark>[{}<>\[\]:;,])"""
)
_CLOSING = {"{": "}", "<": ">"}


@dataclass(frozen=True)
class Token:
    """A word, quoted text or punctuation mark, with its position in the text."""

    kind: str
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Field:
    """A field as written.

    Attributes:
        name: Its name.
        start: Where its name begins.
        end: The position after its value and any separator.
        value: Where its value begins and ends, braces or brackets included.
        block: The contents of its braces, if it is a message.
        elements: Where each element begins and ends, if it is a list in brackets.
    """

    name: str
    start: int
    end: int
    value: tuple[int, int]
    block: Block | None = None
    elements: tuple[tuple[int, int], ...] | None = None


@dataclass(frozen=True)
class Block:
    """The fields of a message.

    Attributes:
        start: The position after the opening brace.
        end: The position of the closing brace.
        fields: In the order in which they are written.
    """

    start: int
    end: int
    fields: tuple[Field, ...]

    def named(self, name: str) -> list[Field]:
        """The fields with that name."""
        return [field for field in self.fields if field.name == name]


def parse_fields(text: str) -> Block:
    """Parses the positions of all fields in a text that `text_format` can parse.

    Raises:
        MillraceError: There is something else where a field is expected.
    """
    return _Parser(text).block(len(text), None, 0)


def tokens(text: str) -> Iterator[Token]:
    """Yields the tokens of the text, without whitespace and comments."""
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _unexpected(text, position)
        if match.lastgroup != "blank":
            yield Token(str(match.lastgroup), match.group(), match.start(), match.end())
        position = match.end()


def _unexpected(text: str, position: int) -> MillraceError:
    line = text.count("\n", 0, position) + 1
    return MillraceError(f"line {line}: received {text[position : position + 20]!r}, expected a field.")


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(tokens(text))
        self._next = 0

    def block(self, end: int, closing: str | None, start: int) -> Block:
        fields: list[Field] = []
        while self._next < len(self._tokens) and self._tokens[self._next].text != closing:
            fields.append(self._field())
        if closing is not None:
            end = self._take().start
        return Block(start, end, tuple(fields))

    def _field(self) -> Field:
        name = self._take()
        if name.text == "[":
            while self._take().text != "]":
                pass
        elif name.kind != "word":
            raise _unexpected(self._text, name.start)
        if self._peek() == ":":
            self._take()
        start = self._tokens[self._next].start if self._peek() else name.end
        block, elements = self._value()
        value = (start, self._tokens[self._next - 1].end)
        if self._peek() in {";", ","}:
            self._take()
        return Field(name.text, name.start, self._tokens[self._next - 1].end, value, block, elements)

    def _value(self) -> tuple[Block | None, tuple[tuple[int, int], ...] | None]:
        first = self._take()
        if first.text in _CLOSING:
            return self.block(len(self._text), _CLOSING[first.text], first.end), None
        if first.text == "[":
            return None, tuple(self._elements())
        if first.kind == "text":
            while self._peek()[:1] in {'"', "'"}:
                self._take()
        elif first.text == "-":
            self._take()
        elif first.kind != "word":
            raise _unexpected(self._text, first.start)
        return None, None

    def _elements(self) -> Iterator[tuple[int, int]]:
        while self._peek() != "]":
            start = self._tokens[self._next].start if self._peek() else len(self._text)
            self._value()
            yield start, self._tokens[self._next - 1].end
            if self._peek() == ",":
                self._take()
        self._take()

    def _peek(self) -> str:
        return self._tokens[self._next].text if self._next < len(self._tokens) else ""

    def _take(self) -> Token:
        if self._next == len(self._tokens):
            raise _unexpected(self._text, len(self._text))
        self._next += 1
        return self._tokens[self._next - 1]
