"""Prints predictions to standard output: a table for people, CSV or JSON lines for programs."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click
from rich.console import Console
from rich.table import Table

Write = Callable[[Sequence[Mapping[str, Any]]], None]


def writer(form: str) -> Write:
    """Creates a writer that prints batches of rows as they come.

    A list of one value is printed as that value.

    Args:
        form: `table`, `csv` or `json`.
    """
    writers: dict[str, Callable[[], Write]] = {"table": _Table, "csv": _Csv, "json": _Json}
    return writers[form]()


class _Json:
    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        click.echo("".join(f"{json.dumps(_shown(row), ensure_ascii=False)}\n" for row in rows), nl=False)


class _Csv:
    def __init__(self) -> None:
        self._begun = False

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        text = io.StringIO()
        lines = csv.writer(text, lineterminator="\n")
        if not self._begun:
            lines.writerow(rows[0])
            self._begun = True
        lines.writerows([_cell(value) for value in _shown(row).values()] for row in rows)
        click.echo(text.getvalue(), nl=False)


class _Table:
    """Prints one table in parts: each batch has the column widths of the first."""

    def __init__(self) -> None:
        self._console = Console()
        self._count = 0
        self._widths: list[int] = []

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        cells = [
            [f"{number:,}", *(_cell(_rounded(value)) for value in _shown(row).values())]
            for number, row in enumerate(rows, start=self._count + 1)
        ]
        names = ["row", *rows[0]]
        first = not self._count
        if first:
            self._widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
        table = Table(box=None, show_header=first, pad_edge=False)
        for name, width in zip(names, self._widths, strict=True):
            table.add_column(name, justify="right", min_width=width, overflow="fold")
        for line in cells:
            table.add_row(*line)
        self._console.print(table, highlight=False)
        self._count += len(rows)


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _plain(value) for name, value in row.items()}


def _plain(value: Any) -> Any:
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    return {"b64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def _rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [_rounded(entry) for entry in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def _cell(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
