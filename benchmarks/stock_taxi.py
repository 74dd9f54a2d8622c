"""TFX's own taxi example, as it ships, in a given folder: `python -m benchmarks.stock_taxi FOLDER [DATA]`.

Two things differ from how the example starts itself, and make it run at all or make it faster: tf_keras (set by the
caller; under Keras 3 the example crashes), and Beam in memory, since on two cores the example's worker processes take
longer at this size.
"""

from __future__ import annotations

import sys
from pathlib import Path

from absl import logging
from tfx.examples.chicago_taxi_pipeline import taxi_pipeline_native_keras as example

NAME = "stock"


def main(folder: Path, data: str | None = None) -> None:
    """Runs the example; it uses its cache from an earlier run in the same folder.

    Args:
        folder: All that it writes.
        data: The folder of the CSV file; by default the example's own.
    """
    logging.set_verbosity(logging.INFO)
    shipped = Path(example.__file__).parent
    pipeline = example._create_pipeline(
        pipeline_name=NAME,
        pipeline_root=str(folder / "pipelines"),
        data_root=data or str(shipped / "data" / "simple"),
        module_file=str(shipped / "taxi_utils_native_keras.py"),
        serving_model_dir=str(folder / "serving"),
        metadata_path=str(folder / "metadata.sqlite"),
        beam_pipeline_args=["--direct_running_mode=in_memory"],
    )
    example.BeamDagRunner().run(pipeline)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
