"""What it is worth to tell the noise of each answer (`std`): regret of the recommended point, as ratios within one run.

    python benchmarks/answer_noise.py --seeds 12 --trials 40 [--folds N] [--outliers N]
    python benchmarks/answer_noise.py --seeds 4
    python benchmarks/answer_noise.py --folds 6
    python benchmarks/answer_noise.py --outliers 8

`nr.auto` has 40 trials of Branin, Hartmann-3 and Hartmann-6, less their mean and divided by their standard deviation.
Half of the answers have a noise of .05, the others of 1. The same seeds: without `std`, with `std`, and with the root
mean square of both noises for all. Regret is of the recommended point, `study.best()`. Ratios of means have 95%
bootstrap intervals.

`--folds` is what `fold_noise` of the scikit-learn search is worth: 20 candidates of two parameters, 5 folds, on four
data sets of 150 to 600 rows. The candidate of `study.best()` is valued by 10 times 5 other folds. The difference is in
standard deviations of the scores of all candidates.

`--outliers` asks what `std` could do against answers that are wrong without bound. A tenth of them is off by 10
deviations and more, up, down or both. "auto" fits its noise, "known" is told it (.05). "weights" tells each answer the
noise .05 sqrt(1 + ((y - median) / c)^2), where a fifth is further than c from the median, afresh in each round. It cuts
deviations at 3 c (RCGP: Altamirano et al. 2024, with a cut for the unit of rewards). "spared" leaves wrong answers out.
"""

import bench
import numpy as np
from bench import ratio
from sklearn import datasets
from sklearn.base import clone
from sklearn.model_selection import RepeatedKFold, cross_val_score
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import nilregret as nr
from nilregret.environments import branin, hartmann3, hartmann6
from nilregret.integrations.sklearn import NoRegretSearchCV

PROBLEMS = {"Branin": branin, "Hartmann-3": hartmann3, "Hartmann-6": hartmann6}
STDS = (0.05, 1.0)


def regret_of_recommended(problem, way, seed, trials):
    """Regret of the recommended point, in standard deviations of the problem over its box."""
    f = PROBLEMS[problem]
    low, high = f.domain.lower, f.domain.upper
    values = f(low + (high - low) * np.random.default_rng(0).uniform(size=(4000, len(low))))
    mean, std = values.mean(), values.std()
    rng, study = np.random.default_rng(2000 + seed), bench.quiet(nr.auto(f.domain, budget=trials), seed=seed)
    for _ in range(trials):
        trial, noise = study.ask(), float(rng.choice(STDS))
        reward = (float(f(trial.point[None])[0]) - mean) / std + noise * rng.standard_normal()
        told = {"untold": None, "told": noise, "alike": float(np.sqrt(np.mean(np.square(STDS))))}[way]
        study.tell(trial, reward, std=told)
    return (f.best - float(f(study.best().point[None])[0])) / std


def worth_of_noise(seeds, trials):
    """Regret with and without the noise of each answer."""
    every, ways = {}, ("untold", "told", "alike")
    for problem in PROBLEMS:
        for way in ways:
            found = [regret_of_recommended(problem, way, seed, trials) for seed in range(seeds)]
            every.setdefault(way, []).append(np.array(found))
        untold, told, alike = (every[way][-1] for way in ways)
        print(f"{problem:10}: regret {untold.mean():.3f} untold; told over untold {ratio(told, untold)}, "
              f"all alike over untold {ratio(alike, untold)}")  # fmt: skip
    untold, told, alike = (np.mean(every[way], axis=0) for way in ways)
    print(f"all       : told over untold {ratio(told, untold)}, all alike over untold {ratio(alike, untold)}")


def corrupted(problem, sign, way, seed, trials):
    """Regret of the recommended point, in deviations, where a tenth of the answers is wrong (none if `sign` is 0)."""
    f = PROBLEMS[problem]
    low, high = f.domain.lower, f.domain.upper
    values = f(low + (high - low) * np.random.default_rng(0).uniform(size=(4000, len(low))))
    rng = np.random.default_rng(1000 + seed)
    noise, hit, size = (
        rng.standard_normal(trials),
        rng.random(trials) < 0.1,
        10.0 + 10.0 * abs(rng.standard_cauchy(trials)),
    )
    off = (
        size * hit * {"up": 1.0, "down": -1.0, "both": np.where(rng.random(trials) < 0.5, -1.0, 1.0), "none": 0.0}[sign]
    )
    points, rewards = [], []

    def study():
        made = bench.quiet(nr.auto(f.domain, budget=trials, noise=None if way == "auto" else STDS[0]), seed=seed)
        y, stds = np.array(rewards), [None] * len(rewards)
        if way == "weights" and rewards:
            far = y - np.median(y)
            c = max(float(np.quantile(abs(far), 0.8)), 4.0 * STDS[0])
            y, stds = np.median(y) + np.clip(far, -3.0 * c, 3.0 * c), (STDS[0] * np.hypot(1.0, far / c)).tolist()
        for i, each in enumerate(zip(points, y.tolist(), stds, strict=True)):
            if way != "spared" or not off[i]:
                made.add(each[0], each[1], std=each[2])
        return made

    for i in range(trials):
        points.append(study().ask().point)
        rewards.append((float(f(points[-1][None])[0]) - values.mean()) / values.std() + STDS[0] * noise[i] + off[i])
    return (f.best - float(f(study().best().point[None])[0])) / values.std()


def worth_of_weights(seeds, trials):
    """Regret with weights against outliers, beside that of today's rules."""
    for problem in ("Branin", "Hartmann-3"):
        for sign in ("none", "down", "both", "up"):
            each = {
                way: [corrupted(problem, sign, way, seed, trials) for seed in range(seeds)]
                for way in ("auto", "known", "weights", "spared")
            }
            means = ", ".join(f"{way} {np.mean(found):.3f}" for way, found in each.items())
            over = ratio(np.array(each["weights"]), np.array(each["auto"]))
            print(f"{problem:10}, outliers {sign:4}: {means}; weights over auto {over}", flush=True)


def searched(data, fold_noise, seed):
    """The search on a data set, and what its choice is worth on many other folds."""
    X, y, estimator, space = data
    search = NoRegretSearchCV(estimator, space, n_iter=20, cv=5, random_state=seed, fold_noise=fold_noise)
    search.fit(X, y)
    study = bench.quiet(search.policy_, seed=0)
    for trial in search.trials_:
        study.add(trial.parameters, trial.reward, std=trial.std)
    chosen = clone(estimator).set_params(**study.best().parameters)
    scores = cross_val_score(chosen, X, y, cv=RepeatedKFold(n_splits=5, n_repeats=10, random_state=99))
    return float(scores.mean()), float(np.std([trial.reward for trial in search.trials_]))


def worth_of_folds(seeds):
    """How much better the chosen candidate is with the noise of its folds than without."""
    svm = {"C": nr.Float(1e-2, 1e3, log=True), "gamma": nr.Float(1e-5, 1e1, log=True)}
    trees = {"max_depth": nr.Int(1, 12), "min_samples_leaf": nr.Int(1, 30)}
    cancer, wine, digits, diabetes = (load(return_X_y=True) for load in (
        datasets.load_breast_cancer, datasets.load_wine, datasets.load_digits, datasets.load_diabetes))  # fmt: skip
    problems = {
        "cancer, SVM": (*cancer, SVC(), svm), "wine, SVM": (*wine, SVC(), svm),
        "digits, tree": (digits[0][:600], digits[1][:600], DecisionTreeClassifier(random_state=0), trees),
        "diabetes, tree": (*diabetes, DecisionTreeRegressor(random_state=0), trees),
    }  # fmt: skip
    gains = []
    for name, data in problems.items():
        pairs = np.array([[searched(data, each, seed) for each in (False, True)] for seed in range(seeds)])
        gains.append((pairs[:, 1, 0] - pairs[:, 0, 0]) / pairs[:, :, 1].mean())
        print(f"{name:15}: with fold_noise better by {gains[-1].mean():+.3f} standard deviations of the scores")
    print(f"all            : better by {bench.difference(np.mean(gains, axis=0))}")


@bench.command(__doc__)
def main(options):
    if options.outliers:
        worth_of_weights(options.outliers, options.trials)
    elif options.folds:
        worth_of_folds(options.folds)
    else:
        worth_of_noise(options.seeds, options.trials)
