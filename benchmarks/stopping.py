"""When to stop: the trials that a rule uses and what it loses, and what `cost=` wins where trials differ in cost.

    python benchmarks/stopping.py [stop|cost] [--cache FOLDER] --half held-out|development [--problems NAME ...]
        --seeds 2 --first-seed 1000 --every 5 [--trials N] [--markdown]
    python benchmarks/stopping.py stop --cache /tmp/stopping --half development --first-seed 0
    python benchmarks/stopping.py cost --cache /tmp/stopping --seeds 10

- stop: one run of `nr.auto` a problem and seed, of 100 trials, or 200 in five dimensions, and where each rule would
  have ended it: `nr.Enough("1%")`; Optuna's terminators, which look at every fifth trial from the 20th on (`--every`, 0
  for never); the rule of Ax's `ImprovementGlobalStoppingStrategy` (window 5, bar 0.1, from 20 trials on) by its
  formula. A loss is what the best value would have gained until the last trial, as a share of the spread: the best
  value of the whole run less the median of the first ten. Problems are BBOB's functions in two and five dimensions
  (instance 1 for development, 4 held out) and models of scikit-learn. BBOB needs the wheel `coco-experiment`.
- cost: functions whose trials cost 10 to the power of their first coordinate, in units of its range, or of 1 less it:
  from 1 to 10. The gap to the optimum when 100 and 200 are spent, with and without `cost=`.

Rules were chosen on the development half. Runs are kept as JSON lines in the folder of `--cache`.
"""

import re
import warnings
from functools import partial

import bench
import numpy as np
from tuning_parts.coco import FUNCTIONS
from tuning_parts.problems import PROBLEMS

import nilregret as nr

FIRST, FROM, EPS = 10, 20, 0.01
MODELS = {
    "development": ["svm-cancer", "forest-diabetes", "logistic-digits"],
    "held-out": ["svr-concavity", "boosting-below", "sgd-below"],
}
INSTANCE = {"development": 1, "held-out": 4}
COSTLY = ["log-rosenbrock", "cliff", "branin-category", "hartmann-6"]
SPENT = (100, 200)
AX, STAGNATION = "Ax, improvement", "Optuna, stagnation for 30"


def groups(half):
    """Returns the problems of each group."""
    named = {f"BBOB d {d}": [f"bbob-f{f}-d{d}-i{INSTANCE[half]}" for f in FUNCTIONS] for d in (2, 5)}
    return named | {"models": MODELS[half]}


def length(name):
    return 200 if re.search("-d5-", name) else 100


# -- when to stop ----------------------------------------------------------------------------------------------------


def trajectory(name, seed, trials, every):
    """Returns the values told, and the trials after which each rule would have stopped, or the last one."""
    problem, rng, enough = PROBLEMS[name], np.random.default_rng(seed), nr.Enough(f"{100 * EPS:g}%")
    study, ends, values = bench.quiet(nr.auto(problem.space), seed=seed), {}, []
    rules = terminators(problem.space) if every else {}
    for count in range(1, trials + 1):
        trial = study.ask()
        values.append(problem.told(trial.parameters, rng)[1])
        study.tell(trial, values[-1])
        if "Enough" not in ends and enough(study):
            ends["Enough"] = count
        for rule, stops in rules.items():
            if rule not in ends and count >= FROM and count % every == 0 and stops(study, values):
                ends[rule] = count
    for rule, stops in {AX: ax, STAGNATION: stagnation}.items():
        ends[rule] = next((n for n in range(FROM, trials) if stops(np.array(values[:n]))), trials)
    return {"values": values, "ends": {rule: ends.get(rule, trials) for rule in ("Enough", *rules, AX, STAGNATION)}}


def ax(values):
    best = np.maximum.accumulate(values)
    return best[-1] - best[-5] < 0.1 * np.subtract(*np.percentile(values, [75, 25]))


def stagnation(values):
    return len(values) - 1 - int(values.argmax()) > 30


def terminators(space):
    """Returns Optuna's rules: functions of a study of ours and the values that tell whether to stop."""
    import optuna
    from optuna import terminator as of

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    made = {
        "Float": lambda p: optuna.distributions.FloatDistribution(p.low, p.high, log=p.log),
        "Int": lambda p: optuna.distributions.IntDistribution(p.low, p.high, log=p.log),
        "Choice": lambda p: optuna.distributions.CategoricalDistribution(p.options),
    }
    kinds = {name: made[type(p).__name__](p) for name, p in space.parameters.items()}

    def stops(make, study, values):
        trials = [
            optuna.trial.create_trial(params=trial.parameters, distributions=kinds, value=value)
            for trial, value in zip(study.trials, values, strict=True)
        ]
        known = optuna.create_study(direction="maximize")
        known.add_trials(trials)
        return of.Terminator(*make(values)).should_terminate(known)

    def median(evaluator):
        return evaluator, of.MedianErrorEvaluator(evaluator)

    def bound(values):
        least = EPS * (max(values) - float(np.median(values[:FIRST])))
        return of.RegretBoundEvaluator(seed=0), of.StaticErrorEvaluator(least)

    return {
        "Optuna, regret bound, median": partial(stops, lambda _: median(of.RegretBoundEvaluator(seed=0))),
        "Optuna, EMMR, median": partial(stops, lambda _: median(of.EMMREvaluator(seed=0))),
        "Optuna, regret bound <= 1%": partial(stops, bound),
    }


def show_stop(runs, options):
    for title, names in groups(options.half).items():
        mine = [run for (name, *_), run in runs.items() if name in names]
        if not mine:
            continue
        rows = []
        for rule in mine[0]["ends"]:
            used = np.array([run["ends"][rule] / len(run["values"]) for run in mine])
            lost = np.array([loss(run["values"], run["ends"][rule]) for run in mine])
            quantiles = [f"{100 * q:.2g}%" for q in np.quantile(lost, [0.5, 0.9, 0.95, 1.0])]
            rows.append([rule, f"{used.mean():.0%}", f"{np.mean(lost <= EPS):.0%}", *quantiles])
        head = ["rule", "trials used", "loss <= 1%", "median loss", "90%", "95%", "largest"]
        bench.table(f"{title}, {len(mine)} runs", head, rows, markdown=options.markdown)


def loss(values, end):
    """Returns what the best value gained after a trial, as a share of the spread."""
    best = np.maximum.accumulate(values)
    return float((best[-1] - best[end - 1]) / (best[-1] - np.median(values[:FIRST])))


# -- what a trial costs ----------------------------------------------------------------------------------------------


def spent(name, seed, with_cost, dear):
    """Returns the gaps to the optimum when each amount is spent."""
    problem = PROBLEMS[name]
    study = bench.quiet(nr.auto(problem.space, cost="paid" if with_cost else None), seed=seed)
    paid, gaps, best = 0.0, [], -np.inf
    low, high = float(problem.space.lower[0]), float(problem.space.upper[0])
    while len(gaps) < len(SPENT):
        trial = study.ask()
        share = float((trial.point[0] - low) / (high - low))
        cost = 10.0 ** (share if dear else 1.0 - share)
        paid += cost
        gaps += [problem.best - best] * (sum(paid > amount for amount in SPENT) - len(gaps))
        best = max(best, float(problem.value(trial.parameters)))
        study.tell(trial, float(problem.value(trial.parameters)), metrics={"paid": cost})
    return gaps


def show_cost(kept, options):
    rows, seeds = [], range(options.first_seed, options.first_seed + options.seeds)
    for name in options.problems or COSTLY:
        for dear in (True, False):
            by = [
                np.array([kept.get(("cost", name, s, w, dear), partial(spent, name, s, w, dear)) for s in seeds])
                for w in (True, False)
            ]
            gained = np.log10(np.maximum(by[0], 1e-8)) - np.log10(np.maximum(by[1], 1e-8))
            rows.append([name, "rises" if dear else "falls", *gained.mean(axis=0)])
    mean = np.array([row[2:] for row in rows])
    rows = [[*row[:2], *(f"{each:+.2f}" for each in row[2:])] for row in rows]
    rows.append(["mean", "", *(bench.difference(mean[:, i], places=2) for i in range(mean.shape[1]))])
    title = f"log10 of the gap with `cost=` less that without, {len(seeds)} seeds"
    bench.table(title, ["problem", "cost", *(f"at {amount}" for amount in SPENT)], rows, markdown=options.markdown)


@bench.command(__doc__)
def main(options):
    warnings.simplefilter("ignore")
    kept = bench.Kept(options.cache / "stopping.jsonl" if options.cache else None)
    if options.parts == "cost":
        return show_cost(kept, options)
    runs = {}
    names = options.problems or [name for names in groups(options.half).values() for name in names]
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        for name in names:
            trials = options.trials or length(name)
            key = (name, seed, trials, options.every)
            runs[key] = kept.get(key, partial(trajectory, *key))
    show_stop(runs, options)
    return None
