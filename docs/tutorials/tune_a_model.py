"""
Tune a model
============

You have a model with some parameters: numbers, a choice, and some that count only under that choice. One
evaluation takes a moment, so you can afford a few dozen. This page finds good ones, stops and resumes the search,
sees which parameter matters, and checks the result on images that the search never saw.

It runs in seconds: ``pip install "nilregret[plot]" scikit-learn``.
"""

# %%
# The model
# ---------
#
# A classifier of handwritten digits, from the data that scikit-learn ships. To make it a real question we have only
# 300 labelled images. The other 1,497 are put aside to check the result at the end.
#
# The model maps each image to features of a kernel (Nystroem's approximation), and fits a logistic regression to
# them. What we want is a small *log loss*: it punishes a model that is sure and wrong, in nats per image.

import tempfile
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline

import nilregret as nr

warnings.simplefilter("ignore", ConvergenceWarning)  # A fit that was cut short is judged by its loss, too.

images, digits = load_digits(return_X_y=True)
images = images / 16.0
train, test, train_digits, test_digits = train_test_split(
    images, digits, train_size=300, stratify=digits, random_state=0
)


def model(kernel, n_components, C, gamma=None, degree=None):
    features = Nystroem(kernel=kernel, gamma=gamma, degree=degree, n_components=n_components, random_state=0)
    return make_pipeline(features, LogisticRegression(C=C, max_iter=100))


# %%
# The space
# ---------
#
# ``log=True`` says that the step from 1 to 10 is as large as the step from 10 to 100. ``nr.when`` declares a
# parameter that counts under one option only: a polynomial kernel has a degree, and a Gaussian one does not.

space = nr.Space(
    kernel=nr.Choice("rbf", "poly"),
    gamma=nr.when("kernel", "rbf", nr.Float(1e-4, 10.0, log=True)),
    degree=nr.when("kernel", "poly", nr.Int(1, 6)),
    n_components=nr.Int(5, 150, log=True),
    C=nr.Float(1e-3, 1e4, log=True),
)

# %%
# The objective
# -------------
#
# The objective takes parameters and returns a number. Ours is the mean loss over four folds of the 300 images. The
# folds are the same in each trial, so that two trials differ by their parameters and not by the luck of the split.


def folds(seed, **parameters):
    """Returns the log loss on each of four folds, an array of 4."""
    split = StratifiedKFold(4, shuffle=True, random_state=seed)
    return -cross_val_score(model(**parameters), train, train_digits, cv=split, scoring="neg_log_loss")


def loss(**parameters):
    return folds(0, **parameters).mean()


# %%
# Search, stop, and go on
# -----------------------
#
# With ``storage=``, each trial is on disk as soon as it is known. Here we ask for 10 trials, as if the machine went
# down after them, and then for 25. The second call finds the first 10 in the file and runs the 15 that are missing.
# (This page uses a new folder for each run. Yours would be a path of your own.)

storage = f"sqlite:///{tempfile.mkdtemp()}/digits.db"
first = nr.minimize(loss, space, trials=10, storage=storage, name="digits", progress=False)
print(f"after {len(first.history)} trials: {first.best_value:.3f}")

result = nr.minimize(loss, space, trials=25, storage=storage, name="digits", progress=False)
print(f"after {len(result.history)} trials: {result.best_value:.3f}")
for name, value in result.best_parameters.items():
    print(f"  {name} = {value if isinstance(value, str) else format(value, '.3g')}")

# %%
# Am I done?
# ----------
#
# Points are trials, the line is the best loss so far. The title says when the best last improved, and what a further
# trial is expected to gain.

nr.plots.history(result)

# %%
# If the loss still falls at the end, call again with a larger ``trials=``.
#
# Which parameter matters?
# ------------------------
#
# The search has learned a model of the loss. From it follows the share of each parameter in the variation of the
# loss, over the whole space (left) and among its best tenth (right). After so few trials the intervals are wide: read
# the order, not the digits.  Look at the best values above, too: if one lies at an end of its range, widen the range.

nr.plots.importance(result)

# %%
# Compare with random search
# --------------------------
#
# Random search is hard to beat in easy problems: if a fifth of the space is good, ten random points nearly always hit
# it. So we give it the same number of trials. Here it is the same policy with each round drawn uniformly. A claim
# needs many seeds, as in :doc:`compare_policies`. Two show a little of the luck.

uniform = nr.auto(space).using(explore=nr.slots.Uniform(1.0))
random = [nr.minimize(loss, space, trials=25, policy=uniform, seed=seed, progress=False) for seed in (0, 1)]
learned = [result, nr.minimize(loss, space, trials=25, seed=1, progress=False)]

fig, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
for runs, color, label in ((random, "tab:orange", "random search"), (learned, "tab:blue", "nilregret")):
    for i, run in enumerate(runs):
        best = np.minimum.accumulate([row["value"] for row in run.history])
        ax.step(range(1, 26), best, where="post", color=color, label=None if i else label)
ax.set(xlabel="trials", ylabel="best log loss so far, nats", yscale="log", title="The same space, two seeds each")
ax.set_yticks([0.2, 0.5, 1.0, 2.0], ["0.2", "0.5", "1", "2"])
ax.minorticks_off()
ax.legend()

# %%
# How much is luck of the folds?
# ------------------------------
#
# The best of many scores flatters itself: some of it is luck on these very folds. So we take the winners to *other*
# folds, and then to the 1,497 images that no search has seen. The standard error says how far a mean over folds can
# be trusted.

plain = {"kernel": "rbf", "gamma": 1.0 / 64, "n_components": 100, "C": 1.0}  # scikit-learn's values
final = {}
for name, parameters in (
    ("scikit-learn's values", plain),
    ("random search", min(random, key=lambda run: run.best_value).best_parameters),
    ("nilregret", min(learned, key=lambda run: run.best_value).best_parameters),
):
    scores = np.concatenate([folds(seed, **parameters) for seed in (1, 2)])
    error = scores.std(ddof=1) / np.sqrt(len(scores))
    fitted = model(**parameters).fit(train, train_digits)
    final[name] = log_loss(test_digits, fitted.predict_proba(test))
    print(f"{name:22s} other folds {scores.mean():.2f} +- {error:.2f}, new images {final[name]:.2f}")

ratio = final["nilregret"] / final["random search"]
print(f"On new images the loss is {ratio:.1f} times that of random search.")

# %%
# If your folds differ from trial to trial, tell the noise with the score: the objective returns ``{"reward": mean,
# "std": error}``. An exact score then counts for more than a vague one, and the best trial is the one with the best
# posterior mean. Here equal folds have taken that noise out of the comparison.
#
# What you learned
# ----------------
#
# - ``nr.minimize(objective, space, trials=...)`` is the whole search, with mixed and conditional parameters.
# - ``storage=`` makes it safe to stop, and the same call with more trials goes on.
# - ``nr.plots.history`` says whether to go on, ``nr.plots.importance`` where to look.
# - A comparison wants the same budget, several seeds, and data that no search has seen.
#
# Next: :doc:`/maximize` has limits on what is found, failures and time limits. :doc:`/workers` evaluates several
# trials at once. :doc:`/tune` does the same from a file without Python, and :doc:`/sklearn` is a drop-in for
# ``GridSearchCV``.
