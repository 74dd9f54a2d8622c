"""HTTP requests that are wrong in their body, path, headers, encoding or framing, drawn from a seeded generator.

The same seed gives the same requests.
"""

from __future__ import annotations

import copy
import dataclasses
import gzip
import json
import zlib
from random import Random
from typing import Any

MODEL = "malformed"
PATH = f"/v1/models/{MODEL}"
GZIP = "Content-Encoding: gzip\r\n"
BODIES: tuple[tuple[str, Any], ...] = (
    ("predict", {"instances": [1.0, 2.5]}),
    ("predict", {"inputs": [[1.0, 2.0], [3.0, 4.0]]}),
    ("predict", {"signature_name": "upper", "instances": ["a", {"b64": "/w=="}]}),
    ("predict", {"signature_name": "number", "inputs": {"words": ["1", "2.5"]}}),
    ("predict", {"signature_name": "types", "instances": [{"flag": True, "small": 3, "large": 4, "double": 0.5}]}),
    ("classify", {"signature_name": "classify", "examples": [{"x": 0.25}, {"x": [0.5]}]}),
    ("regress", {"signature_name": "regress", "context": {"x": 2.0}, "examples": [{}, {"x": 1.0}]}),
)
ODD_BYTES = (b"\x00", b"\xff", b"\xed\xa0\x80", b'"', b"\\", b"\r\n", b"{", b"[", b"%", b"\xf4\x90\x80\x80")
ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 2**31, 2**63, 2**64, -(2**63), 10**40, 1e308, -0.0, 0.5, float("nan"), float("inf")),
    *("", "a", "\x00", "\ud800", "é" * 50, [], {}, [[]], [[], [1]], [[[1]], 2]),
    *({"b64": "*"}, {"b64": 1}, {"b64": "YQ=="}, {"b64": "YQ==", "more": 1}),
)
KEYS = ("instances", "inputs", "examples", "context", "signature_name", "x", "words", "b64", "", "\x00", "é")


@dataclasses.dataclass(frozen=True)
class HttpRequest:
    """A request as bytes.

    Attributes:
        data: What is sent.
        complete: Whether its framing is right, so that the server must respond.
    """

    data: bytes
    complete: bool


def http_request(random: Random) -> HttpRequest:
    """An HTTP request that is wrong in its body, path, headers, encoding or framing."""
    verb, document = random.choice(BODIES)
    body = json_body(random, document)
    kind = random.random()
    if kind < 0.55:
        return HttpRequest(_http("POST", f"{PATH}:{verb}", body), complete=True)
    if kind < 0.7:
        return HttpRequest(_http("POST", f"{PATH}:{verb}", _compressed(random, body), GZIP), complete=True)
    if kind < 0.85:
        method = random.choice(("GET", "POST", "POST", "PUT", "OPTIONS", "HEAD", "DELETE"))
        return HttpRequest(_http(method, _path(random, verb), body if method == "POST" else b""), complete=False)
    if kind < 0.93:
        return HttpRequest(_framing(random, verb, body), complete=False)
    broken = mutated_bytes(random, _http("POST", f"{PATH}:{verb}", body, _header(random)))
    return HttpRequest(broken, complete=False)


def _http(method: str, path: str, body: bytes, more: str = "") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{more}Content-Length: {len(body)}\r\n\r\n"
    return head.encode(errors="surrogateescape") + body


def _compressed(random: Random, body: bytes) -> bytes:
    kind = random.randrange(6)
    if kind == 0:
        return body
    if kind == 1:
        return mutated_bytes(random, gzip.compress(body))
    if kind == 2:
        return gzip.compress(body) * 2
    if kind == 3:
        return zlib.compress(body)
    if kind == 4:
        return gzip.compress(b" " * random.choice((2**10, 2**18, 2**22)) + body, 9)
    return gzip.compress(body)[: -random.randint(1, 12)]


def _path(random: Random, verb: str) -> str:
    version = random.choice(("/versions/1", "/versions/" + 20 * "9", "/versions/-1", "/versions/", "/labels/x"))
    path = random.choice((PATH, f"{PATH}{version}", f"{PATH}{version}:{verb}", f"{PATH}/metadata", f"{PATH}:{verb}"))
    if random.random() < 0.7:
        path = mutated_bytes(random, path.encode()).decode(errors="surrogateescape")
    return "/" + "".join(path.split()).lstrip("/") if random.random() < 0.9 else path


def _header(random: Random) -> str:
    name = random.choice(
        ("Authorization", "x-request-id", "Content-Type", "Origin", "Transfer-Encoding", "Expect", "Te")
    )
    value = random.choice(("Bearer \udcff", "x" * 9000, "", "chunked", "100-continue", "gzip, chunked", "\x01", "a: b"))
    return f"{name}: {value}\r\n"


def _framing(random: Random, verb: str, body: bytes) -> bytes:
    length = random.choice((str(len(body) + 5), str(max(0, len(body) - 5)), "-1", "x", str(2**64), "1, 2", "+3", ""))
    chunk = random.choice((f"{len(body):x}", "zz", "-1", f"{2**64:x}", f"{len(body) + 7:x};ext=1", ""))
    head = f"POST {PATH}:{verb} HTTP/1.1\r\nHost: localhost\r\n".encode()
    chunked = f"Transfer-Encoding: chunked\r\n\r\n{chunk}\r\n".encode() + body + b"\r\n0\r\n\r\n"
    return random.choice(
        (
            head + f"Content-Length: {length}\r\n\r\n".encode() + body,
            head + chunked,
            head + f"Content-Length: {len(body)}\r\n".encode() + chunked,
            head + b"A: b\r\n" * random.choice((10, 1000)) + b"\r\n",
            head.replace(b"1.1", random.choice((b"9.9", b"1.0", b"", b"2.0"))) + b"\r\n",
            head[: random.randrange(len(head))],
        )
    )


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
    """A mutated document as text, which is sometimes mutated as well."""
    # Lone surrogates stay escaped; NaN and infinity are bare names.
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
