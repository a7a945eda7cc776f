"""Cases of a parametrised test that run nightly: the same promise as that of the other cases, at greater length."""

import pytest


def nightly(*cases):
    """Returns these cases, marked; a tuple holds several arguments."""
    return [pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.nightly) for case in cases]


def thinned(cases, *kept):
    """Returns all cases, marked where they are not among those kept; a tuple holds several arguments."""
    return [case if case in kept else nightly(case)[0] for case in cases]
