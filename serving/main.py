"""Starts the server: `python -m serving.main --port=8500 --rest_api_port=8501 --model_name=… --model_base_path=…`.

The flags are TensorFlow Serving's, in its syntax: `--flag=value`.
"""

from __future__ import annotations

import ctypes
import gc
import inspect
import logging
import os
import platform
import re
import sys
import warnings
from pathlib import Path
from typing import Any, get_args

import click
from pydantic import ValidationError

from serving.errors import ServingError
from serving.settings import ServerSettings

# Options from glibc's malloc.h, each with the environment variable by which the user may set it.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
ALLOCATOR_SETTINGS = {
    "MALLOC_ARENA_MAX": (M_ARENA_MAX, 2),
    "MALLOC_MMAP_THRESHOLD_": (M_MMAP_THRESHOLD, 256 * 1024),
    "MALLOC_TRIM_THRESHOLD_": (M_TRIM_THRESHOLD, 256 * 1024),
}


def give_back_memory() -> list[str]:
    """Makes glibc's allocator return free memory to the system; call it before threads are started.

    By default it keeps freed memory in an arena per thread, so that a server with many threads and requests of many
    sizes grows for days.

    Returns:
        The names of the settings made: none that the environment already sets, none with another C library.
    """
    if platform.libc_ver()[0] != "glibc":
        return []
    libc = ctypes.CDLL(None)
    return [
        name
        for name, (option, value) in ALLOCATOR_SETTINGS.items()
        if name not in os.environ and libc.mallopt(option, value) == 1
    ]


EXIT_ERROR = 1
EXIT_SETTINGS = 2
LOG_FORMAT = "%(asctime)s %(levelname).1s %(message)s"


def flags() -> list[click.Option]:
    """An option for each server setting, with its default and documentation."""
    help_texts = _documentation()
    return [_flag(name, field, help_texts[name]) for name, field in ServerSettings.model_fields.items()]


def serve(**options: Any) -> None:
    """Serve SavedModels with TensorFlow Serving's REST and gRPC protocols.

    Each model has a folder (--model_base_path) with a folder for each version, named by its number. New versions are
    picked up as they appear. Stop with Ctrl-C.
    """
    try:
        settings = ServerSettings(**options)
    except ValidationError as error:
        for problem in error.errors():
            flag = "--" + ".".join(map(str, problem["loc"]))
            _print_error(f"received {flag}={problem['input']}, expected {_expected(problem)}")
        sys.exit(EXIT_SETTINGS)
    _configure_logging()
    give_back_memory()
    click.echo("Loading …", err=True)
    try:
        _run(settings)
    except ServingError as error:
        _print_error(error.message)
        sys.exit(EXIT_ERROR)


def _configure_logging() -> None:
    """Shows only our log: what TensorFlow and Google's libraries log at start-up helps nobody who serves a model."""
    logging.basicConfig(level=logging.INFO, format=LOG_FORMAT)
    logging.getLogger("tensorflow").setLevel(logging.WARNING)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    warnings.filterwarnings("ignore", category=FutureWarning, module="google")


def _run(settings: ServerSettings) -> None:
    # TensorFlow takes seconds to import: only once the flags are known to be right.
    from serving import greeting
    from serving.server import Server

    server = Server(settings)
    server.stop_on_signals()
    server.start()
    # Objects that live as long as the process need not be scanned at every garbage collection.
    gc.freeze()
    for line in greeting.lines(server):
        click.echo(line)
    if server.wait():
        click.echo("Stopped: every request in flight was answered.")
        return
    _print_error(f"some requests were not answered within {settings.drain_timeout_seconds:g} seconds of being stopped")
    sys.stdout.flush()
    sys.stderr.flush()
    # At exit Python waits for every pool thread, and one that computes for ever cannot be stopped.
    os._exit(EXIT_ERROR)


def _flag(name: str, field: Any, help_text: str) -> click.Option:
    kinds = [kind for kind in (get_args(field.annotation) or (field.annotation,)) if kind is not type(None)]
    kind = kinds[0]
    if kind is bool:
        # Like TensorFlow's flags: --flag, --flag=true and --flag=false.
        return click.Option(
            [f"--{name}"],
            type=click.BOOL,
            is_flag=False,
            flag_value=True,
            default=field.default,
            show_default=True,
            help=help_text,
        )
    types = {Path: click.Path(path_type=Path), int: click.INT, float: click.FLOAT, str: click.STRING}
    show_default = field.default not in (None, "")
    return click.Option(
        [f"--{name}"], type=types[kind], default=field.default, show_default=show_default, help=help_text
    )


def _documentation() -> dict[str, str]:
    """Setting -> its documentation in ServerSettings' docstring, as one line."""
    attributes = inspect.cleandoc(ServerSettings.__doc__ or "").partition("Attributes:\n")[2]
    entries = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", attributes, re.MULTILINE)
    return {name: re.sub(r"\s+", " ", text) for name, text in entries}


def _expected(problem: Any) -> str:
    """What pydantic expected, without its `Input should be`."""
    return str(problem["msg"]).removeprefix("Input should be ")


def _print_error(message: str) -> None:
    click.secho("error: ", fg="red", bold=True, nl=False, err=True)
    click.echo(message, err=True)


main = click.Command(
    "serve",
    callback=serve,
    params=[*flags()],
    help=serve.__doc__,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)

if __name__ == "__main__":
    main()
