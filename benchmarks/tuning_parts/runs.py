"""Runs, and the file that keeps them: one JSON object a line, one line a run."""

import json
import time
from pathlib import Path

import numpy as np

from .methods import begun
from .problems import PROBLEMS

RECOMMENDED_AFTER = (30, 60, 100, 200)  # trials, and after the last one


class Cache:
    """The runs in a folder (None: in memory alone); of one (problem, method, seed) the longest counts.

    A line has `problem`, `method` (see `key`), `seed`, and for every trial the noiseless value (`values`), what was
    told (`told`), and the seconds of wall and CPU time that the method had used by then (`wall`, `cpu`; the
    objective's not included). Under noise `recommended` has the noiseless value of the point that a user would take, by
    the number of trials.
    """

    def __init__(self, folder, name="runs.jsonl"):
        self.runs, self.path = {}, None
        if folder is None:
            return
        self.path = Path(folder) / name
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


def key(method, workers=1):
    """The name under which runs of a method with so many evaluations in flight are kept: "ei", "ei@4"."""
    return method if workers == 1 else f"{method}@{workers}"


def parts(name):
    """The method and the number of workers of a name that `key` gave."""
    method, _, workers = name.partition("@")
    return method, int(workers or 1)


def run(problem_name, name, seed, trials):
    """One run, as the cache keeps it: trials in the order of their answers.

    Of several workers each takes the next suggestion as soon as its evaluation has ended; all evaluations take equally
    long, so that answers come in the order of the suggestions. The noise of the t-th suggestion is the same for all.
    """
    problem, (method_name, workers), rng = PROBLEMS[problem_name], parts(name), np.random.default_rng([2, seed])
    rows = {"values": [], "told": [], "wall": [], "cpu": []}
    flying, clock, recommended = [], Clock(), {}  # parameters, value and what is told of each
    with clock:
        method = begun(method_name, problem.space, seed, workers)
    for number in range(trials + workers):
        if number >= workers:
            parameters, value, told = flying.pop(0)
            for column, entry in (("values", value), ("told", told), ("wall", clock.wall), ("cpu", clock.cpu)):
                rows[column].append(_rounded(entry))
            with clock:
                method.tell(parameters, told)
            if problem.noise and (count := len(rows["told"])) in (*RECOMMENDED_AFTER, trials):
                recommended[str(count)] = _rounded(_recommended(method, problem, rows))
        if number < trials:
            with clock:
                parameters = method.suggest()
            flying.append((parameters, *problem.told(parameters, rng)))
    more = {"recommended": recommended} if problem.noise else {}
    return {"problem": problem_name, "method": name, "seed": seed, **rows, **more}


def _rounded(value):
    return float(f"{value:.10g}")


def _recommended(method, problem, rows):
    """The noiseless value of the point that a user would take now."""
    if hasattr(method, "recommended"):
        return float(problem.value(method.recommended()))
    return rows["values"][int(np.argmax(rows["told"]))]


class Clock:
    """Seconds of wall and CPU time that were spent inside of it."""

    def __init__(self):
        self.wall = self.cpu = 0.0

    def __enter__(self):
        self.begun = (time.perf_counter(), time.process_time())

    def __exit__(self, *_):
        self.wall += time.perf_counter() - self.begun[0]
        self.cpu += time.process_time() - self.begun[1]
