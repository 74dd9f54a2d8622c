"""The Examples artifact."""

from __future__ import annotations

import os

from tfx.types import Artifact, artifact_utils


def split_files(examples: Artifact, split: str) -> list[str]:
    """The TFRecord files of a split of an Examples artifact, sorted."""
    folder = artifact_utils.get_split_uri([examples], split)
    return sorted(os.path.join(folder, name) for name in os.listdir(folder))


def split_pattern(examples: Artifact, split: str) -> str:
    """The TFRecord files of a split of an Examples artifact, as one pattern.

    Beam reads a pattern in one stage with what follows, and shares its files out among workers; of a list of files it
    makes as many sources, flattens them, and holds every row in between.
    """
    return os.path.join(artifact_utils.get_split_uri([examples], split), "*")
