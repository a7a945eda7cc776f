"""Runs, as `tuning_parts.runs.Cache` keeps them."""

from dataclasses import dataclass

import numpy as np
from tuning_parts.runs import Clock


@dataclass(frozen=True)
class Setting:
    """How answers come.

    Attributes:
        noise: standard deviation, % of the range of the best front known.
        batch: how many trials are asked before their answers come together.
        late: how many more trials are asked before the answer of a trial comes.
    """

    noise: int = 0
    batch: int = 1
    late: int = 0

    def __str__(self):
        return f"noise {self.noise}%, batches of {self.batch}, answers {self.late} late"

    def of(self, problem):
        """The name under which runs of a problem are kept: "zdt1", "zdt1-n5-b4"."""
        parts = {"n": self.noise, "b": self.batch * (self.batch > 1), "l": self.late}
        return problem + "".join(f"-{key}{value}" for key, value in parts.items() if value)

    @property
    def told(self):
        """What a policy is told."""
        return {"parallel": max(self.batch, self.late + 1), "answers": "late" if self.late else "prompt"}

    def answered(self, open_trials):
        """How many of the open trials are answered now."""
        if self.late:
            return int(len(open_trials) > self.late)
        return self.batch * (len(open_trials) == self.batch)


def run(problem, make, name, setting, seed, trials):
    """One run: the noiseless values of all trials, the CPU seconds of the method so far, and what the front shows.

    Methods are not told how many trials there are, so that the beginning of a longer run is a shorter run.
    """
    size = problem.shape[1] if setting.noise else np.zeros(problem.count)
    rng, clock, flying, values, told, seconds = np.random.default_rng([2, seed]), Clock(), [], [], [], []
    with clock:
        method = make(problem, seed, setting.told)
    while len(values) < trials:
        with clock:
            parameters = method.suggest()
        values.append([float(value) for value in problem.values(parameters)])
        told.append(values[-1] + setting.noise / 100 * size * rng.standard_normal(problem.count))
        flying.append((parameters, told[-1].tolist()))
        for parameters, answer in [flying.pop(0) for _ in range(setting.answered(flying))]:
            with clock:
                method.tell(parameters, answer)
        seconds.append(clock.cpu)
    more = {}
    if setting.noise:
        more["told"] = [[_short(value) for value in row.tolist()] for row in told]
        if hasattr(method, "shown"):
            more["shown"] = method.shown()
    return {
        "problem": setting.of(problem.name), "method": name, "seed": seed,
        "values": [[_short(value) for value in row] for row in values], "cpu": [_short(each) for each in seconds],
        **more,
    }  # fmt: skip


def _short(value):
    return float(f"{value:.10g}")
