"""Row slates: regret of a page of three places among ten arms, against Vowpal Wabbit's conditional contextual bandit.

Each visit has two columns of a context. The click rate of an arm is a logistic function of them, and the last places
are seen less: by the weights 1, .6 and .3, or until the first click (a cascade). Regret is the expected number of
clicks (of pages with a click, under a cascade) that the best page of each visit would have had more, in all.
"""

from importlib.util import find_spec

import numpy as np
from bench import error, quiet

import nilregret as nr

ARMS, PLACES, COLUMNS = 10, 3, 2
WEIGHTS = np.array([1.0, 0.6, 0.3])
RULES = {"each place for itself": None, "`positions`": "positions", "`cascade`": "cascade"}


class World:
    """Visits, and what is clicked."""

    def __init__(self, kind, rounds, seed):
        rng = np.random.default_rng([seed, 44])
        self.kind, self.contexts = kind, rng.random((rounds, COLUMNS))
        slopes = rng.normal(0.0, 1.5, (COLUMNS, ARMS))
        logits = (self.contexts - 0.5) @ slopes + rng.normal(-2.2, 0.6, ARMS)
        self.rates, self._drawn = 1.0 / (1.0 + np.exp(-logits)), rng.random((rounds, ARMS + PLACES))

    def clicks(self, visit, page):
        """Returns the click of each place, `(PLACES,)`."""
        attracts = self._drawn[visit, page] < self.rates[visit, page]
        if self.kind == "positions":
            return attracts & (self._drawn[visit, ARMS:] < WEIGHTS)
        first = int(attracts.argmax()) if attracts.any() else PLACES
        return attracts & (np.arange(PLACES) <= first)

    def value(self, visit, page):
        """Returns the expected clicks of a page, or of a cascade its probability of a click."""
        rates = self.rates[visit, page]
        return float(rates @ WEIGHTS if self.kind == "positions" else 1.0 - np.prod(1.0 - rates))

    def regret(self, visit, page):
        """Returns the loss of a page against the best one of the visit."""
        best = np.argsort(-self.rates[visit], kind="stable")[:PLACES]
        return self.value(visit, best) - self.value(visit, page)


def ours(world, seed, rule):
    """Returns the regret of `nr.auto` with a model of places."""
    context = nr.Box(np.zeros(COLUMNS), np.ones(COLUMNS))
    study = quiet(nr.auto(nr.Arms(range(ARMS)), context=context, reward="bernoulli", slate=rule), seed=seed)
    total = 0.0
    for visit, row in enumerate(world.contexts):
        trials = study.ask(row, count=PLACES, slate=True)
        page = np.array([trial.arm for trial in trials])
        study.tell_slate(trials, world.clicks(visit, page).astype(float).tolist())
        total += world.regret(visit, page)
    return total


def vowpal(world, seed, options):
    """Returns the regret of Vowpal Wabbit, which learns a cost for each place."""
    import vowpalwabbit

    command = f"--ccb_explore_adf {options} -q UA --power_t 0 --quiet --random_seed {seed + 1}"
    vw = vowpalwabbit.Workspace(command)
    actions, total = [f"ccb action |A a{arm}" for arm in range(ARMS)], 0.0
    for visit, row in enumerate(world.contexts):
        shared = "ccb shared |U " + " ".join(f"x{i}:{x:.4f}" for i, x in enumerate(row)) + " one:1"
        slots = [f"ccb slot |S s{place}" for place in range(PLACES)]
        found = vw.predict([shared, *actions, *slots])
        page = np.array([place[0][0] for place in found])
        clicks = world.clicks(visit, page)
        told = [f"ccb slot {page[i]}:{-float(clicks[i])}:{found[i][0][1]} |S s{i}" for i in range(PLACES)]
        vw.learn([shared, *actions, *told])
        total += world.regret(visit, page)
    vw.finish()
    return total


PEERS = {"VW ccb, epsilon 5%": "--epsilon 0.05", "VW ccb, squarecb": "--squarecb --gamma_scale 100"}


def slates(report):
    """Row slates."""
    rounds, seeds, rows = report.rounds or 2000, report.seeds(), []
    peers = {} if report.alone else PEERS
    if peers and find_spec("vowpalwabbit") is None:
        print("Vowpal Wabbit is not installed, and is left out: pip install vowpalwabbit.")
        peers = {}
    for kind in ("positions", "cascade"):
        worlds = {seed: World(kind, rounds, seed) for seed in seeds}
        for name, rule in RULES.items():
            each = np.array([ours(worlds[seed], seed, rule) for seed in seeds])
            report.keep("slates", kind, name, seeds, regret=each)
            rows.append([kind, name, f"{each.mean():.0f} +- {error(each):.0f}"])
        for name, options in peers.items():
            each = np.array([vowpal(worlds[seed], seed, options) for seed in seeds])
            report.keep("slates", kind, name, seeds, regret=each)
            rows.append([kind, name, f"{each.mean():.0f} +- {error(each):.0f}"])
    head = ["places", "method", "regret"]
    report.show(f"Regret over {rounds} pages of {PLACES} places, {ARMS} arms, {len(seeds)} seeds", head, rows)
