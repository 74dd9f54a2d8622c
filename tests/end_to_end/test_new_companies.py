"""Anomalies in correct data: three new companies stop the run; they are added to the schema, and the run succeeds."""

from __future__ import annotations

import csv
from pathlib import Path

import tfx
from copied_project import Project

TRIPS = Path(tfx.__file__).parent / "examples" / "chicago_taxi_pipeline" / "data" / "simple" / "data.csv"
SCHEMA = "schemas/taxi/schema.pbtxt"
NEW = {"Blue Cab": 20, "Green Cab": 15, "Zebra Cab": 6}
RUN = ("run", "taxi", "--set", "data.path=trips.csv", "--to", "DataGate")


def closed_list_of_companies(project: Project, companies: list[str]) -> None:
    """Gives `company` a domain, as in a recipe that learns a vector for each company."""
    project.edit(SCHEMA, '  name: "company"', '  name: "company"\n  domain: "company"')
    values = "".join(f'  value: "{company}"\n' for company in companies)
    with (project.folder / SCHEMA).open("a", encoding="utf-8") as file:
        file.write(f'\n# Known companies.\nstring_domain {{\n  name: "company"\n{values}}}\n')


def write_trips(path: Path, trips: list[dict[str, str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, trips[0])
        writer.writeheader()
        writer.writerows(trips)


def test_new_companies_from_the_gate_to_the_next_good_run(project: Project) -> None:
    with TRIPS.open(encoding="utf-8", newline="") as file:
        trips = list(csv.DictReader(file))[:3000]
    companies = sorted({trip["company"] for trip in trips} - {""})
    closed_list_of_companies(project, companies)
    names = [name for name, number in NEW.items() for _ in range(number)]
    for trip, name in zip(trips[::50], names, strict=False):
        trip["company"] = name
    write_trips(project.folder / "trips.csv", trips)
    before = (project.folder / SCHEMA).read_text(encoding="utf-8")

    stopped = project.millrace(*RUN)
    assert stopped.code == 1
    assert "  company (train): Examples contain values missing from the schema: " in stopped.errors
    [see] = [line for line in stopped.errors.splitlines() if line.startswith("See what would have to change:  ")]
    assert see.endswith("millrace schema propose taxi")

    proposed = project.millrace("schema", "propose", "taxi")
    assert proposed.code == 0, proposed.errors
    assert proposed.output.splitlines()[0] == (
        "company  3 new values, in 41 rows, e.g. 'Blue Cab' (20 rows), 'Green Cab' (15 rows), 'Zebra Cab' (6 rows)"
    )
    added = [line for line in proposed.output.splitlines() if line.startswith("+ ")]
    assert added == [f'+  value: "{name}"' for name in NEW]

    accepted = project.millrace("schema", "accept", "taxi", "company")
    assert accepted.code == 0, accepted.errors
    lines = (project.folder / SCHEMA).read_text(encoding="utf-8").splitlines()
    new_lines = [f'  value: "{name}"' for name in NEW]
    assert [line for line in lines if line not in new_lines] == before.splitlines()
    assert sorted(set(lines) & set(new_lines)) == new_lines
    assert accepted.output.splitlines()[-1].endswith("millrace run taxi --set data.path=trips.csv --to DataGate")

    finished = project.millrace(*RUN)
    assert finished.code == 0, finished.errors
    assert project.ran() == {"SchemaGen", "ExampleValidator", "DataGate"}
    nothing = project.millrace("schema", "propose", "taxi")
    assert nothing.output == f"The data of {project.run_ids()[0]} ask for no change of the schema.\n"
