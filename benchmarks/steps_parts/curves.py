"""Learning curves of real trainings on scrambled Sobol designs, kept in a folder, and the problems made of them.

    python benchmarks/steps_parts/curves.py FOLDER wine friedman digits

A design has 264 configurations of three parameters: the 8 corners of the box and 256 Sobol points. Parameters are told
as numbers in [0, 1], which stand for logarithms. Between configurations a curve is linear on the simplices of a
Delaunay triangulation, so that a step of a trial costs nothing. All values are to be maximised.

    wine       40 epochs of scikit-learn's SGD on shipped classes, minus log loss. The rate is held for a share of the
               run, then falls: what is held long starts badly and ends well.
    friedman   50 steps of 6 trees of LightGBM on `make_friedman1`, minus the root mean squared error.
    digits     30 epochs of a network of 12 hidden units on scikit-learn's digits, accuracy on the held-out part.
    noisy      digits, where each trial has one of four initial weights and is judged by 125 held-out rows at random.
    slow       40 steps, a formula made by hand against early stopping: the best configurations start worst.
"""

import sys
import warnings
from functools import cache, cached_property
from itertools import product
from pathlib import Path

import numpy as np
from scipy.interpolate import LinearNDInterpolator
from scipy.stats import qmc

STEPS = {"wine": 40, "friedman": 50, "digits": 30, "noisy": 30, "slow": 40}
CROSSING = ("wine", "friedman", "slow")  # the final best among the worse half at an eighth of the steps
ROWS = 125  # by which each step of `noisy` is judged
SHARE = 0.5  # of the rows that are trained on
CORNERS = np.array(list(product([0.0, 1.0], repeat=3)))
RANGES = {  # of the three parameters, on a logarithmic scale
    "wine": [(1e-4, 1.0), (1e-6, 1e-1), (0.1, 1.0)],  # rate, penalty, share of the run at the first rate
    "friedman": [(0.004, 0.5), (3, 64), (2, 60)],  # rate, leaves, smallest leaf
    "digits": [(1e-3, 3.0), (0.02, 1.0), (1e-6, 1e-1)],  # rate, 1 - momentum, penalty
}


def design(size=256):
    """Returns the configurations (8 + size, 3)."""
    return np.vstack([CORNERS, qmc.Sobol(3, rng=0).random(size)])


def scaled(problem, points):
    """Returns the parameters of configurations, (n, 3)."""
    low, high = np.array(RANGES[problem]).T
    return low * (high / low) ** points


def halves(inputs, targets, share=SHARE):
    order = np.random.default_rng(0).permutation(len(targets))
    cut = int(share * len(order))
    return inputs[order[:cut]], targets[order[:cut]], inputs[order[cut:]], targets[order[cut:]]


# -- trainings -----------------------------------------------------------------------------------------------------


def wine(points):
    from sklearn.datasets import make_classification
    from sklearn.linear_model import SGDClassifier

    inputs, targets = make_classification(
        1200, 13, n_informative=8, n_classes=3, flip_y=0.05, class_sep=1.0, random_state=3
    )
    shown, classes, held, answers = halves((inputs - inputs.mean(0)) / inputs.std(0), targets, 0.3)
    for rate, penalty, hold in scaled("wine", points):
        model = SGDClassifier(loss="log_loss", alpha=penalty, learning_rate="constant", eta0=rate, random_state=0)
        curve = []
        for time in np.linspace(0.0, 1.0, STEPS["wine"]):
            model.eta0 = rate * 0.01 ** (max(0.0, time - hold) / max(1e-9, 1.0 - hold))
            model.partial_fit(shown, classes, classes=np.arange(3))
            chances = model.predict_proba(held)[np.arange(len(held)), answers]
            curve.append(np.log(np.clip(chances, 1e-3, 1.0)).mean())
        yield curve


def friedman(points):
    import lightgbm
    from sklearn.datasets import make_friedman1

    shown, classes, held, answers = halves(*make_friedman1(900, 10, noise=1.0, random_state=1))
    for rate, leaves, smallest in scaled("friedman", points):
        model = lightgbm.LGBMRegressor(
            n_estimators=6 * STEPS["friedman"], learning_rate=rate, num_leaves=round(leaves), subsample=0.7,
            subsample_freq=1, min_child_samples=round(smallest), random_state=0, n_jobs=1, verbose=-1,
        )  # fmt: skip
        model.fit(shown, classes, eval_set=[(held, answers)], eval_metric="rmse")
        yield -np.array(model.evals_result_["valid_0"]["rmse"][5::6])


def digits(points, seeds=4, hidden=12, batch=60):
    """Yields the curves of all configurations at once, (n, T), for each of four initial weights."""
    from sklearn.datasets import load_digits

    inputs, targets = load_digits(return_X_y=True)
    shown, classes, held, answers = halves((inputs / 16.0).astype("f4"), targets, 0.3)
    wanted, count = np.eye(10, dtype="f4")[classes], len(points)
    rate, friction, penalty = scaled("digits", points).T.astype("f4")[:, :, None, None]

    def one(rows):
        return np.concatenate([rows, np.ones((*rows.shape[:-1], 1), "f4")], -1)

    def forward(rows, weights):
        rows = one(rows)
        inner = one(np.maximum(rows @ weights[0], 0.0))
        outer = inner @ weights[1]
        chances = np.exp(outer - outer.max(-1, keepdims=True))
        return rows, inner, chances / chances.sum(-1, keepdims=True)

    for seed in range(seeds):
        rng, curves = np.random.default_rng(seed), []
        weights = [rng.normal(0.0, 0.18, (1, 65, hidden)), rng.normal(0.0, 0.4, (1, hidden + 1, 10))]
        weights = [np.repeat(each.astype("f4"), count, 0) for each in weights]
        speeds = [np.zeros_like(each) for each in weights]
        for _ in range(STEPS["digits"]):
            order = rng.permutation(len(shown))
            for rows in np.split(order, range(batch, len(order), batch)):
                below, inner, chances = forward(shown[rows], weights)
                error = (chances - wanted[rows]) / len(rows)
                back = (error @ weights[1][:, :-1].transpose(0, 2, 1)) * (inner[..., :-1] > 0)
                for i, slope in enumerate((below.T @ back, inner.transpose(0, 2, 1) @ error)):
                    slope = np.clip(np.nan_to_num(slope), -5.0, 5.0) + penalty * weights[i]
                    speeds[i] = (1.0 - friction) * speeds[i] + slope
                    weights[i] = np.clip(weights[i] - rate * speeds[i], -50.0, 50.0)
            curves.append((forward(held, weights)[2].argmax(-1) == answers).mean(-1))
        yield np.array(curves).T


def slow(points):
    """Returns curves (n, 40) of the formula. The better the end, the worse the start: they cross at about step 7."""
    bump = np.exp(-8.0 * ((points[:, :1] - 0.7) ** 2 + (points[:, 1:2] - 0.3) ** 2))
    steps = np.arange(1, STEPS["slow"] + 1)
    wave = 0.004 * np.sin(37.0 * points.sum(1, keepdims=True) + 2.1 * steps)
    return 0.5 + 0.5 * bump + 0.03 * points[:, 2:] - (0.3 + 0.9 * bump) * steps**-0.3 + wave


MAKERS = {"wine": wine, "friedman": friedman, "digits": digits}


def made(name, folder):
    """Returns the curves of a design, from the folder if they were made before: (n, T), of digits (4, n, T)."""
    path = Path(folder) / f"steps-{name}.npy"
    if not path.exists():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            curves = np.array(list(MAKERS[name](design())))
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, curves)
    return np.load(path)


# -- problems ------------------------------------------------------------------------------------------------------


class Problem:
    """Curves of any configuration, and the regret of its final value."""

    def __init__(self, name, folder):
        self.name, self.steps, self.folder = name, STEPS[name], folder
        finals = self.means[:, -1]
        self.best, self.unit = finals.max(), finals.max() - np.median(finals)

    @cached_property
    def points(self):
        """Configurations whose curves are known, (n, 3)."""
        if self.name != "slow":
            return design()
        return np.vstack([np.random.default_rng(5).random((4000, 3)), [[0.7, 0.3, 1.0]]])

    @cached_property
    def tables(self):
        """Curves by seed of the training, (seeds, n, T)."""
        if self.name == "slow":
            return slow(self.points)[None]
        found = made("digits" if self.name == "noisy" else self.name, self.folder)
        return found if self.name == "noisy" else found.reshape(-1, len(self.points), self.steps)[:1]

    @cached_property
    def means(self):
        return self.tables.mean(0)

    @cached_property
    def between(self):
        rows = np.stack([self.means, *(self.tables - self.means)], 1)  # (n, 1 + seeds, T)
        return LinearNDInterpolator(self.points, rows.reshape(len(rows), -1))

    def curve(self, point, draw=0):
        """Returns the curve that a training shows (T,) and the final value without noise; `draw` seeds noise."""
        point = np.clip(point, 0.0, 1.0)
        if self.name == "slow":
            curve = slow(point[None])[0]
            return curve, curve[-1]
        means, *deviations = self.between(point[None])[0].reshape(-1, self.steps)
        if self.name != "noisy":
            return means, means[-1]
        rng, count = np.random.default_rng(draw), len(deviations)
        curve = means + deviations[rng.integers(count)] * np.sqrt(count / (count - 1))
        return rng.binomial(ROWS, np.clip(curve, 0.0, 1.0)) / ROWS, means[-1]

    def regret(self, final):
        """Returns the loss against the best configuration, in units of that of the median one."""
        return max(0.0, self.best - final) / self.unit


@cache
def problem(name, folder):
    return Problem(name, folder)


if __name__ == "__main__":
    for each in sys.argv[2:]:
        made(each, sys.argv[1])
