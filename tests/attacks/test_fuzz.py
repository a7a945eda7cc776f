"""Hostile values in public calls: refused in words, or taken and then right."""

import pytest

from . import fuzz


@pytest.mark.parametrize("target", fuzz.targets(), ids=lambda target: target.name)
def test_good_arguments_work(target):
    """Otherwise nothing would be attacked."""
    outcome = fuzz.attempt(target, {name: place.good for name, place in target.places.items()}, {}, bad=False)
    assert outcome.what == "worked", outcome


def test_hostile_calls():
    _, wrong = fuzz.run(800, seed=1)
    assert not wrong, "\n".join(map(str, wrong[:5]))
