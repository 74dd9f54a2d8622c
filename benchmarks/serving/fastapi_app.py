"""A server without a model server: FastAPI around the Keras model `MODEL`; `CALL` is `call` or `predict`."""

from __future__ import annotations

import os

import numpy as np
import numpy.typing as npt
import tf_keras
from fastapi import FastAPI
from pydantic import BaseModel

app = FastAPI()
model = tf_keras.models.load_model(os.environ["MODEL"])
predicts = os.environ["CALL"] == "predict"


def _outputs(inputs: npt.NDArray[np.float32]) -> list[list[float]]:
    outputs = model.predict(inputs, verbose=0) if predicts else model(inputs).numpy()
    return list(outputs.tolist())


# The first call traces, which takes seconds.
_outputs(np.zeros((1, 16), np.float32))


class Rows(BaseModel):
    """The request: rows of 16 numbers."""

    instances: list[list[float]]


@app.post("/predict")
async def predict(rows: Rows) -> dict[str, list[list[float]]]:
    """Answers in the event loop, which is fastest for a model of this size."""
    return {"predictions": _outputs(np.array(rows.instances, np.float32))}


@app.get("/livez")
async def livez() -> str:
    """Reports that the server is up."""
    return "ok"
