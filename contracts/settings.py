"""The base class of all typed settings: a typo is an error, never a default."""

from pydantic import BaseModel, ConfigDict


class Settings(BaseModel):
    """Immutable settings that refuse unknown keys.

    Each room under `components/` defines the settings of its own node; `pipeline/plan/recipe.py` composes them.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)
