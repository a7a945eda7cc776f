"""Runs, and the file that keeps them: one JSON object a line, one line a run."""

import json
import time
from pathlib import Path

import numpy as np

from .methods import METHODS
from .problems import PROBLEMS


class Cache:
    """The runs in a folder (None: in memory alone); of one (problem, method, seed) the longest counts.

    A line has `problem`, `method`, `seed`, and for every trial the noiseless value (`values`), what was told (`told`),
    and the seconds of wall and CPU time that the method had used by then (`wall`, `cpu`; the objective's not included).
    """

    def __init__(self, folder):
        self.runs, self.path = {}, None
        if folder is None:
            return
        self.path = Path(folder) / "runs.jsonl"
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


def run(problem_name, method_name, seed, trials):
    """One run, as the cache keeps it. The noise of trial t is the same for all methods."""
    problem = PROBLEMS[problem_name]
    rng = np.random.default_rng([2, seed])
    rows = {"values": [], "told": [], "wall": [], "cpu": []}
    wall, cpu = time.perf_counter(), time.process_time()
    spent_wall, spent_cpu = 0.0, 0.0
    method = METHODS[method_name](problem.space, seed)
    for _ in range(trials):
        parameters = method.suggest()
        spent_wall, spent_cpu = spent_wall + time.perf_counter() - wall, spent_cpu + time.process_time() - cpu
        value, told = problem.told(parameters, rng)
        wall, cpu = time.perf_counter(), time.process_time()
        method.tell(parameters, told)
        for key, number in (("values", value), ("told", told), ("wall", spent_wall), ("cpu", spent_cpu)):
            rows[key].append(float(f"{number:.10g}"))
    return {"problem": problem_name, "method": method_name, "seed": seed, **rows}
