"""The committed script of the pages belongs to its sources, and names what is in it."""

from __future__ import annotations

import hashlib
import json
import re

from ui import rendering

WEB = rendering.HERE / "web"
SCRIPT = (rendering.STATIC / rendering.SCRIPT_FILE).read_text(encoding="utf-8")
LOCK = (WEB / "package-lock.json").read_text(encoding="utf-8")


def digest_of_sources() -> str:
    names = ["build.mjs", "package-lock.json", "package.json"]
    names += [path.relative_to(WEB).as_posix() for path in (WEB / "src").rglob("*.js")]
    digest = hashlib.sha256()
    for name in sorted(names):
        digest.update(f"{name}\0".encode() + (WEB / name).read_bytes() + b"\0")
    return digest.hexdigest()


def test_the_script_is_built_from_the_sources_that_are_here() -> None:
    match = re.search(r"sha256 ([0-9a-f]{64})", SCRIPT)
    assert match is not None
    assert match[1] == digest_of_sources(), "ui/web changed: run `make web` and commit what it writes"


def test_the_banner_names_the_packages_that_the_lock_has_and_their_licences_are_here() -> None:
    banner = SCRIPT[: SCRIPT.index("*/")]
    named = re.findall(r"^ \*   (\S+) (\S+) \((.+)\)$", banner, re.MULTILINE)
    locked = {path.removeprefix("node_modules/"): entry for path, entry in json.loads(LOCK)["packages"].items()}
    licences = (rendering.STATIC / "LICENSES.txt").read_text(encoding="utf-8")
    assert {"@observablehq/plot", "@dagrejs/dagre", "d3-shape"} <= {name for name, _, _ in named}
    for name, version, licence in named:
        assert locked[name]["version"] == version
        assert licence in {"ISC", "MIT", "BSD-3-Clause", "Apache-2.0"}
        assert f"\n{name} {version} ({licence})\n" in licences


def test_the_lock_names_no_registry() -> None:
    entries = json.loads(LOCK)["packages"].values()
    assert not any("resolved" in entry for entry in entries)
    assert "registry" not in LOCK


def test_no_static_file_ends_the_element_that_it_is_put_into() -> None:
    for name in (rendering.SCRIPT_FILE, rendering.THEME_FILE, rendering.STYLE_FILE):
        text = (rendering.STATIC / name).read_text(encoding="utf-8").lower()
        assert "</script" not in text
        assert "</style" not in text
        assert "<!--" not in text
