"""Makes what `test_other_set.py` compares: a run of the taxi recipe, and what its model answers.

    PYTHONPATH=.:tests:tests/end_to_end python tests/end_to_end/other_set.py FOLDER

runs it in a copy of the project that it puts into the folder.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

# Its start-up lines help nobody here.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf
from copied_project import Project
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

from serving import in_process

ANSWERS = "answers.json"
LOAD_SECONDS = 120.0


def answers(project: Project) -> dict[str, list[float]]:
    """What the server of this set answers to the warm-up requests of the project's newest model, by output."""
    model = project.folder / "artifacts" / "serving" / "taxi" / project.pushed_versions()[-1]
    path = model / "assets.extra" / "tf_serving_warmup_requests"
    logs = [PredictionLog.FromString(record.numpy()) for record in tf.data.TFRecordDataset(str(path))]
    by_output: dict[str, list[float]] = {}
    with in_process.serve("taxi", model, LOAD_SECONDS) as server:
        for log in logs:
            if log.WhichOneof("log_type") != "predict_log":
                continue
            for name, output in server.call("Predict", log.predict_log.request).outputs.items():
                values = tf.make_ndarray(output)
                if values.dtype.kind == "f":
                    by_output.setdefault(name, []).extend(values.ravel().tolist())
    return by_output


def main(folder: Path) -> None:
    """Runs the recipe, and writes the answers beside the project's sources."""
    project = Project(folder)
    ran = project.millrace("run", "taxi")
    if ran.code:
        sys.exit(ran.output + ran.errors)
    (folder / ANSWERS).write_text(json.dumps(answers(project)), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
