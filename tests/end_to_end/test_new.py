"""A newcomer's own file becomes a served model by three commands: text labels, dates, gaps, no code."""

from __future__ import annotations

import datetime
import json
import random
import subprocess
import sys
from pathlib import Path

import yaml

from contracts.competition import COMPETITION_FILE, Competition
from serving import in_process

SOURCE = Path(__file__).resolve().parents[2]
LOAD_SECONDS = 120.0
HEADER = "id;seen;island;bill;depth;zip;copy;species\n"


def write_birds(path: Path) -> None:
    """Writes 360 rows, of which 9 have no label; bill and depth tell the species of nearly all others."""
    draw = random.Random(1)  # noqa: S311
    sizes = {"Adelie": (38, 18), "Gentoo": (47, 15)}
    lines = []
    for row in range(360):
        species = draw.choice(list(sizes))
        bill, depth = (f"{draw.gauss(mean, 2.0):.1f}".replace(".", ",") for mean in sizes[species])
        known = species if row % 40 else ""
        cells = [
            f"N{row}",
            f"{draw.randint(1, 28):02d}.{draw.randint(1, 12):02d}.2021",
            draw.choice(["Biscoe", "Dream"]),
            bill if row % 30 else "NA",
            depth,
            f"0{draw.randint(1, 9)}00",
            known.upper(),
            known,
        ]
        lines.append(";".join(cells))
    path.write_text(HEADER + "\n".join(lines) + "\n", encoding="latin-1")


def millrace(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a command in a user's folder."""
    code = f"import sys; sys.path.insert(0, {str(SOURCE)!r}); from pipeline.cli import main; main()"
    command = [sys.executable, "-W", "ignore", "-c", code, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)


def test_a_file_becomes_a_served_model(tmp_path: Path) -> None:
    write_birds(tmp_path / "birds.csv")
    misspelt = millrace(tmp_path, "new", "birds", "birds.csv", "--label", "specis")
    assert misspelt.returncode == 2
    assert "has no column 'specis'. Did you mean species?" in misspelt.stderr

    made = millrace(tmp_path, "new", "birds", "birds.csv", "--label", "species")
    assert made.returncode == 0, made.stderr
    assert "9 rows have no species" in made.stdout
    assert "copy alone tells species" in made.stdout
    settings = yaml.safe_load((tmp_path / "recipes" / "birds" / "recipe.yaml").read_text(encoding="utf-8"))
    assert settings["data"] == {
        "path": "birds.csv",
        "delimiter": ";",
        "na_values": ["NA"],
        "decimal": ",",
        "columns": {"seen": "date %d.%m.%Y", "zip": "text"},
        "on_missing_label": "set_aside",
        "split_by_time": {"column": "seen", "starts": {"eval": datetime.date(2021, 10, 12)}},
    }
    features = (tmp_path / "recipes" / "birds" / "features.py").read_text(encoding="utf-8")
    assert 'Numbers(["bill", "depth"])' in features
    assert '"copy"' not in features

    again = millrace(tmp_path, "new", "birds", "birds.csv", "--label", "species")
    assert again.returncode == 2
    assert "exists already" in again.stderr

    ran = millrace(tmp_path, "run", "birds")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    [folder] = (tmp_path / "artifacts" / "pipelines" / "birds" / "Trainer" / "model_run").iterdir()
    compared = Competition.model_validate_json((folder / COMPETITION_FILE).read_text(encoding="utf-8"))
    assert {candidate.name for candidate in compared.candidates} == {"trees", "network", "linear", "average"}
    assert compared.metric == "AUC"
    [log] = (tmp_path / "artifacts" / "logs").glob("birds-*")
    assert f"Trained: {compared.winner}, {compared.why}" in (log / "Trainer.log").read_text(encoding="utf-8")
    assert "training rows that they did not learn from" in (log / "report.html").read_text(encoding="utf-8")

    [version] = (tmp_path / "artifacts" / "serving" / "birds").iterdir()
    with in_process.serve("birds", version, LOAD_SECONDS) as server:
        rows = [
            {"bill": 38.0, "depth": 18.0, "seen": 1609459200, "island": "Biscoe", "zip": "0100"},
            {"bill": 47.0, "depth": 15.0, "seen": 1609459200, "island": "Nowhere", "zip": ""},
        ]
        body = {"signature_name": "predict", "instances": rows}
        answers = json.loads(server.post("predict", json.dumps(body).encode()))["predictions"]
    assert [answer["class"] for answer in answers] == ["Adelie", "Gentoo"]
    assert answers[0]["probability"][0] < 0.2
    assert answers[1]["probability"][0] > 0.8
