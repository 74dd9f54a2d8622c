"""Models of the features that `features.transformed` makes: a default network, and a linear model as the baseline.

The network is an ensemble of small ones that share their encodings of columns and a linear part (cf. Gorishniy et al.,
2024, arXiv:2410.24210): each learns by itself, and what is served is their mean. Numbers are encoded by which part of
their range they are in (Gorishniy et al., 2022, arXiv:2203.05556), an image by a residual network. What trains is the
members' logits; what is served is made of them by `serving_outputs`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import tensorflow as tf
import tf_keras
from pydantic import Field, field_validator

from components.images.network import augmented, check_depth, residual_network
from components.tabular import features as tabular
from components.tabular.labels import Amount, LabelColumn, SeveralOf
from components.tabular.losses import MeanOfMembers, MembersLoss, member_mean
from components.trainer.features import Feature
from contracts.errors import TrainingError
from contracts.settings import Settings


class Params(Settings):
    """The keys of `trainer.params` in recipe.yaml, with their defaults.

    Attributes:
        model: `network`; `linear`: a weight for each number, word and category; with `competition.train` in model.py
            also `trees`, the `average` of all `models`, or `best`: the one of these that training rows show to be best.
        models: The candidates for `best`.
        members: Networks in the ensemble.
        hidden_units: Of each member, layer by layer.
        number_bins: Parts of equally many rows that the range of each number is divided into.
        number_width: What encodes a number: a vector of this length.
        embedding_size: The same for a category, a hash, and a text's mean word.
        dropout: The fraction of units left out in a step of training.
        learning_rate: AdamW's, before any schedule.
        weight_decay: AdamW's: the fraction of a weight, times the learning rate, that each step subtracts.
        class_weights: How much rows of each class count, in the order of the ids; empty: all the same. Probabilities
            are served as if all had counted the same.
        image_depth: Layers of the residual network that encodes an image, 6n + 2.
        image_channels: Channels of its first stage.
        max_shift: The most pixels by which `augment` shifts training images in each direction.
        horizontal_flip: Whether `augment` mirrors half of the training images: right for animals, wrong for digits.
    """

    model: Literal["best", "trees", "network", "linear", "average"] = "network"
    models: tuple[Literal["trees", "network", "linear"], ...] = Field(
        default=("trees", "network", "linear"), min_length=1
    )
    members: int = Field(default=8, ge=1)
    hidden_units: tuple[int, ...] = (64, 64)
    number_bins: int = Field(default=12, ge=1)
    number_width: int = Field(default=8, ge=1)
    embedding_size: int = Field(default=8, ge=1)
    dropout: float = Field(default=0.15, ge=0, lt=1)
    learning_rate: float = Field(default=0.002, gt=0)
    weight_decay: float = Field(default=0.02, ge=0)
    class_weights: tuple[float, ...] = ()
    image_depth: int = 8
    image_channels: int = Field(default=16, ge=1)
    max_shift: int = Field(default=2, ge=0)
    horizontal_flip: bool = False

    @field_validator("image_depth")
    @classmethod
    def _six_n_plus_two(cls, depth: int) -> int:
        return check_depth(depth)


def build_model(features: Sequence[Feature], label: LabelColumn, params: Mapping[str, Any]) -> tf_keras.Model:
    """Returns the uncompiled network, or linear model; its output `logits` is float32 [batch, members, units].

    `units` is 1 for an amount and for two classes, else the number of classes; a linear model has 1 member.

    Args:
        features: What `features.transformed` makes.
        label: As in features.py.
        params: See `Params`.
    """
    settings = Params(**params)
    inputs = {
        feature.name: tf_keras.Input(shape=feature.shape, name=feature.name, dtype=feature.dtype)
        for feature in features
    }
    units = num_units(label)
    kind = "linear" if settings.model == "linear" else "network"
    columns = [feature for feature in features if feature.name != tabular.PIXELS]
    parts = [_linear(columns, inputs, units)[:, tf.newaxis, :]] if columns else []
    if kind == "network":
        parts.append(_network(_encoded(features, inputs, settings), units, settings))
    elif len(columns) < len(features):
        raise TrainingError("A linear model takes no images.", "Set trainer.params.model: network.")
    logits = parts[0] if len(parts) == 1 else parts[1] + parts[0]
    # In float32 even under mixed precision: half precision is too coarse for probabilities near 0 and 1.
    return tf_keras.Model(
        inputs, tf_keras.layers.Activation("linear", dtype="float32", name="logits")(logits), name=kind
    )


def compile_arguments(label: LabelColumn, params: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments of `model.compile`: optimizer, loss and metrics."""
    settings = Params(**params)
    return {
        "optimizer": tf_keras.optimizers.AdamW(settings.learning_rate, weight_decay=settings.weight_decay),
        "loss": MembersLoss(label, settings.class_weights),
        "metrics": _metrics(label),
    }


def serving_outputs(
    outputs: Mapping[str, tf.Tensor], label: LabelColumn, params: Mapping[str, Any]
) -> dict[str, tf.Tensor]:
    """Returns what is served.

    For an amount `prediction`, float32 [batch, 1]; for two classes `probability` of the second, float32 [batch, 1], for
    more `probabilities`, float32 [batch, classes]; for classes also `class`, the most probable one's name, [batch]. For
    several names at once `probabilities`, float32 [batch, names], and `names`, the same for all rows, [batch, names].
    """
    scores = member_mean(outputs["logits"], label, Params(**params).class_weights)
    if isinstance(label, Amount):
        return {"prediction": scores}
    if isinstance(label, SeveralOf):
        return {"probabilities": scores, "names": tf.tile([list(label.names)], [tf.shape(scores)[0], 1])}
    best = tf.argmax(scores, axis=1) if len(label.names) > 2 else tf.cast(scores[:, 0] > 0.5, tf.int64)
    name = "probabilities" if len(label.names) > 2 else "probability"
    return {name: scores, "class": tf.gather(tf.constant(list(label.names)), best)}


def augment(features: Mapping[str, tf.Tensor], seed: tf.Tensor, params: Mapping[str, Any]) -> dict[str, tf.Tensor]:
    """Returns a training batch with each image shifted, and mirrored where `horizontal_flip` allows it.

    Args:
        features: What the model gets, with `image_pixels`, uint8 [batch, height, width, channels].
        seed: int64 [2]; the same seed gives the same images.
        params: See `Params`.
    """
    settings = Params(**params)
    images = augmented(features[tabular.PIXELS], seed, settings.max_shift, settings.horizontal_flip)
    return {**features, tabular.PIXELS: images}


def num_units(label: LabelColumn) -> int:
    """The numbers that the model predicts: one for an amount or two classes, else one for each class or name."""
    if isinstance(label, Amount):
        return 1
    return len(label.names) if isinstance(label, SeveralOf) or len(label.names) > 2 else 1


def _metrics(label: LabelColumn) -> list[tf_keras.metrics.Metric]:
    if isinstance(label, Amount):
        return [MeanOfMembers(label, tf_keras.metrics.RootMeanSquaredError(), "rmse")]
    if not isinstance(label, SeveralOf) and len(label.names) > 2:
        return [MeanOfMembers(label, tf_keras.metrics.SparseCategoricalAccuracy(), "accuracy")]
    return [
        MeanOfMembers(label, tf_keras.metrics.BinaryAccuracy(), "accuracy"),
        MeanOfMembers(label, tf_keras.metrics.AUC(), "auc"),
    ]


def _linear(features: Sequence[Feature], inputs: Mapping[str, tf.Tensor], units: int) -> tf.Tensor:
    """A weight for each number, and for each id; float32 [batch, units]."""
    parts = []
    for feature in features:
        values = inputs[feature.name]
        if feature.name == tabular.NUMBERS:
            parts.append(tf_keras.layers.Dense(units, name="linear_numbers")(values))
        elif feature.name == tabular.RANKS:
            missing = tf.cast(values < 0, tf.float32)
            parts.append(
                tf_keras.layers.Dense(units, use_bias=False, kernel_initializer="zeros", name="linear_missing")(missing)
            )
        else:
            weights = _embedding(feature, units, "linear", "zeros")(values)
            parts.append(
                _mean_word(weights, values) if feature.name == tabular.WORDS else tf.reduce_sum(weights, axis=1)
            )
    return tf.add_n([tf.cast(part, tf.float32) for part in parts])


def _encoded(features: Sequence[Feature], inputs: Mapping[str, tf.Tensor], settings: Params) -> tf.Tensor:
    """All columns as vectors side by side, [batch, width]."""
    parts = []
    for feature in features:
        values = inputs[feature.name]
        if feature.name == tabular.NUMBERS:
            parts.append(values)
        elif feature.name == tabular.PIXELS:
            maps = residual_network(values, settings.image_depth, settings.image_channels)
            parts.append(tf_keras.layers.GlobalAveragePooling2D(name="embedding")(maps))
        elif feature.name == tabular.RANKS:
            parts.append(NumberEncoding(settings.number_bins, settings.number_width, name="number_encoding")(values))
        else:
            vectors = _embedding(feature, settings.embedding_size, "embedded", "uniform")(values)
            parts.append(
                _mean_word(vectors, values) if feature.name == tabular.WORDS else tf_keras.layers.Flatten()(vectors)
            )
    return parts[0] if len(parts) == 1 else tf_keras.layers.Concatenate(name="columns")(parts)


def _embedding(feature: Feature, size: int, prefix: str, initializer: str) -> tf_keras.layers.Layer:
    return tf_keras.layers.Embedding(
        feature.num_categories, size, embeddings_initializer=initializer, name=f"{prefix}_{feature.name}"
    )


def _mean_word(vectors: tf.Tensor, ids: tf.Tensor) -> tf.Tensor:
    """The mean over the words of a text that are known, [batch, size]; 0 where none is."""
    known = tf.cast(ids > 0, vectors.dtype)[:, :, tf.newaxis]
    return tf.math.divide_no_nan(tf.reduce_sum(vectors * known, axis=1), tf.reduce_sum(known, axis=1))


def _network(columns: tf.Tensor, units: int, settings: Params) -> tf.Tensor:
    """The members' logits, [batch, members, units]."""
    hidden = tf_keras.layers.RepeatVector(settings.members, name="for_each_member")(columns)
    for number, width in enumerate(settings.hidden_units, start=1):
        hidden = MemberDense(width, name=f"hidden_{number}")(hidden)
        hidden = tf_keras.layers.Dropout(settings.dropout, name=f"dropout_{number}")(tf.nn.relu(hidden))
    return MemberDense(units, name="member_logits")(hidden)


@tf_keras.saving.register_keras_serializable("millrace")
class NumberEncoding(tf_keras.layers.Layer):
    """Ranks from 0 to 1, -1 if missing, as vectors: piecewise linear in each bin, with a vector for missing.

    Args:
        bins: Parts of the range.
        width: The vector's length.
        **options: Of any layer of Keras.
    """

    def __init__(self, bins: int, width: int, **options: Any) -> None:
        super().__init__(**options)
        self.bins = bins
        self.width = width

    def get_config(self) -> dict[str, Any]:
        """Keras's hook."""
        return {**super().get_config(), "bins": self.bins, "width": self.width}

    def build(self, shape: tf.TensorShape) -> None:
        """Keras's hook."""
        columns = shape[-1]
        self.kernel = self.add_weight("kernel", [columns, self.bins + 1, self.width], initializer=_uniform(self.bins))
        self.bias = self.add_weight("bias", [columns, self.width], initializer=_uniform(self.bins))

    def call(self, ranks: tf.Tensor) -> tf.Tensor:
        """Returns float [batch, columns * width].

        Args:
            ranks: [batch, columns].
        """
        starts = tf.range(self.bins, dtype=ranks.dtype)
        filled = tf.clip_by_value(ranks[:, :, tf.newaxis] * self.bins - starts, 0.0, 1.0)
        missing = tf.cast(ranks < 0, ranks.dtype)[:, :, tf.newaxis]
        encoded = tf.einsum("bct,ctw->bcw", tf.concat([filled, missing], axis=2), self.kernel) + self.bias
        return tf.reshape(tf.nn.relu(encoded), [-1, ranks.shape[1] * self.width])


@tf_keras.saving.register_keras_serializable("millrace")
class MemberDense(tf_keras.layers.Layer):
    """A dense layer of each member's own: [batch, members, width] to [batch, members, units].

    Args:
        units: The width of what it returns.
        **options: Of any layer of Keras.
    """

    def __init__(self, units: int, **options: Any) -> None:
        super().__init__(**options)
        self.units = units

    def get_config(self) -> dict[str, Any]:
        """Keras's hook."""
        return {**super().get_config(), "units": self.units}

    def build(self, shape: tf.TensorShape) -> None:
        """Keras's hook."""
        members, width = shape[-2:]
        self.kernel = self.add_weight("kernel", [members, width, self.units], initializer=_uniform(width))
        self.bias = self.add_weight("bias", [members, self.units], initializer="zeros")

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Returns [batch, members, units]."""
        return tf.einsum("bmw,mwu->bmu", inputs, self.kernel) + self.bias


def _uniform(width: int) -> tf_keras.initializers.Initializer:
    """For weights of a sum over `width` inputs."""
    return tf_keras.initializers.RandomUniform(-(width**-0.5), width**-0.5)
