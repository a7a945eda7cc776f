"""Trials that report: which rule should stop a trial, and what should a stopped trial teach the model.

    python benchmarks/steps.py [--folder FOLDER] [--keep FILE] [--problems NAME ...] --methods never median ...
        --trainings 40 --seeds 5 --first-seed 0 --most 600 [--report] [--markdown] [--quick]
    python benchmarks/steps.py --folder /tmp/steps --keep /tmp/steps/runs.jsonl --methods never tpe tpe+median
    python benchmarks/steps.py --quick

Each method has as many steps as 40 full trainings have. The problems are learning curves (`steps_parts/curves.py`):
real ones are made once and kept in the folder of `--folder`, else of NILREGRET_CURVES, else ~/.cache/nilregret. Runs
are kept in the file of `--keep`.

Methods are a rule, or a rule and what a stopped trial teaches ("predicted:censored"): never, median, median30 (none
stopped before 30% of the steps), halving (a third goes on at 30% of the steps, only the first 12 trials are stopped),
predicted, and those that stop later trials too: asha (a third at 30%), asha10 (a third at 10%, 30% and 90%), half (a
half at 30% and 60%) and half50 (a half at 50%). These four pause with `-pause`. Peers are random, tpe, tpe+median,
tpe+hyperband, gp and gp+median (Optuna), and smac+hyperband. With `--quick` there are two seeds of two rules on the
formula, for 6 trainings.

Printed, means over seeds: regret after a quarter, a half and all of the steps. Regret is the best possible final value
less the final value of the finished trial that looked best, in units of the best possible less the median final value.
Then regret less that of `never`, with intervals from seeds; regret over that of `never`; the share of the steps after
which a method has the regret of `never`; and the stops: how many, how many of them would have been the best so far,
and in how many runs the best of all trials was stopped. Runs are "short" that ended with 600 trials (`--most`).
"""

import os
import sys
import time
import warnings
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import bench
import numpy as np
from steps_parts.curves import STEPS, problem

import nilregret as nr

NAMES = "abc"
NEEDS = {"tpe": "optuna", "gp": "torch", "smac": "smac"}


# -- methods: each yields (number, point, step) of the trial that it leaves ----------------------------------------


RULES = {
    "median": (nr.slots.Median, {}),
    "median30": (nr.slots.Median, {"warmup": 0.3, "finished": 10}),
    "halving": (nr.slots.Halving, {}),
    "asha": (nr.slots.Halving, {"trials": None}),
    "asha10": (nr.slots.Halving, {"trials": None, "first": 0.1}),
    "half": (nr.slots.Halving, {"trials": None, "factor": 2.0}),
    "half50": (nr.slots.Halving, {"trials": None, "factor": 2.0, "first": 0.5}),
    "predicted": (nr.slots.Predicted, {}),
}


def rule(name, steps, learned):
    """Returns the stopping rule of a name, None for never."""
    if name == "never":
        return None
    base, _, more = name.partition("-")
    kind, given = RULES[base]
    given = given | ({"pause": True} if more == "pause" else {}) | ({"learned": learned} if learned else {})
    return kind(steps=steps, **given)


def ours(problem, name, seed, show):
    """Yields the trials of `nr.auto` under a rule; paused ones go on before another begins."""
    name, _, learned = name.partition(":")
    policy = nr.auto(nr.Space(**dict.fromkeys(NAMES, nr.Float(0.0, 1.0))))
    made = rule(name, problem.steps, learned)
    study = bench.quiet(policy if made is None else policy.using(pruning=made), seed=seed)
    curves, waiting = {}, {}
    while True:
        again = (each for each, step in waiting.items() if study.report(each, step, float(curves[each][1][step - 1])))
        number = next(again, None)
        if number is None:
            trial, step = study.ask(), 0
            number, point = trial.number, np.array([trial.parameters[each] for each in NAMES])
            curves[number] = point, show(number, point)
        else:
            step = waiting.pop(number)
        (point, curve), on = curves[number], True
        while on and step < problem.steps:
            step += 1
            on = made is None or study.report(number, step, float(curve[step - 1]))
        if step == problem.steps:
            study.tell(number, float(curve[-1]))
        elif study.trials[number].curve[-1].verdict == "wait":
            waiting[number] = step
        else:
            study.stop(number)
        yield number, point, step


def random(problem, name, seed, show):  # noqa: ARG001
    """Yields finished trials drawn uniformly."""
    rng = np.random.default_rng(seed)
    for number in range(10**6):
        yield number, rng.random(len(NAMES)), problem.steps


def of_optuna(problem, name, seed, show):
    """Yields the trials of a sampler of Optuna under a pruner of Optuna, both with their defaults."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler, _, pruner = name.partition("+")
    pruners = {
        "": optuna.pruners.NopPruner, "median": optuna.pruners.MedianPruner,
        "hyperband": lambda: optuna.pruners.HyperbandPruner(min_resource=1, max_resource=problem.steps),
    }  # fmt: skip
    made = {"tpe": optuna.samplers.TPESampler, "gp": optuna.samplers.GPSampler}[sampler](seed=seed)
    study = optuna.create_study(direction="maximize", sampler=made, pruner=pruners[pruner]())
    while True:
        trial = study.ask()
        point = np.array([trial.suggest_float(each, 0.0, 1.0) for each in NAMES])
        curve = show(trial.number, point)
        for step, value in enumerate(curve, 1):
            trial.report(float(value), step)
            if step < problem.steps and trial.should_prune():
                break
        if step == problem.steps:
            study.tell(trial, float(curve[-1]))
        else:
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        yield trial.number, point, step


def of_smac(problem, name, seed, show):  # noqa: ARG001
    """Yields the trials of SMAC's Hyperband; a configuration that it promotes goes on from the step that it reached."""
    import tempfile

    from ConfigSpace import ConfigurationSpace
    from smac import MultiFidelityFacade, Scenario
    from smac.runhistory import TrialValue

    space = ConfigurationSpace(dict.fromkeys(NAMES, (0.0, 1.0)), seed=seed)
    with tempfile.TemporaryDirectory() as folder:
        scenario = Scenario(
            space, deterministic=True, n_trials=10**5, min_budget=1, max_budget=problem.steps, seed=seed,
            output_directory=Path(folder),
        )  # fmt: skip

        def unused(config, seed, budget):  # SMAC looks at these names
            raise NotImplementedError(config, seed, budget)

        smac = MultiFidelityFacade(scenario, unused, overwrite=True, logging_level=50)
        numbers = {}
        while True:
            info = smac.ask()
            point = np.array([info.config[each] for each in NAMES])
            number, step = numbers.setdefault(info.config, len(numbers)), max(1, round(info.budget))
            smac.tell(info, TrialValue(cost=-float(show(number, point)[step - 1])))
            yield number, point, step


PEERS = {"random": random, "tpe": of_optuna, "gp": of_optuna, "smac": of_smac}


# -- runs ----------------------------------------------------------------------------------------------------------


def run(name, method, seed, folder, trainings, most):
    """Returns what a run is remembered by: regrets after 1 to `trainings` trainings, and what was stopped."""
    world = problem(name, folder)
    finals, seen, reached = {}, {}, {}
    spent, best, regrets = 0, None, []
    begun = time.process_time()

    def show(number, point):
        curve, finals[number] = world.curve(point, draw=1000 * seed + number)
        seen[number] = curve[-1]
        return curve

    play = PEERS.get(method.partition("+")[0], ours)
    for number, point, step in play(world, method, seed, show):
        if number not in finals:
            show(number, point)
        spent += max(0, step - reached.get(number, 0))
        reached[number] = max(step, reached.get(number, 0))
        regret = None if best is None else world.regret(finals[best])
        regrets += [regret] * (min((spent - 1) // world.steps, trainings) - len(regrets))  # ends before this one did
        if step == world.steps and (best is None or seen[number] > seen[best]):
            best = number
        if spent >= trainings * world.steps or len(finals) >= most:
            break
    regret = None if best is None else world.regret(finals[best])
    regrets = [*regrets, *[regret] * (trainings - len(regrets))][:trainings]
    top = max(seen, key=seen.get)
    return {
        "regrets": regrets, "trials": len(finals), "stopped": sum(step < world.steps for step in reached.values()),
        "wrong": len(list(wrongly(reached, seen, world.steps))), "lost": best is None or bool(seen[top] > seen[best]),
        "spent": spent / world.steps, "cpu": round(time.process_time() - begun, 1),
    }  # fmt: skip


def wrongly(reached, seen, steps):
    """Yields the stopped trials that would have been better than all trials before them that ended."""
    best = -np.inf
    for number in sorted(reached):
        if reached[number] == steps:
            best = max(best, seen[number])
        elif seen[number] > best:
            yield number


# -- what is said --------------------------------------------------------------------------------------------------


def collected(kept, problems, methods, seeds, trainings):
    """Returns regrets (problems, methods, seeds, trainings), nan where there is none."""
    found = np.full((len(problems), len(methods), len(seeds), trainings), np.nan)
    for i, j, k in np.ndindex(found.shape[:3]):
        key = problems[i], methods[j], seeds[k]
        regrets = kept[key]["regrets"][:trainings] if key in kept else []
        found[i, j, k, : len(regrets)] = [np.nan if each is None else each for each in regrets]
    return found


def cost(curve, level):
    """Returns the trainings after which a mean regret is at most `level` for the first time, nan if it never is."""
    below = np.flatnonzero(curve <= level + 1e-12)
    return below[0] + 1.0 if len(below) else np.nan


def texts(values, places=2):
    """Returns numbers to be read, with a dash for each that is not there."""
    return " / ".join(f"{each:.{places}f}" if np.isfinite(each) else "-" for each in values)


def against(found, base, marks):
    """Yields the rows of each method against method `base`, on the runs that both have: whole, ratios and shares."""
    for j in range(found.shape[1]):
        both = np.isfinite(found[:, [j, base], :, -1]).all(axis=(0, 1))
        mine, other = found[:, j, both], found[:, base, both]
        if not both.any():
            yield ["-"] * (2 * len(marks)), ["-"] * len(found), ["-"] * len(found)
            continue
        at, whole, means, levels = np.array(marks) - 1, [], mine.mean(1), other.mean(1)
        for mark in marks:
            never_worse = int((means[:, mark - 1] <= levels[:, mark - 1] + 1e-12).sum())
            whole += [bench.difference((mine - other)[..., mark - 1].mean(0)), f"{never_worse} of {len(found)}"]
        ratios = [texts(a[at] / np.maximum(b[at], 1e-9)) for a, b in zip(means, levels, strict=True)]
        yield (
            whole,
            ratios,
            [
                texts([cost(a, b[mark - 1]) / cost(b, b[mark - 1]) for mark in marks[-2:]])
                for a, b in zip(means, levels, strict=True)
            ],
        )


def stops(runs, trainings):
    """Returns in words what became of the trials of several runs."""
    if not runs:
        return "-"
    trials, stopped, wrong, lost = (sum(run[key] for run in runs) for key in ("trials", "stopped", "wrong", "lost"))
    short = sum(run["spent"] < trainings for run in runs)
    return f"{trials / len(runs):.0f}, {stopped}, {wrong}, {lost}" + (f" ({short} short)" if short else "")


def say(kept, problems, methods, seeds, trainings, *, markdown):
    """Prints the tables."""
    found, marks = collected(kept, problems, methods, seeds, trainings), [trainings // 4, trainings // 2, trainings]
    at = np.array(marks) - 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of means of nothing
        means = np.nanmean(found, 2)
    runs = np.isfinite(found[..., -1]).sum(-1).min(0)
    named = [f"{name} ({count})" for name, count in zip(methods, runs, strict=True)]
    rows = [[name, *(texts(means[i, j, at], 3) for i in range(len(problems)))] for j, name in enumerate(named)]
    title = f"Mean regret after {', '.join(map(str, marks))} trainings, of so many runs"
    bench.table(title, ["method", *problems], rows, markdown=markdown)
    if "never" in methods:
        whole, ratios, shares = zip(*against(found, methods.index("never"), marks), strict=True)
        head = [text for mark in marks for text in (f"less never at {mark}", "at most never's")]
        title = (
            "Regret less that of never, mean over problems with its 95% interval, and problems where it is no larger"
        )
        rows = [[name, *row] for name, row in zip(named, whole, strict=True)]
        bench.table(title, ["method", *head], rows, markdown=markdown)
        title = f"Regret over that of never after {', '.join(map(str, marks))} trainings"
        rows = [[name, *row] for name, row in zip(named, ratios, strict=True)]
        bench.table(title, ["method", *problems], rows, markdown=markdown)
        title = f"Steps to the regret that never has after {marks[1]} and {marks[2]} trainings, over those of never"
        rows = [[name, *row] for name, row in zip(named, shares, strict=True)]
        bench.table(title, ["method", *problems], rows, markdown=markdown)
    title = (
        "Trials of a run, stops of all runs, those that would have been the best so far, runs whose best was stopped"
    )
    rows = [
        [
            name,
            *(
                stops([kept[key] for key in ((each, name, k) for k in seeds) if key in kept], trainings)
                for each in problems
            ),
        ]
        for name in methods
    ]
    bench.table(title, ["method", *problems], rows, markdown=markdown)


@bench.command(__doc__)
def main(options):
    warnings.simplefilter("ignore")
    folder = options.folder or Path(os.environ.get("NILREGRET_CURVES", Path.home() / ".cache" / "nilregret"))
    problems, methods, trainings = options.problems or list(STEPS), options.methods, options.trainings
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    if options.quick:
        problems, methods, trainings, seeds = ["slow"], ["never", "halving"], 6, range(2)
    for method in methods:
        package = NEEDS.get(method.partition("+")[0])
        if package is not None and find_spec(package) is None and not options.report:
            sys.exit(f"{method} needs {package}, which is not installed")
    kept = bench.Kept(options.keep)
    for seed in () if options.report else seeds:  # first every problem once, then further seeds
        for name in problems:
            for method in methods:
                new = (name, method, seed) not in kept
                done = kept.get((name, method, seed), partial(run, name, method, seed, folder, trainings, options.most))
                if new and not options.quick:
                    last = done["regrets"][-1]
                    print(
                        name,
                        method,
                        seed,
                        f"{last:.4f}, {done['trials']} trials, {done['cpu']} s",
                        file=sys.stderr,
                        flush=True,
                    )
    say(kept, problems, methods, seeds, trainings, markdown=options.markdown)
