"""Trials in random spaces with limits: how many are outside by more than 1e-9, and what an ask costs with limits.

    python benchmarks/limits_fuzz.py [play|cost ...] --first 0 --count 1000 --jobs 1 --auto 200 --repeats 5
        [--cache FILE] [--quiet]

- play: random spaces (`limits_parts/fuzzed.py`) of one to eight parameters of all kinds, a quarter conditional. They
  have one to five limits that a random point keeps: linear, curved, slices down to 3e-5 of a range, options,
  disjunctions, remainders, `not`, functions, one or two equalities. In each, a design, uniform points, candidates and
  mutations are drawn. A study with a cheap search asks three times, forced rounds and a batch of two among them. Its
  reward is linear, so that the optimum is on a border. In every tenth space it goes on: a failure, a better point
  outside is added, one is asked among points outside. In every `--auto`th space `nr.auto` plays 14 trials. An oracle
  that evaluates the limits by Python checks all points (1e-9 of the size of the terms, or of 1 if they are smaller).
  Spaces are left out if none of 16,000 points keeps the limits that are not linear.
- cost: CPU time of a decision of `nr.auto` after 20 random observations with limits, over one without: the median of
  the asks of `--repeats` seeds.
"""

import statistics
import sys
import time
from collections import Counter
from unittest import mock

import bench
import numpy as np
from limits_parts.fuzzed import direction, excess, fuzzed

import nilregret as nr
from nilregret._utils.randomness import Draws
from nilregret.domains import limits_linear
from nilregret.domains.search.boxes import PointSearch
from nilregret.domains.search.designs import design, mutated, uniform

OUTSIDE, FEW = 1e-9, 2**14
LONG, BLOCK = 10, 50  # of how many spaces one has a long study; spaces of a task
SEARCH = PointSearch(candidates=16, around=6, starts=1, evaluations=4, mutations=6)
COSTS = {
    "a sum of 4 <= 1": (4, "a + b + c + d <= 1"),
    "a sum of 5 == 1": (5, "a + b + c + d + e == 1"),
    "a ball in 4": (4, "a ** 2 + b ** 2 + c ** 2 + d ** 2 <= 0.5"),
    "one of two parts in 4": (4, "a + b <= 0.5 or c - d >= 0.5"),
    "a sum of 2 <= 1": (2, "a + b <= 1"),
}


class Seen:
    """Points that an oracle has checked.

    Attributes:
        counts: of points by kind, and of those outside.
        faults: texts of what is wrong.
    """

    def __init__(self, counts=(), outside=(), faults=(), worst=0.0):
        self.counts, self.outside, self.faults, self.worst = Counter(counts), Counter(outside), [*faults], worst

    def check(self, kind, number, limits, parameters):
        self.counts[kind] += 1
        far = excess(limits, parameters)
        self.worst = max(self.worst, far if far <= OUTSIDE else 0.0)
        if far > OUTSIDE:
            self.outside[kind] += 1
            self.faults.append(
                f"space {number}: {kind} outside by {far:.2g}: {parameters}, {[each.text for each in limits]}"
            )

    def add(self, other):
        self.counts += other.counts
        self.outside += other.outside
        self.faults += other.faults
        self.worst = max(self.worst, other.worst)


def policy_of(space, rolls):
    """Returns a policy with a cheap search."""
    kernel = nr.Matern(2.5, 0.3)
    explore = rolls.of(
        (nr.slots.InitialDesign(1), nr.slots.InitialDesign(2, middle=True), nr.slots.Uniform(0.3),
         nr.slots.CoordinateSearch(after=1, every=2))
    )  # fmt: skip
    make = rolls.of((nr.gp_ucb, nr.gp_ucb, nr.expected_improvement, lambda *a, **k: nr.gp_ts(*a, norm_bound=1.0, **k)))
    more = {"pending": "hallucinate"} if make is nr.gp_ucb and rolls.chance(0.5) else {}
    return make(space, kernel, noise=0.1, **more).using(explore=explore, search=SEARCH)


def told(study, trials, weights, check, kind):
    """Checks trials and tells their rewards."""
    for trial in trials:
        check(kind, trial.parameters)
        study.tell(trial, float(weights @ trial.point))


def played(space, limits, rolls, number, seen, *, auto):
    """Plays a study in a space."""
    weights = direction(rolls, space.dimension)

    def check(kind, parameters):
        seen.check(kind, number, limits, parameters)

    policy = nr.auto(space, budget=14) if auto else policy_of(space, rolls)
    study = bench.quiet(policy, seed=number)
    for _ in range(9 if auto else 1):
        told(study, [study.ask()], weights, check, "one by one")
    told(study, study.ask(count=2), weights, check, "batch")
    if number % LONG and not auto:
        return
    failed = study.ask()
    check("before a failure", failed.parameters)
    study.fail(failed, "out of memory")
    free = space.spread(rolls.draws.random((6, len(space.parameters))))
    if space.limits is None or space.limits.equalities is None:  # A point that misses a total is refused.
        study.add(space.decode(free[0]), float(weights @ free[0]) + 10.0)
    told(study, [study.ask()], weights, check, "after a better point outside")
    offered = [*map(space.decode, free[1:]), *(t.parameters for t in study.trials if t.reward is not None)]
    told(study, [study.ask(among=offered)], weights, check, "among")
    best = study.best()
    check("best", best.parameters)


def looked(space, limits, number, seen):
    """Checks designs and candidates."""
    rng = Draws(f"points {number}")
    some = design(space, 4, rng, middle=number % 2 == 0)
    drawn = {"design": some, "uniform": uniform(space, 4, rng), "candidate": SEARCH.candidate_points(space, number)}
    drawn["mutation"] = mutated(space, some[:3], 6, rng)
    for kind, points in drawn.items():
        for point in points:
            seen.check(kind, number, limits, space.decode(point))
        if not len(points) and kind != "mutation":
            seen.faults.append(f"space {number}: no {kind}")


def one(number, auto):
    """Returns what was seen in a space, and what kind of space it is."""
    seen = Seen()
    with mock.patch.object(limits_linear, "MOST_DRAWN", FEW):
        found = fuzzed(number)
    if isinstance(found, str):
        return seen, f"refused: {found}"
    space, limits, rolls = found
    for part in (
        lambda: looked(space, limits, number, seen),
        lambda: played(space, limits, rolls, number, seen, auto=auto),
    ):
        try:
            part()
        except Exception as error:
            last = error.__traceback__
            while last.tb_next is not None:
                last = last.tb_next
            where = f"{last.tb_frame.f_code.co_filename.rpartition('/')[2]}:{last.tb_lineno}"
            said = f"{type(error).__name__} at {where}: {str(error)[:160]}"
            seen.faults.append(f"space {number}: {said} {[each.text for each in limits]}")
            seen.counts["studies broken off"] += 1
    return seen, "played"


def block(first, auto):
    """Returns what was seen in a block of spaces, as plain values."""
    seen, spaces = Seen(), Counter()
    for number in range(first, first + BLOCK):
        found, kind = one(number, number % auto == 0)
        seen.add(found)
        spaces[kind] += 1
    return [seen.counts, seen.outside, seen.faults, seen.worst, spaces]


def play(given):
    """Plays all spaces."""
    kept = bench.Kept(given.cache)
    firsts = range(given.first, given.first + given.count, BLOCK)
    missing = [(first, given.auto) for first in firsts if f"{first} {given.auto}" not in kept]
    for done in range(0, len(missing), given.jobs):
        some = missing[done : done + given.jobs]
        for (first, auto), found in zip(some, bench.mapped(given.jobs, block, some), strict=True):
            kept.get(f"{first} {auto}", lambda found=found: found)
    seen, spaces = Seen(), Counter()
    for first in firsts:
        *facts, kinds = kept[f"{first} {given.auto}"]
        seen.add(Seen(*facts))
        spaces.update(kinds)
    for fault in seen.faults[: 0 if given.quiet else 200]:
        print(fault, file=sys.stderr)
    rows = [[kind, count, seen.outside.get(kind, 0)] for kind, count in sorted(seen.counts.items())]
    bench.table("", ["points", "checked", "outside"], rows)
    print(", ".join(f"{count:,} {kind}" for kind, count in sorted(spaces.items())))
    outside, asked = (sum(counts.get(kind, 0) for kind in TRIALS) for counts in (seen.outside, seen.counts))
    print(f"{outside} of {asked:,} trials outside by more than {OUTSIDE:g}")
    print(f"largest excess of those inside {seen.worst:.2g}; {len(seen.faults)} faults", flush=True)


TRIALS = ("one by one", "batch", "before a failure", "after a better point outside", "among")


def seconds(space, seed):
    """Returns CPU seconds of decisions without a fit after 20 random observations that keep the limits."""
    study = bench.quiet(nr.auto(space), seed=seed)
    points = uniform(space, 20, Draws(f"cost {seed}"))
    for point in points:
        study.add(point, -float(np.square(point - 0.3).sum()))
    spent = []
    for _ in range(9):
        begun = time.process_time()
        trial = study.ask()
        if not trial.fits:
            spent.append(time.process_time() - begun)
        study.tell(trial, -float(np.square(trial.point - 0.3).sum()))
    return spent


def cost(given):
    """Prints ratios of costs."""
    rows = []
    for name, (count, limit) in COSTS.items():
        free = nr.Space(**{letter: nr.Float(0, 1) for letter in "abcde"[:count]})
        pair = [[], []]
        for seed in range(given.repeats):
            for place, space in enumerate((free, free.where(limit))):
                pair[place] += seconds(space, seed)
        without, within = (1e3 * statistics.median(each) for each in pair)
        rows.append([name, without, within, within / without])
    bench.table("", ["limit", "ms without", "ms with", "ratio"], rows, floatfmt=("", ".1f", ".1f", ".2f"))


@bench.command(__doc__)
def main(given):
    for part in (play, cost):
        if part.__name__ in (given.parts or ("play", "cost")):
            part(given)
