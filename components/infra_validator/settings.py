"""The settings under `infra_validator:` in a recipe."""

from pydantic import Field

from contracts.settings import Settings


class InfraValidatorSettings(Settings):
    """How a model is tried in the model server's own code before it is pushed.

    Attributes:
        requests: How many rows of the `eval` split are asked, over REST and gRPC, and must be answered as the Evaluator
          saw it. With 0 the model is only loaded and warmed up: for a model that answers by chance.
    """

    requests: int = Field(default=20, ge=0, le=1000)
