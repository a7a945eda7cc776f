"""What version 1 keeps, docs/stable.md: a line of a snapshot that goes or changes needs a new major version."""

import json

import pytest

from .stable.write import HERE, SNAPSHOTS


@pytest.mark.parametrize("kind", SNAPSHOTS)
def test_what_version_1_keeps_is_still_there(kind):
    kept, found = json.loads((HERE / f"{kind}.json").read_text("utf-8")), SNAPSHOTS[kind]()
    gone = {name: f"{said} -> {found.get(name, 'gone')}" for name, said in kept.items() if found.get(name) != said}
    assert gone == {}, "Programs of others break. If only what may be given grew, run python -m tests.stable.write."
    new = sorted(set(found) - set(kept))
    assert new == [], "Run python -m tests.stable.write, and look at what it adds."
