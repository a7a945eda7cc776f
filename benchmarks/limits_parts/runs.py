"""Runs under limits, as `tuning_parts.runs.Cache` keeps them."""

from functools import partial

from tuning_parts.methods import named
from tuning_parts.runs import Clock

from .methods import METHODS, Policy


def of_policy(dotted):
    """The method of what `module:function`, called with a space and `constraints=m`, gives."""
    return partial(Policy, make=named(dotted))


def run(problem, name, seed, trials):
    """One run, as the cache keeps it.

    A line has `problem`, `method`, `seed`, for every trial the value (`values`) and the largest of its limits
    (`worst`), which of the trials the method calls its best at the end (`advice`: a number; None where it says that
    none is feasible), and the seconds of CPU time that the method took (`cpu`).
    """
    values, worst, asked = [], [], []
    clock = Clock()
    with clock:
        method = METHODS[name](problem, seed)
    for _ in range(trials):
        with clock:
            parameters = method.suggest()
        asked.append(dict(parameters))
        value, limits = problem.told(parameters)
        values.append(float(f"{value:.10g}"))
        worst.append(float(max(limits)))
        with clock:
            method.tell(parameters, float(value), [float(limit) for limit in limits])
    advised = method.best()
    advice = None if advised is None else asked.index(advised)
    return {
        "problem": problem.name, "method": name, "seed": seed, "values": values, "worst": worst, "advice": advice,
        "cpu": clock.cpu,
    }  # fmt: skip
