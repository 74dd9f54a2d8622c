"""The files of a recipe, written from a plan: short, and the user's from then on."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from contracts import atomic
from pipeline.commands.new.columns import Use
from pipeline.commands.new.plan import Plan
from pipeline.commands.new.task import Task

WIDTH = 120
MOST_COUNTED = 20
"""Classes that are listed with their rows."""

INDENT = 8
SEEN_FRACTION = 0.8
"""A column may be missing in more rows than now, but not in far more: that would be a lost column."""

GROUPS: dict[Use, str] = {
    "number": "Numbers",
    "date": "Dates",
    "category": "Categories",
    "hash": "Hashes",
    "text": "Texts",
}
"""What declares the features of columns, by use."""


def write(plan: Plan, root: Path) -> list[Path]:
    """Writes recipes/NAME and schemas/NAME; returns the files, relative to the project's folder.

    Args:
        plan: What to write.
        root: The project's folder.
    """
    recipe, schema = Path("recipes", plan.name), Path("schemas", plan.name)
    texts = {
        recipe / "recipe.yaml": recipe_yaml(plan),
        recipe / "features.py": features_py(plan),
        recipe / "model.py": model_py(plan),
        recipe / "README.md": readme(plan),
        schema / "schema.pbtxt": schema_pbtxt(plan),
    }
    for path, text in texts.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        atomic.write_text(root / path, text)
    return list(texts)


def recipe_yaml(plan: Plan) -> str:
    """The text of recipe.yaml."""
    splits = {} if "split_by_time" in plan.data else {"splits": {"train": 2, "eval": 1}}
    data = {"path": plan.data["path"]} | splits | plan.data
    # Intervals of metrics are known for one label a row, not for several.
    evaluator: dict[str, Any] = {"judge_by": "points" if plan.task.several else "evidence", "metrics": plan.metrics}
    if plan.task.classes:
        evaluator = {"prediction_key": "probability" if plan.task.is_binary else "probabilities"} | evaluator
    return "\n".join(
        [
            f"# Made by: {plan.command}",
            "# Yours from now on. README.md beside this file says what the data hold, and where the bars are from.",
            "",
            f"description: {_flow(question(plan))}",
            "",
            _section("data", data),
            "",
            f"label: {_flow(plan.task.label)}",
            "",
            "trainer:",
            f"  epochs: {plan.epochs}",
            f"  batch_size: {plan.batch_size}",
            "  # At this size a step is overhead, not arithmetic: nothing to gain from less precision.",
            "  precision: float32",
            "  optimization: {learning_rate_schedule: {decay: cosine}}",
            "  # model: best compares trees, network and linear on training rows; or name one. See docs/own-data.md.",
            *textwrap.indent(_section("params", plan.params), "  ").splitlines(),
            "",
            _section("evaluator", evaluator),
            "",
        ]
    )


def question(plan: Plan) -> str:
    """What is predicted, in a sentence."""
    label = plan.task.label
    source = Path(str(plan.data["path"])).name
    used = len(plan.columns) - len(plan.named("left out"))
    return f"{label} ({plan.task.name}), from {used} column{'' if used == 1 else 's'} of {source}"


def _section(name: str, values: dict[str, Any]) -> str:
    lines = [f"{name}:"]
    for key, value in values.items():
        if isinstance(value, dict) and any(isinstance(inner, dict) for inner in value.values()):
            lines += [f"  {_flow(key)}:", *(f"    {_flow(inner)}: {_flow(value[inner])}" for inner in value)]
        else:
            lines.append(f"  {_flow(key)}: {_flow(value)}")
    return "\n".join(lines)


def _flow(value: object) -> str:
    """A value as YAML on one line."""
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10**6)
    return text.removesuffix("\n").removesuffix("\n...")


def features_py(plan: Plan) -> str:
    """The text of features.py."""
    label_class = "SeveralOf" if plan.task.several else "Classes" if plan.task.classes else "Amount"
    used = {use: plan.named(use) for use in GROUPS if plan.named(use)}
    imported = sorted([*(GROUPS[use] for use in used), "transformed"], key=lambda name: (name.islower(), name))
    declared = "".join(
        f"    {GROUPS[use]}({_listed(names, 4 + len(GROUPS[use]) + 2)}),\n" for use, names in used.items()
    )
    return f'''"""The features of {plan.name}, by column; made by `millrace new`, and yours from now on."""

from __future__ import annotations

from collections.abc import Mapping

import tensorflow as tf

from components.tabular.features import {", ".join(imported)}
from components.tabular.labels import {label_class}
from components.tabular.tensors import RawFeature

LABEL = {_label(plan)}

COLUMNS = [
{declared}]


def preprocessing_fn(inputs: Mapping[str, RawFeature]) -> dict[str, tf.Tensor]:
    """Returns the model's features and the label; see `transformed`."""
    return transformed(inputs, COLUMNS, LABEL)
'''


def _label(plan: Plan) -> str:
    task = plan.task
    if task.classes:
        kind, option = "Classes", ", ignore_case=True" if task.ignore_case else ""
        if task.several:
            kind, option = "SeveralOf", f", separator={_quoted(task.separator)}" if task.separator else ""
        before = len(f"LABEL = {kind}({_quoted(task.label)}, {option})")
        return f"{kind}({_quoted(task.label)}, {_listed(task.classes, before)}{option})"
    return f"Amount({_quoted(task.label)}, mean={task.mean:.4g}, deviation={task.deviation:.4g})"


def _listed(names: Sequence[str], before: int) -> str:
    """A list of texts as Python, broken into lines if it is too long for one after `before` characters."""
    one_line = f"[{', '.join(map(_quoted, names))}]"
    if before + len(one_line) + len("),") <= WIDTH:
        return one_line
    lines = [""]
    for name in map(_quoted, names):
        if len(lines[-1]) + len(name) + len("  ,") > WIDTH - INDENT:
            lines.append("")
        lines[-1] += f" {name}," if lines[-1] else f"{name},"
    return "\n".join(["[", *(" " * INDENT + line for line in lines), "    ]"])


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def model_py(plan: Plan) -> str:
    """The text of model.py."""
    names = "\nCLASS_NAMES = LABEL.names\n" if plan.task.classes else ""
    return f'''"""The model of {plan.name}, the default for tables; made by `millrace new`, and yours from now on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf
import tf_keras

from components.tabular import competition, models
from components.trainer.features import Feature
from components.trainer.own_training import Training

from .features import LABEL
{names}

def build_model(features: Sequence[Feature], params: Mapping[str, Any]) -> tf_keras.Model:
    """Returns the uncompiled model; `params` is `trainer.params`, see `models.Params`."""
    return models.build_model(features, LABEL, params)


def compile_arguments(params: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments of `model.compile`: optimizer, loss and metrics."""
    return models.compile_arguments(LABEL, params)


def train(training: Training) -> tf_keras.Model:
    """Returns the best of several kinds of model, as training rows show; see `competition.train`."""
    return competition.train(training, LABEL)


def serving_outputs(outputs: Mapping[str, tf.Tensor], params: Mapping[str, Any]) -> dict[str, tf.Tensor]:
    """Returns what is served; see `models.serving_outputs`."""
    return models.serving_outputs(outputs, LABEL, params)
'''


def schema_pbtxt(plan: Plan) -> str:
    """The text of schema.pbtxt: every column's type, and in how many rows it must be."""
    parts = [
        f"# What a row of {plan.name} looks like. New data that differ stop the run: `millrace schema propose`.",
        "",
        'default_environment: "TRAINING"',
        'default_environment: "SERVING"',
    ]
    rows = plan.train_rows + plan.eval_rows
    fraction = None if plan.task.several else "1.0"
    parts += _feature(
        plan.task.label, plan.kinds[plan.task.label], fraction, "the label: requests do not have it", False
    )
    for found in plan.columns:
        if found.use == "left out":
            parts += _feature(found.name, plan.kinds[found.name], None, f"not learned from: {found.why}", False)
        else:
            least = SEEN_FRACTION * (1 - found.missing / (rows + plan.task.missing))
            parts += _feature(found.name, plan.kinds[found.name], f"{least:.2g}", found.holds, True)
    return "\n".join(parts) + "\n"


def _feature(name: str, kind: str, fraction: str | None, comment: str, is_served: bool) -> list[str]:
    lines = ["", "feature {", f"  name: {_quoted(name)}  # {' '.join(comment.split())}", f"  type: {kind}"]
    if fraction is not None:
        lines += [f"  presence {{ min_fraction: {fraction} min_count: 1 }}", "  value_count { min: 1 max: 1 }"]
    if not is_served:
        lines.append('  not_in_environment: "SERVING"')
    return [*lines, "}"]


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

`trainer.params.model: best` lets gradient-boosted trees, a network, a linear model and the mean of these compete. Each
learns from a part of the training rows and is judged on another, by {plan.measured[0].name}; the evaluation rows stay
out of it. The best is trained on all training rows; where nothing separates it from the mean, the mean is. By how much
it was ahead, and the interval of that, stand in the Trainer's log and in the report of each run. `model: trees`,
`network`, `linear` or `average` trains that one without a competition.

## The bars, and why these

A linear model (scikit-learn's), cross-validated on training rows alone, with its 95 % interval. The bar is the worst
value that a model as good as that one would have on the evaluation rows, 39 times in 40.

| Metric | Linear model | Bar |
|---|---|---|
{figures}
"""


def counts(task: Task) -> str:
    """Each class with its rows, of many the most frequent; empty for an amount."""
    each = [f"{name}: {rows:,}" for name, rows in zip(task.classes, task.counts, strict=True)]
    if len(each) > MOST_COUNTED:
        order = sorted(range(len(each)), key=lambda number: -task.counts[number])
        each = [*(each[number] for number in order[:MOST_COUNTED]), f"and {len(each) - MOST_COUNTED:,} more"]
    return ", ".join(each)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
