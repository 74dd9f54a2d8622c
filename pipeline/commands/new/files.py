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
from pipeline.commands.new.readme import question, readme

WIDTH = 120
FOR_TABLES = (
    "  # At this size a step is overhead, not arithmetic: nothing to gain from less precision.",
    "  precision: float32",
    "  optimization: {learning_rate_schedule: {decay: cosine}}",
)
COMPARED = "  # model: best compares trees, network and linear on training rows; or name one. See docs/own-data.md."

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
            *(_for_images(plan) if plan.image else FOR_TABLES),
            *([COMPARED] if plan.competes else []),
            *textwrap.indent(_section("params", plan.params), "  ").splitlines(),
            "",
            _section("evaluator", evaluator),
            "",
        ]
    )


def _for_images(plan: Plan) -> list[str]:
    warmup = f", warmup_steps: {plan.warmup_steps}" if plan.warmup_steps else ""
    return [
        f"  optimization: {{learning_rate_schedule: {{decay: cosine{warmup}}}}}",
        "  # max_shift, in pixels, and horizontal_flip are how training images are varied. See docs/own-data.md.",
    ]


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
    label_class = (
        "Flags"
        if plan.task.flags
        else "SeveralOf"
        if plan.task.several
        else "Classes"
        if plan.task.classes
        else "Amount"
    )
    used = {use: plan.named(use) for use in GROUPS if plan.named(use)}
    declared = "".join(
        f"    {GROUPS[use]}({_listed(names, 4 + len(GROUPS[use]) + 2)}),\n" for use, names in used.items()
    )
    image = plan.image
    if image and image.size:
        height, width, channels = image.size
        declared += f"    Image({_quoted(image.name)}, height={height}, width={width}, channels={channels}),\n"
    imported = sorted(
        [*(GROUPS[use] for use in used), *(["Image"] if image else []), "transformed"],
        key=lambda name: (name.islower(), name),
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
            kind, option = (
                "Flags" if task.flags else "SeveralOf",
                f", separator={_quoted(task.separator)}" if task.separator else "",
            )
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


TRAIN = '''
def train(training: Training) -> tf_keras.Model:
    """Returns the best of several kinds of model, as training rows show; see `competition.train`."""
    return competition.train(training, LABEL)


'''.lstrip()

AUGMENT = '''
def augment(features: Mapping[str, tf.Tensor], seed: tf.Tensor, params: Mapping[str, Any]) -> dict[str, tf.Tensor]:
    """Returns a training batch with its images varied; see `models.augment`."""
    return models.augment(features, seed, params)


'''.lstrip()


def model_py(plan: Plan) -> str:
    """The text of model.py."""
    names = "\nCLASS_NAMES = LABEL.names\n" if plan.task.classes else ""
    imported = "competition, models" if plan.competes else "models"
    own = AUGMENT if plan.image else TRAIN if plan.competes else ""
    suited = "images" if plan.image else "tables"
    training = "from components.trainer.own_training import Training\n" if plan.competes else ""
    return f'''"""The model of {plan.name}, the default for {suited}; made by `millrace new`, and yours from now on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf
import tf_keras

from components.tabular import {imported}
from components.trainer.features import Feature
{training}
from .features import LABEL
{names}

def build_model(features: Sequence[Feature], params: Mapping[str, Any]) -> tf_keras.Model:
    """Returns the uncompiled model; `params` is `trainer.params`, see `models.Params`."""
    return models.build_model(features, LABEL, params)


def compile_arguments(params: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments of `model.compile`: optimizer, loss and metrics."""
    return models.compile_arguments(LABEL, params)


{own}def serving_outputs(outputs: Mapping[str, tf.Tensor], params: Mapping[str, Any]) -> dict[str, tf.Tensor]:
    """Returns what is served; see `models.serving_outputs`."""
    return models.serving_outputs(outputs, LABEL, params)
'''


IMAGE_FEATURE = """
feature {{
  name: {name}  # an encoded PNG, JPEG, GIF or BMP
  type: BYTES
  image_domain {{ minimum_supported_image_fraction: 1.0 }}
  presence {{ min_fraction: 1.0 min_count: 1 }}
  shape {{ dim {{ size: 1 }} }}
}}"""


def schema_pbtxt(plan: Plan) -> str:
    """The text of schema.pbtxt: every column's type, and in how many rows it must be."""
    parts = [
        f"# What a row of {plan.name} looks like. New data that differ stop the run: `millrace schema propose`.",
        "",
        'default_environment: "TRAINING"',
        'default_environment: "SERVING"',
    ]
    rows = plan.train_rows + plan.eval_rows
    fraction = None if plan.task.several and not plan.task.flags else "1.0"
    for name in plan.task.columns:
        parts += _feature(name, plan.kinds[name], fraction, "the label: requests do not have it", False)
    for found in plan.columns:
        if found.use == "image" and not found.missing:
            parts += IMAGE_FEATURE.format(name=_quoted(found.name)).splitlines()
        elif found.use == "left out":
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
