"""A table of photographs becomes a served model by three commands, and an exchanged photograph is noticed."""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path

import numpy as np
from PIL import Image
from test_new import LOAD_SECONDS, millrace

from serving import in_process

IMAGES = 120


def write_photo(path: Path, light_above: bool, seed: int) -> None:
    """A small image in color that is light above or below."""
    pixels = np.random.default_rng(seed).integers(0, 60, (12, 10 + seed % 5, 3))
    pixels[:6] += 150 * light_above
    pixels[6:] += 150 * (not light_above)
    path.parent.mkdir(exist_ok=True)
    Image.fromarray(pixels.astype(np.uint8)).save(path)


def test_a_table_of_photographs_becomes_a_served_model(tmp_path: Path) -> None:
    draw = random.Random(0)  # noqa: S311
    lines = ["photo,taken_with,light"]
    for number in range(IMAGES):
        write_photo(tmp_path / "photos" / f"{number}.png", bool(number % 2), number)
        lines.append(f"photos/{number}.png,{draw.choice('ab')},{'above' if number % 2 else 'below'}")
    (tmp_path / "photos.csv").write_text("\n".join([*lines, "photos/lost.png,a,above"]), encoding="utf-8")

    made = millrace(tmp_path, "new", "light", "photos.csv", "--label", "light")
    assert made.returncode == 0, made.stderr
    assert "seen as 12 x 12 pixels in color" in made.stdout
    assert "1 row without a readable image: left out (data.on_bad_row)" in made.stdout

    short = ("--set", "trainer.epochs=12", "--set", "trainer.params.image_channels=8")
    ran = millrace(tmp_path, "run", "light", *short)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "Set aside  1 row" in ran.stdout
    [version] = (tmp_path / "artifacts" / "serving" / "light").iterdir()
    with in_process.serve("light", version, LOAD_SECONDS) as server:
        rows = [
            {
                "photo": {"b64": base64.b64encode((tmp_path / f"photos/{n}.png").read_bytes()).decode()},
                "taken_with": "a",
            }
            for n in (0, 1)
        ]
        body = {"signature_name": "predict", "instances": rows}
        answers = json.loads(server.post("predict", json.dumps(body).encode()))["predictions"]
    assert [answer["class"] for answer in answers] == ["below", "above"]

    assert millrace(tmp_path, "run", "light", *short).stdout.startswith("Up to date")
    write_photo(tmp_path / "photos" / "0.png", False, seed=IMAGES)
    only = millrace(tmp_path, "run", "light", *short, "--to", "ExampleGen")
    assert ["ExampleGen", "done"] in [line.split()[:2] for line in only.stdout.splitlines()]
    why = millrace(tmp_path, "why", "ExampleGen", "--recipe", "light")
    assert "photos" in why.stdout
