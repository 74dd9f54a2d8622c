"""Which `tf.distribute` strategy a training runs under."""

from __future__ import annotations

import tensorflow as tf

from components.trainer.settings import TrainerSettings


def create(settings: TrainerSettings) -> tf.distribute.Strategy:
    """Returns the strategy for this process."""
    return tf.distribute.get_strategy()


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Whether this process is the one that writes results."""
    return True


def describe(strategy: tf.distribute.Strategy, policy: str) -> str:
    """A few words for people."""
    return policy
