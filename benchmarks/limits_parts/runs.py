"""Runs under limits, and the file that keeps them: one JSON object a line, one line a run."""

import json
from functools import partial
from pathlib import Path

from tuning_parts.methods import named
from tuning_parts.runs import Clock

from .methods import METHODS, Policy


class Cache:
    """The runs in a folder (None: in memory alone); of one (problem, method, seed) the last longest counts.

    A line has `problem`, `method`, `seed`, for every trial the value (`values`) and the largest of its limits
    (`worst`), which of the trials the method calls its best at the end (`advice`: a number; None where it says that
    none is feasible), and the seconds of CPU time that the method took (`cpu`).
    """

    def __init__(self, folder):
        self.runs, self.path = {}, None
        if folder is None:
            return
        self.path = Path(folder) / "limits.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        for line in self.path.read_text().splitlines() if self.path.exists() else ():
            self._keep(json.loads(line))

    def _keep(self, run):
        key = (run["problem"], run["method"], run["seed"])
        if key not in self.runs or len(run["values"]) >= len(self.runs[key]["values"]):
            self.runs[key] = run

    def has(self, problem, method, seed, trials):
        run = self.runs.get((problem, method, seed))
        return run is not None and len(run["values"]) >= trials

    def add(self, run):
        """Keep a run, in memory and in the file."""
        self._keep(run)
        if self.path is not None:
            with self.path.open("a") as file:
                file.write(json.dumps(run) + "\n")


def of_policy(dotted):
    """The method of what `module:function`, called with a space and `constraints=m`, gives."""
    return partial(Policy, make=named(dotted))


def run(problem, name, seed, trials):
    """One run, as the cache keeps it."""
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
