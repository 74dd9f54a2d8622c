"""Which engine a node's data work is done by: by columns in this process, or by Beam."""

from __future__ import annotations

from collections.abc import Sequence

RUNNER_OPTION = "--runner="


class NotColumnar(Exception):  # noqa: N818 (no error: the work is then done on Beam)
    """Something is asked for that the work by columns does not know; its text ends a sentence."""


def is_columnar(beam_pipeline_args: Sequence[str]) -> bool:
    """Whether the environment leaves the data work to this process: it does where it names no runner of Beam.

    Args:
        beam_pipeline_args: The options of a node's Beam pipelines.
    """
    return not any(str(argument).startswith(RUNNER_OPTION) for argument in beam_pipeline_args)
