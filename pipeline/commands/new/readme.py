"""The README of a recipe: what was found, which model, and where the bars are from."""

from __future__ import annotations

from pathlib import Path

from pipeline.commands.new.plan import Plan
from pipeline.commands.new.task import Task

MOST_COUNTED = 20
"""Classes that are listed with their rows."""

LINEAR = """\
A linear model (scikit-learn's), cross-validated on training rows alone, with its 95 % interval. The bar is the worst
value that a model as good as that one would have on the evaluation rows, 39 times in 40."""

CONSTANT = """\
The same answer for every row: the most frequent class, each class with its share of the training rows, or their mean.
Who has learned anything does better; raise the bars to what the first runs show."""

COMPETITION = """\
`trainer.params.model: best` lets gradient-boosted trees, a network, a linear model and the mean of these compete. Each
learns from a part of the training rows and is judged on another, by {metric}; the evaluation rows stay
out of it. The best is trained on all training rows; where nothing separates it from the mean, the mean is. By how much
it was ahead, and the interval of that, stand in the Trainer's log and in the report of each run. `model: trees`,
`network`, `linear` or `average` trains that one without a competition."""

NETWORK = """\
An ensemble of small networks, which learns all names at once. `trainer.params` has its settings: docs/own-data.md."""

IMAGES = """\
A residual network (He et al., 2015, arXiv:1512.03385) sees the images in the size that `features.py` gives them; a
larger size sees more, and takes longer by its square. `trainer.params` has its `image_depth` (8; or 14, 20, …) and
`image_channels` (16), and how training images are varied. With other columns beside the image, an ensemble of small
networks learns from both. Networks trained on other images: `recipes/cifar10/backbone.py`."""


def readme(plan: Plan) -> str:
    """The text of README.md."""
    task = plan.task
    counted = counts(task)
    target = counted or f"mean {task.mean:.4g}, standard deviation {task.deviation:.4g}"
    columns = "\n".join(
        f"| {_cell(found.name)} | {found.holds} | {found.missing:,} | {found.use} | {_cell(found.why)} |"
        for found in plan.columns
    )
    notes = "\n".join(f"- {note}" for note in plan.notes)
    figures = "\n".join(
        f"| {m.name} | {m.value:.4f} ± {1.96 * m.deviation:.4f} | {plan.metrics[m.name].get('lower_bound', '')}"
        f"{plan.metrics[m.name].get('upper_bound', '')} |"
        for m in plan.measured
    )
    return f"""# {plan.name}: {question(plan)}

Made by `{plan.command}`; yours from now on.

```
millrace run {plan.name}
millrace serve {plan.name}
```

## The label

`{task.label}`, {task.name} ({target}). Rows: {plan.train_rows:,} to learn from, {plan.eval_rows:,} to be judged on, \
{task.missing:,} without a label.

## What was found

| Column | Holds | Missing | Becomes | |
|---|---|---|---|---|
{columns}
{chr(10) + notes + chr(10) if notes else ""}
## The model

{_model(plan)}

## The bars, and why these

{CONSTANT if plan.measured[0].constant else LINEAR}

| Metric | {"The same answer" if plan.measured[0].constant else "Linear model"} | Bar |
|---|---|---|
{figures}
"""


def _model(plan: Plan) -> str:
    if plan.image:
        return IMAGES
    return COMPETITION.format(metric=plan.measured[0].name) if plan.competes else NETWORK


def counts(task: Task) -> str:
    """Each class with its rows, of many the most frequent; empty for an amount."""
    each = [f"{name}: {rows:,}" for name, rows in zip(task.classes, task.counts, strict=True)]
    if len(each) > MOST_COUNTED:
        order = sorted(range(len(each)), key=lambda number: -task.counts[number])
        each = [*(each[number] for number in order[:MOST_COUNTED]), f"and {len(each) - MOST_COUNTED:,} more"]
    return ", ".join(each)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def question(plan: Plan) -> str:
    """What is predicted, in a sentence."""
    label = plan.task.label
    source = Path(str(plan.data["path"])).name
    used = len(plan.columns) - len(plan.named("left out"))
    return f"{label} ({plan.task.name}), from {used} column{'' if used == 1 else 's'} of {source}"
