"""Random spaces with limits, of all kinds of parameters: no trial and no candidate is outside.

`benchmarks/limits_fuzz.py` does the same in as many spaces as wished.
"""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import limits_fuzz


@pytest.mark.parametrize("first", [0, pytest.param(1000, marks=pytest.mark.nightly)])
def test_no_point_is_outside_in_random_spaces(first):
    count, auto = (12, 10**9) if first == 0 else (400, 100)
    seen, played = limits_fuzz.Seen(), 0
    for number in range(first + 1, first + 1 + count):
        found, kind = limits_fuzz.one(number, number % auto == 0)
        seen.add(found)
        played += kind == "played"
    assert not seen.faults
    assert not seen.outside
    assert played > 0.8 * count


def test_rounding_near_a_pole_lets_no_trial_out():
    """The limit is c / b >= 0.0088, where c = 0 and b near 0 would hold by rounding alone."""
    assert not limits_fuzz.one(4905, False)[0].faults
