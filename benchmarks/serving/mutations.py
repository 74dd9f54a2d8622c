"""Bytes and JSON documents gone wrong, drawn from a seeded generator: the same seed gives the same ones."""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any

ODD_BYTES = (b"\x00", b"\xff", b"\xed\xa0\x80", b'"', b"\\", b"\r\n", b"{", b"[", b"%", b"\xf4\x90\x80\x80")
ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 2**31, 2**63, 2**64, -(2**63), 10**40, 1e308, -0.0, 0.5, float("nan"), float("inf")),
    *("", "a", "\x00", "\ud800", "é" * 50, [], {}, [[]], [[], [1]], [[[1]], 2]),
    *({"b64": "*"}, {"b64": 1}, {"b64": "YQ=="}, {"b64": "YQ==", "more": 1}),
)
KEYS = ("instances", "inputs", "examples", "context", "signature_name", "x", "words", "b64", "", "\x00", "é")


def mutated_bytes(random: Random, data: bytes) -> bytes:
    """The bytes with a few of them flipped, dropped, repeated or replaced, or cut off."""
    mutated = bytearray(data)
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(mutated) + 1)
        kind = random.randrange(5)
        if kind == 0 and at < len(mutated):
            mutated[at] ^= 1 << random.randrange(8)
        elif kind == 1:
            del mutated[at : at + random.randint(1, 8)]
        elif kind == 2:
            mutated[at:at] = mutated[at : at + random.randint(1, 32)]
        elif kind == 3:
            mutated[at:at] = random.choice(ODD_BYTES) * random.choice((1, 1, 1, 200, 20_000))
        else:
            del mutated[at:]
    return bytes(mutated)


def mutated_json(random: Random, document: Any) -> Any:
    """The document with one or two of its values or keys replaced, dropped, repeated or nested."""
    mutated = copy.deepcopy(document)
    for _ in range(random.randint(1, 2)):
        mutated = _mutated_node(random, mutated, depth=0)
    return mutated


def json_body(random: Random, document: Any) -> bytes:
    """A mutated document as text, which now and then is mutated as well."""
    # Lone surrogates stay escaped; the names of NaN and infinity are bare.
    body = json.dumps(mutated_json(random, document), ensure_ascii=random.random() < 0.9)
    encoded = body.encode(errors="surrogatepass")
    return mutated_bytes(random, encoded) if random.random() < 0.4 else encoded


def _mutated_node(random: Random, node: Any, depth: int) -> Any:
    children = list(node) if isinstance(node, dict) else list(range(len(node))) if isinstance(node, list) else []
    if not children or random.random() < 0.25 * (depth > 0):
        return _replacement(random, node)
    key = random.choice(children)
    kind = random.random()
    if kind < 0.1:
        del node[key]
    elif kind < 0.2 and isinstance(node, dict):
        node[random.choice(KEYS)] = node.pop(key) if random.random() < 0.5 else copy.deepcopy(node[key])
    elif kind < 0.2:
        node[key:key] = [copy.deepcopy(node[key])] * random.choice((1, 2, 100))
    else:
        node[key] = _mutated_node(random, node[key], depth + 1)
    return node


def _replacement(random: Random, node: Any) -> Any:
    kind = random.random()
    if kind < 0.1:
        for _ in range(random.choice((1, 2, 40, 100))):
            node = [node] if random.random() < 0.9 else {random.choice(KEYS): node}
        return node
    if kind < 0.2:
        return [copy.deepcopy(random.choice(ODD_VALUES)) for _ in range(random.randrange(4))]
    return copy.deepcopy(random.choice(ODD_VALUES))
