"""What earlier studies are worth: eight models on five data sets, of which one is left out and the others were tuned.

    python benchmarks/tuning.py --suite transfer --cache /tmp/tuning [--seeds 2] [--trials 60] [--methods none like]

Every model was tuned on every data set in 40 trials of `nr.auto`. Then it is tuned on each again, from another seed:

| method | `like=` |
|---|---|
| none | nothing |
| like | the studies of this model on the other four data sets |
| negated | as `like` with the signs of their rewards changed |
| mirrored | as `like` with each parameter at the other end of its range |

Printed, with 95% intervals over the 40 pairs of model and data: the trials after which `like` has the mean regret that
`none` has after 15, 30 and 60, as a share of these; and the ratio of the mean regrets. Regret is normalised: 0 is the
best value of all runs, 1 the expected best of ten random points.
"""

import math
from functools import cache, partial

import numpy as np
from bench import Kept
from sklearn import datasets
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC

import nilregret as nr
from nilregret import Choice, Float, Int, Space

from .models import fitted

DATA = ("iris", "wine", "cancer", "digits-low", "digits-high")
METHODS = ("none", "like", "negated", "mirrored")
EARLIER, ROWS, RANDOM, UNIT = 40, 240, 60, 10


@cache
def split(data):
    """Training and validation halves of at most `ROWS` rows, standardised."""
    loader = {"cancer": "breast_cancer", "digits-low": "digits", "digits-high": "digits"}.get(data, data)
    X, y = getattr(datasets, f"load_{loader}")(return_X_y=True)
    if loader == "digits":
        wanted = y < 5 if data == "digits-low" else y >= 5
        X, y = X[wanted], y[wanted] % 5
    rows = np.random.default_rng(0).permutation(len(y))[:ROWS]
    X, X_valid, y, y_valid = train_test_split(X[rows], y[rows], test_size=0.5, random_state=0, stratify=y[rows])
    mean, std = X.mean(axis=0), X.std(axis=0)
    std = np.where(std > 0, std, 1.0)
    return (X - mean) / std, (X_valid - mean) / std, y, y_valid


def log_loss(model, data, *, by="predict_proba"):
    """The mean log probability of the validation classes, at least -10, smoothed by a hundredth."""
    X, X_valid, y, y_valid = split(data)
    scores = getattr(fitted(model, X, y), by)(X_valid)
    if by != "predict_proba":
        scores = np.column_stack([-scores, scores]) if np.ndim(scores) == 1 else scores
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        scores /= scores.sum(axis=1, keepdims=True)
    shares = 0.99 * scores + 0.01 / scores.shape[1]
    value = float(np.mean(np.log(shares[np.arange(len(y_valid)), y_valid])))
    return max(value, -10.0) if math.isfinite(value) else -10.0


def power(p):
    return FunctionTransformer(lambda X: np.sign(X) * np.abs(X) ** p)


def components(p, data):
    return min(p["components"], split(data)[0].shape[1])


def logistic(p, data):
    weight = "balanced" if p["balanced"] == "yes" else None
    model = LogisticRegression(C=p["C"], class_weight=weight, max_iter=30, tol=1e-3)
    return log_loss(make_pipeline(power(p["power"]), model), data)


def svm(p, data):
    model = SVC(C=p["C"], gamma=p["gamma"], kernel=p["kernel"], coef0=p["coef0"], max_iter=2000)
    return log_loss(model, data, by="decision_function")


def knn(p, data):
    model = KNeighborsClassifier(p["neighbours"], weights=p["weights"], p=p["p"], algorithm="brute")
    return log_loss(make_pipeline(PCA(components(p, data), whiten=p["whiten"] == "yes", random_state=0), model), data)


def trees(p, data):
    model = ExtraTreesClassifier(
        8, max_depth=p["depth"], min_samples_leaf=p["leaf"], max_features=p["features"], criterion=p["criterion"],
        random_state=0,
    )  # fmt: skip
    return log_loss(model, data)


def sgd(p, data):
    model = SGDClassifier(
        loss="log_loss", penalty="elasticnet", alpha=p["alpha"], l1_ratio=p["l1"], learning_rate=p["schedule"],
        eta0=p["step"], max_iter=10, tol=None, average=p["average"] == "yes", random_state=0,
    )  # fmt: skip
    return log_loss(model, data)


def mlp(p, data):
    model = MLPClassifier(
        p["units"], activation=p["activation"], alpha=p["alpha"], learning_rate_init=p["step"], batch_size=40,
        max_iter=8, random_state=0,
    )  # fmt: skip
    return log_loss(model, data)


def kernel_ridge(p, data):
    X, X_valid, y, y_valid = split(data)
    kind = {"kernel": p["kernel"], "gamma": p["gamma"], "coef0": p["coef0"]}
    model = fitted(KernelRidge(alpha=p["alpha"], **kind), X, np.eye(y.max() + 1)[y])
    return -min(float(np.mean((np.eye(y.max() + 1)[y_valid] - model.predict(X_valid)) ** 2)), 10.0)


def discriminant(p, data):
    model = QuadraticDiscriminantAnalysis(reg_param=p["shrinkage"])
    return log_loss(make_pipeline(power(p["power"]), PCA(components(p, data), random_state=0), model), data)


MODELS = {
    "logistic": (logistic, Space(C=Float(1e-4, 1e3, log=True), power=Float(0.3, 2.0), balanced=Choice("no", "yes"))),
    "svm": (svm, Space(
        C=Float(1e-2, 1e3, log=True), gamma=Float(1e-5, 1.0, log=True), kernel=Choice("rbf", "poly", "sigmoid"),
        coef0=Float(-1.0, 2.0),
    )),
    "knn": (knn, Space(
        neighbours=Int(1, 50, log=True), p=Float(1.0, 5.0), weights=Choice("uniform", "distance"),
        components=Int(1, 10), whiten=Choice("no", "yes"),
    )),
    "trees": (trees, Space(
        depth=Int(1, 20, log=True), leaf=Int(1, 30, log=True), features=Float(0.05, 1.0),
        criterion=Choice("gini", "entropy"),
    )),
    "sgd": (sgd, Space(
        alpha=Float(1e-6, 10.0, log=True), l1=Float(0.0, 1.0), step=Float(1e-4, 10.0, log=True),
        schedule=Choice("constant", "invscaling", "adaptive"), average=Choice("no", "yes"),
    )),
    "mlp": (mlp, Space(
        units=Int(4, 64, log=True), activation=Choice("relu", "tanh", "logistic"), alpha=Float(1e-6, 10.0, log=True),
        step=Float(1e-4, 1.0, log=True),
    )),
    "kernel-ridge": (kernel_ridge, Space(
        alpha=Float(1e-4, 1e2, log=True), gamma=Float(1e-5, 1.0, log=True), kernel=Choice("rbf", "poly", "laplacian"),
        coef0=Float(0.0, 2.0),
    )),
    "discriminant": (discriminant, Space(
        components=Int(1, 10), shrinkage=Float(1e-4, 1.0, log=True), power=Float(0.3, 2.0),
    )),
}  # fmt: skip


def like_of(records, method):
    """The earlier studies of a method as tables."""
    tables = []
    for space, points, values in records:
        points, values = np.array(points), np.array(values)
        if method == "negated":
            values = -values
        elif method == "mirrored":
            points = space.snap(space.upper - points)
        tables.append([{**space.decode(point), "reward": value} for point, value in zip(points, values, strict=True)])
    return tables


def play(study, value, trials):
    """The points and values of a run."""
    for _ in range(trials):
        trial = study.ask()
        study.tell(trial, value(trial.parameters))
    return [trial.point.tolist() for trial in study.trials], [trial.reward for trial in study.trials]


def random_values(space, value):
    points = space.snap(np.random.default_rng(1).uniform(space.lower, space.upper, (RANDOM, space.dimension)))
    return [value(space.decode(point)) for point in points]


def expected_best(values, count):
    """The expected best of so many of the values, drawn without replacement."""
    values = np.sort(values)
    weights = np.array([math.comb(i, count - 1) for i in range(len(values))], dtype=float)
    return float(values @ weights / weights.sum())


def curves(runs, methods, models, seeds, trials, make=nr.auto):
    """Normalised regret after each trial, `(methods, pairs, seeds, trials)`."""
    pairs = [regrets_of(runs, methods, name, data, seeds, trials, make) for name in models for data in DATA]
    return np.array(pairs).transpose(1, 0, 2, 3)


def regrets_of(runs, methods, name, data, seeds, trials, make):
    """Normalised regret of one model on one data set, `(methods, seeds, trials)`."""
    objective, space = MODELS[name]
    value = partial(objective, data=data)
    earlier = {each: earlier_run(runs, name, each) for each in DATA}
    drawn = runs.get(f"random/{name}/{data}", partial(random_values, space, value))
    values = []
    for method in methods:
        sources = [each for each in DATA if each != data]
        like = None if method == "none" else like_of([(space, *earlier[each]) for each in sources], method)
        play_one = partial(run, make, space, like, value, trials)
        keys = {seed: f"{method}/{name}/{data}/{seed}/{trials}" for seed in seeds}
        values.append([runs.get(key, partial(play_one, seed)) for seed, key in keys.items()])
    best = np.maximum.accumulate(np.array(values), axis=2)
    top = max(float(best.max()), max(drawn), max(earlier[data][1]))
    return (top - best) / max(top - expected_best(drawn, UNIT), 1e-9)


def earlier_run(runs, name, data):
    """The points and values of the study of a model on a data set that the others know."""
    objective, space = MODELS[name]
    started = partial(nr.Study, nr.auto(space), seed=1000)
    return runs.get(f"earlier/{name}/{data}", lambda: play(started(), partial(objective, data=data), EARLIER))


def run(make, space, like, value, trials, seed):
    more = {} if like is None else {"like": like}
    return play(nr.Study(make(space, **more), seed=seed), value, trials)[1]


def of_pairs(statistic, pairs):
    """A statistic of the pairs of model and data with its bootstrap interval, as text."""
    rng = np.random.default_rng(0)
    drawn = [statistic(rng.integers(pairs, size=pairs)) for _ in range(1000)]
    low, high = np.quantile(drawn, [0.025, 0.975])
    return f"{statistic(np.arange(pairs)):.2f} [{low:.2f}, {high:.2f}]"


def share(none, other, after):
    """The trials after which `other` has the mean regret of `none` after so many, as a share of these."""
    reached = np.flatnonzero(other <= none[after - 1])
    return ((reached[0] + 1) if len(reached) else len(other)) / after


def report(regrets, methods, trials):
    none = regrets[0].mean(axis=1)
    pairs = len(none)
    print(f"{pairs} pairs of model and data, {regrets.shape[2]} seeds; 95% intervals over pairs\n")
    marks = [after for after in (15, 30, 60) if after <= trials]
    print("| method | " + " | ".join(f"trials as share of {m}" for m in marks) + " | "
          + " | ".join(f"regret over none at {m}" for m in marks) + " |")  # fmt: skip
    print("|---" * (1 + 2 * len(marks)) + "|")
    for method, each in zip(methods, regrets, strict=True):
        mean = each.mean(axis=1)
        shares = [
            of_pairs(lambda i, m=m, x=mean: share(none[i].mean(axis=0), x[i].mean(axis=0), m), pairs) for m in marks
        ]
        ratios = [of_pairs(lambda i, m=m, x=mean: x[i, m - 1].mean() / none[i, m - 1].mean(), pairs) for m in marks]
        print(f"| {method} | " + " | ".join(shares + ratios) + " |")


def present(options):
    """Runs what is not kept, and prints."""
    trials = max(options.trials or [60])
    seeds = range(options.first_seed, options.first_seed + (options.seeds or 1))
    methods, models = options.methods or METHODS, options.problems or list(MODELS)
    report(
        curves(Kept(options.cache and options.cache / "transfer.jsonl"), methods, models, seeds, trials),
        methods,
        trials,
    )
