"""Unpickles data that somebody else made, and nothing else.

A pickle is a program that may call anything it names. CIFAR-10's Python form names three things, all of NumPy's; here
they stand for functions of our own that can make arrays of bytes alone. Anything else that a pickle names is refused.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

# What a stream that is damaged or made up can raise.
_DAMAGES = (pickle.UnpicklingError, EOFError, ValueError, TypeError, LookupError, AttributeError, OverflowError)


class UnsafePickleError(Exception):
    """A pickle that cannot be read, or that names what it has no business with."""


def loads(data: bytes) -> Any:
    """Returns the object in a pickle of plain containers, numbers, text, bytes and uint8 arrays.

    Text of Python 2 comes as bytes.

    Raises:
        UnsafePickleError: The pickle names anything else, or is damaged.
    """
    try:
        return _Unpickler(io.BytesIO(data), encoding="bytes").load()
    except _DAMAGES as error:
        raise UnsafePickleError(str(error) or type(error).__name__) from error


class _ArrayType:
    """Stands for numpy.ndarray where a pickle names the type of the array that it is about to fill."""


def _empty_array(*_: object) -> npt.NDArray[np.uint8]:
    return np.zeros(0, np.uint8)


def _uint8(name: object, *_: object) -> np.dtype[np.uint8]:
    if name not in ("u1", b"u1"):
        raise pickle.UnpicklingError(f"it holds an array of {name!r}, expected uint8")
    return np.dtype(np.uint8)


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> type | Callable[..., object]:
        allowed: dict[str, type | Callable[..., object]] = {
            "numpy.core.multiarray._reconstruct": _empty_array,
            "numpy._core.multiarray._reconstruct": _empty_array,  # NumPy 2
            "numpy.ndarray": _ArrayType,
            "numpy.dtype": _uint8,
        }
        if f"{module}.{name}" not in allowed:
            raise pickle.UnpicklingError(f"it names {module}.{name}, expected arrays and plain values alone")
        return allowed[f"{module}.{name}"]
