"""What the metadata store holds of a push: the custom properties of a PushedModel, by name.

pushed               1 or 0
pushed_destination   the version's folder; not where nothing was pushed
pushed_version       its number, as text
pushed_digest        one SHA-256 for all its files
pushed_time          when it appeared, ISO 8601, UTC
not_pushed_reason    only where nothing was pushed
withdrawn_version    only where the reason is a rollback: the version that holds the model and can be restored
current_model        the folder of the model's artifact
current_model_id     its id
rolled_back_from     only of a rollback: the version that was served before it
restored_version     only of a rollback: the version whose content it pushed again

The first three are TFX's names for its Pusher, `current_model` and its id TFX's names for its Evaluator.
"""

from __future__ import annotations

from pathlib import Path

from components.pusher.manifest import Manifest, Origin

NOT_BLESSED = "the Evaluator did not bless the model"
NOT_SERVABLE = "the InfraValidator did not bless the model"

Properties = dict[str, str | int]


def pushed(path: Path, manifest: Manifest) -> Properties:
    """The properties of a version that was pushed to `path`."""
    found: Properties = {
        "pushed": 1,
        "pushed_destination": str(path),
        "pushed_version": str(manifest.version),
        "pushed_digest": manifest.digest,
        "pushed_time": manifest.pushed.isoformat(),
        "current_model": manifest.origin.model_uri,
        "current_model_id": manifest.origin.model_id,
    }
    if manifest.rollback:
        found["rolled_back_from"] = manifest.rollback.rolled_back_from
        found["restored_version"] = manifest.rollback.restored_version
    return found


def not_pushed(origin: Origin, reason: str, withdrawn_version: int | None = None) -> Properties:
    """The properties of a push that did not happen."""
    withdrawn: Properties = {} if withdrawn_version is None else {"withdrawn_version": withdrawn_version}
    return withdrawn | {
        "pushed": 0,
        "not_pushed_reason": reason,
        "current_model": origin.model_uri,
        "current_model_id": origin.model_id,
    }
