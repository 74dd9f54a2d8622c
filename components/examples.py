"""The Examples artifact."""

from __future__ import annotations

import os

from tfx.types import Artifact, artifact_utils


def split_files(examples: Artifact, split: str) -> list[str]:
    """The TFRecord files of a split of an Examples artifact, sorted."""
    folder = artifact_utils.get_split_uri([examples], split)
    return sorted(os.path.join(folder, name) for name in os.listdir(folder))
