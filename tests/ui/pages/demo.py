"""A page with every kind of chart, over data that looks real, made from one seed."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import replace

from ui import rendering
from ui.charts import (
    Bars,
    Bins,
    Chart,
    Counts,
    Graph,
    Histogram,
    Interval,
    Intervals,
    Line,
    Lines,
    Node,
    Parallel,
    Point,
    Scatter,
)
from ui.parts import (
    Bullets,
    Column,
    Commands,
    Details,
    Facts,
    Group,
    Heading,
    Part,
    Section,
    Table,
    Text,
    Verbatim,
)
from ui.texts import bold, line, link, listed, seconds, state

COMPANIES = (
    "Taxi Affiliation Services",
    "Blue Ribbon Taxi Association of the City of Chicago",
    "Dispatch Taxi",
    "",
)
DIMENSIONS = ["recipe", "trainer.epochs", "trainer.learning_rate", "AUC", "accuracy", "duration"]
NODES = [
    ("DataGate", "done", 0.2, ""),
    ("CsvExampleGen", "cached", None, "nothing it depends on changed"),
    ("Trainer", "failed", 26.1, "loss is not a number after step 312; a smaller learning rate may help"),
    ("Evaluator", "waiting", None, "waits for Trainer"),
    ("Transform", "done", 100.0, "features.py changed"),
]


def histogram(title: str, centre: float = 12.0, bins: int = 24) -> Histogram:
    """Train and eval, a little apart."""

    def counts(shift: float, total: int) -> list[tuple[float, float, float]]:
        width = 36 / bins
        middles = [(index + 0.5) * width for index in range(bins)]
        heights = [math.exp(-(((middle - centre - shift) / 7) ** 2)) for middle in middles]
        return [
            (index * width, (index + 1) * width, round(total * height / sum(heights)))
            for index, height in enumerate(heights)
        ]

    return Histogram(title, [Bins("train", counts(0, 10_012)), Bins("eval", counts(1.5, 4_990))], x="dollars")


def bars() -> Bars:
    """Companies, one with a long name, one with none."""
    train = [(name, count) for name, count in zip(COMPANIES, (5210, 2890, 911, 120), strict=True)]
    evaluation = [(name, count) for name, count in zip(COMPANIES[:3], (2500, 1501, 402), strict=True)]
    return Bars("company", [Counts("train", train, 10_012), Counts("eval", evaluation, 4_990)])


def curves() -> Lines:
    """A loss over ten epochs; validation lacks its third value."""
    return Lines(
        "Loss while training",
        [
            Line("train", [(epoch, 0.3 + math.exp(-epoch / 2)) for epoch in range(1, 11)]),
            Line(
                "validation",
                [(epoch, None if epoch == 3 else 0.36 + math.exp(-epoch / 2.2)) for epoch in range(1, 11)],
                dashed=True,
            ),
        ],
        x="epoch",
        y="loss",
    )


def calibration() -> Lines:
    """Predicted against observed."""
    points = [(step / 10, round((step / 10) ** 1.25, 4)) for step in range(1, 10)]
    return Lines("Calibration", [Line("model", points)], x="predicted", y="observed", diagonal=True, markers=True)


def intervals() -> Intervals:
    """Slices, large and small, one without a value."""
    rows = [
        Interval("overall", 4_990, 0.931, 0.925, 0.937),
        Interval("trip_start_hour: 3", 212, 0.87, 0.80, 0.93, "#slice-3"),
        Interval("payment_type: Cash, in the hours between midnight and morning", 1_204, 0.71, 0.66, 0.77, "#cash"),
        Interval("company: Blue", 4, None, None, None),
        Interval("payment_type: Prcard", 31, 0.99, None, None),
    ]
    return Intervals("AUC by slice", rows, x="AUC", reference=0.931, reference_label="overall")


def graph() -> Graph:
    """The taxi pipeline."""
    node = [
        Node("gen", "CsvExampleGen", "3.1 s", "cached", href="#gen"),
        Node("stats", "StatisticsGen", "2.2 s", "done", href="#stats"),
        Node("schema", "Schema", "v12", shape="artifact", href="#schema"),
        Node("validate", "ExampleValidator", "0.4 s", "done", href="#validate"),
        Node("transform", "Transform", "6.0 s", "done", href="#transform"),
        Node("trainer", "Trainer", "26.1 s", "failed", href="#trainer", current=True),
        Node("evaluator", "Evaluator", "", "waiting", href="#evaluator"),
        Node("pusher", "Pusher", "", "waiting"),
    ]
    edges = [
        ("gen", "stats"),
        ("stats", "validate"),
        ("schema", "validate"),
        ("gen", "transform"),
        ("schema", "transform"),
    ]
    edges += [("transform", "trainer"), ("schema", "trainer"), ("gen", "evaluator"), ("trainer", "evaluator")]
    return Graph("The nodes of this run", node, [*edges, ("evaluator", "pusher"), ("trainer", "pusher")])


def pipeline() -> Graph:
    """A pipeline that is too long to be drawn from left to right on a page of 1,200 pixels."""
    names = ["CsvExampleGen", "StatisticsGen", "ExampleValidator", "DataGate", "Transform", "Trainer", "Evaluator"]
    names += ["InfraValidator", "Pusher"]
    nodes = [Node(name, name, "12.3 s", "done") for name in names]
    return Graph("A pipeline of nine nodes", nodes, list(itertools.pairwise(names)))


def chain(count: int) -> Graph:
    """So many nodes, three abreast."""
    nodes = [Node(str(index), f"Artifact {index}", "Examples", "", "artifact", f"#a{index}") for index in range(count)]
    edges = [(str(index), str(index + 1 + index % 3)) for index in range(count) if index + 1 + index % 3 < count]
    return Graph(f"Lineage of {count} artifacts", nodes, edges)


def runs(count: int) -> list[Point]:
    """Runs of two recipes; every ninth without metrics."""
    draw = random.Random(7)  # noqa: S311 (no secret)
    points = []
    for index in range(count):
        rate, epochs = draw.choice([0.1, 0.01, 0.001]), draw.randint(1, 10)
        auc = None if index % 9 == 4 else round(0.8 + epochs / 100 + draw.random() / 20, 4)
        accuracy = None if auc is None else round(auc - 0.1 + draw.random() / 50, 4)
        recipe = draw.choice(["taxi", "cifar10"])
        values = dict(
            zip(DIMENSIONS, (recipe, epochs, rate, auc, accuracy, round(20 + draw.random() * 40, 1)), strict=True)
        )
        points.append(Point(f"20260412-{index:06}", values, f"/run/{index}", recipe))
    return points


def sections(count: int) -> list[tuple[str, str, list[Chart]]]:
    """All charts, by section: `(id, title, charts)`."""
    points = runs(count)
    one = Histogram("one value only", [Bins("train", [(3.0, 3.0, 10_012)])])
    large = Histogram("large and near", [Bins("train", [(17_031_010_100, 17_031_980_100, 3)])])
    alone = Lines("One epoch", [Line("train", [(1, 0.5)])], "epoch", "loss")
    fares = [histogram("fare"), histogram("trip_miles", 4), histogram("tips", 20)]
    uneven = Histogram("bins of differing widths", [Bins("train", [(0, 1, 50), (1, 10, 40), (10, 100, 10)])])
    return [
        ("graph", "Pipeline", [graph(), pipeline()]),
        ("lineage", "Lineage", [chain(100)]),
        ("statistics", "Statistics", [*fares, one, uneven, large, Histogram("nothing", [])]),
        ("names", "Names", [bars(), Bars("none", [Counts("train", [], 0)])]),
        (
            "curves",
            "Curves",
            [curves(), alone, calibration()],
        ),
        ("slices", "Slices", [intervals()]),
        ("compare", "Runs", [Scatter("Runs over two dimensions", points, DIMENSIONS, "duration", "AUC")]),
        ("parallel", "Parallel", [Parallel("Runs over all dimensions", points, DIMENSIONS)]),
    ]


def tables() -> list[Part]:
    """A table that sorts and filters, and one with shades."""
    why = "Why, and what there is to say about a node in a long text that wraps"
    nodes = [
        Column("Node", lambda row: row[0]),
        Column("State", lambda row: state(row[1])),
        Column("Took", lambda row: seconds(row[2]), "number", lambda row: row[2]),
        Column(why, lambda row: row[3]),
    ]
    confusion = [
        Column("", lambda row: row[0]),
        Column("tip", lambda row: row[1], "number", heat=lambda row: row[2]),
        Column("no tip", lambda row: row[3], "number", heat=lambda row: row[4]),
    ]
    rows = [("tip", "1,012", 0.81, "201", 0.19), ("no tip", "44", 0.02, "3,711", 1.0)]
    return [
        Table("Nodes", NODES, nodes, sortable=True, filter="nodes"),
        Heading("Confusion"),
        Table("Confusion", rows, confusion),
    ]


def texts() -> list[Part]:
    """Everything but tables and charts."""
    words = ["done", "cached", "failed", "running", "waiting", "stopped", "blessed"]
    command = "millrace run taxi --set trainer.epochs=3 --set trainer.batch_size=256 --set trainer.learning_rate=0.001"
    return [
        Commands([("Again", command)], compact=True),
        Verbatim("@@ trainer @@\n-epochs: 3\n+epochs: 5\n batch_size: 40", look="diff"),
        Text(link("to what is closed", "#inner")),
        Details("Closed", [Group([Text("What is inside.")], id="inner")]),
        Text("The schema was inferred.", "note"),
        Text("company: 3 new values.", "warning"),
        Text("Trainer: loss is not a number.", "error"),
        Text(listed(map(state, words), " ")),
        Bullets([line(bold(word), " A card.") for word in ("One", "Two", "Three")], "cards"),
    ]


def rendered(runs: int, *, inline: bool) -> str:
    """The page, over so many runs."""

    def drawn(charts: list[Chart]) -> list[Part]:
        shown = [replace(chart, caption="as of now") for chart in charts]
        return [Group(shown, "grid")] if len(shown) > 2 else shown

    facts = [
        ("Recipe", "taxi"),
        ("Started", "2026-04-12 10:15:00"),
        ("Took", "1 min 12 s"),
        ("Rows", "15,002"),
        ("AUC", "0.9312"),
        ("Pushed", "version 7"),
    ]
    return rendering.render(
        "page.html",
        inline=inline,
        title="All charts",
        header="taxi · run 20260412-101500",
        heading="Run 20260412-101500",
        shown=[
            Section("facts", "Facts", [Facts(facts)]),
            *(Section(id, title, drawn(charts)) for id, title, charts in sections(runs)),
            Section("tables", "Tables", tables()),
            Section("texts", "Texts", texts()),
        ],
        footer="Millrace 0.1.0",
    )
