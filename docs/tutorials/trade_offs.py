"""
Weigh error against size
========================

Two outcomes matter, and they pull against each other: a model that errs less is larger. You do not know yet how much
error a small model is worth. This page finds the best trade-offs in few trials, shows them, picks one, and checks it
on images that the search never saw.

It runs in seconds: ``pip install "nilregret[plot]" scikit-learn``.
"""

# %%
# The model
# ---------
#
# A forest reads handwritten digits, from the data that scikit-learn ships. It has to fit into a small device, so its
# size matters: the number of nodes in all its trees. We have 300 labelled images. The other 1,497 are put aside to
# check the result at the end.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import StratifiedKFold, train_test_split

import nilregret as nr

images, digits = load_digits(return_X_y=True)
train, test, train_digits, test_digits = train_test_split(
    images, digits, train_size=300, stratify=digits, random_state=0
)


def forest(trees, depth, pixels, leaf, rows=train, labels=train_digits):
    model = ExtraTreesClassifier(trees, max_depth=depth, max_features=pixels, min_samples_leaf=leaf, random_state=0)
    return model.fit(rows, labels)


def nodes(model):
    return sum(tree.tree_.node_count for tree in model.estimators_)


# %%
# The space
# ---------
#
# More trees, deeper trees and smaller leaves make a larger forest. ``pixels`` is the number of pixels that compete for
# each split. It costs no nodes, so the search should find out which number is best for each size.

space = nr.Space(
    trees=nr.Int(1, 30, log=True),
    depth=nr.Int(2, 12),
    pixels=nr.Int(1, 64, log=True),
    leaf=nr.Int(1, 8, log=True),
)

# %%
# Two outcomes
# ------------
#
# The objective returns both by name. The error is the mean over three folds, the same in each trial. The size goes
# from ten nodes to ten thousand. We tell its logarithm, since half the size is worth about as much for a large forest
# as for a small one. What is spread over such a range is best told this way: the search then looks at all sizes
# alike.


def outcomes(**parameters):
    errors, sizes = [], []
    split = StratifiedKFold(3, shuffle=True, random_state=0)
    for here, there in split.split(train, train_digits):
        model = forest(**parameters, rows=train[here], labels=train_digits[here])
        errors.append(1.0 - model.score(train[there], train_digits[there]))
        sizes.append(nodes(model))
    return {"error": float(np.mean(errors)), "size": float(np.log10(np.mean(sizes)))}


# %%
# The search
# ----------
#
# Both outcomes should be small, so a list of their names says all. With a goal for each, it would be
# ``objectives={"error": "minimize", "size": "minimize"}``.

result = nr.minimize(outcomes, space, objectives=["error", "size"], trials=40, progress=False)
front = result.study.front_values()
print(f"{len(front.trials)} of 40 trials are on the front:")
for trial, (error, size), (spread, _) in zip(front.trials, front.mean, front.std, strict=True):
    print(f"  error {error:.1%} +- {spread:.1%} with {10**size:5.0f} nodes: {trial.parameters}")

# %%
# The first line has the least error and the second the least size. The others follow, from small error to small size.
# No trial beats one of them: what has less error is larger. Trials are compared by what the model of each outcome has
# learned from all of them, and not by the values told. A score that was lucky on these folds does not hide a better
# forest.
#
# Look at the front
# -----------------
#
# The line bounds what the trials have reached. A steep part is a bargain: a little of one outcome buys much of the
# other. Which point is best is not for the search to say. You say it by weights. ``best`` compares how far each trial
# is from the best error and from the least size, in shares of the front. Here error counts twice as much.

weights = {"error": 2, "size": 1}
chosen = result.best(weights=weights)
print(f"chosen: trial {chosen.number}, {chosen.parameters}")
nr.plots.front(result, weights=weights)

# %%
# Compare with random search
# --------------------------
#
# Fronts are compared by the volume that they dominate. With two outcomes it is the area between the front and a
# reference, the worst pair of values that is worth anything. We take an error of 60% and 10,000 nodes. The volume has
# no unit that means something, and serves comparisons under one reference only. Two seeds show a little of the luck.

uniform = nr.auto(space, objectives=("error", "size")).using(explore=nr.slots.Uniform(1.0))
reference = (0.6, 4.0)
runs = {"nilregret": [result], "random search": []}
runs["nilregret"].append(nr.minimize(outcomes, space, objectives=["error", "size"], trials=40, seed=1, progress=False))
for seed in (0, 1):
    runs["random search"].append(
        nr.minimize(outcomes, space, objectives=["error", "size"], trials=40, policy=uniform, seed=seed, progress=False)
    )

fig, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
for (name, found), color in zip(runs.items(), ("tab:blue", "tab:orange"), strict=True):
    for i, run in enumerate(found):
        told = np.array(sorted(trial.values for trial in run.front))
        ax.step(100 * told[:, 0], 10 ** told[:, 1], where="post", color=color, label=None if i else name)
    volumes = [run.study.hypervolume(reference) for run in found]
    print(f"{name:14s} volume {volumes[0]:.3f} and {volumes[1]:.3f}")
ax.set(xlabel="error, %", ylabel="nodes", yscale="log", title="Fronts of 40 trials, two seeds each")
ax.legend()

# %%
# New images
# ----------
#
# The best of many scores flatters itself. So we fit the chosen forest and the two ends of the front to all 300 images,
# and read the 1,497 that no search has seen.

least_error, least_size = result.front[:2]
for name, trial in (("least error", least_error), ("chosen", chosen), ("least size", least_size)):
    model = forest(**trial.parameters)
    error = 1.0 - model.score(test, test_digits)
    print(f"{name:12s} error {error:.1%} on new images, {nodes(model):,} nodes")

# %%
# If one of the outcomes only has to be good enough, a constraint finds more. ``constraints="size <= 3"`` looks for the
# least error up to 1,000 nodes. It spends nothing on smaller forests.
#
# What you learned
# ----------------
#
# - ``nr.minimize(objective, space, objectives=[...], trials=...)`` looks for a front, and ``result.front`` has its
#   trials, the best of each objective first.
# - ``result.best(weights={...})`` picks one of them by what you say that each outcome is worth.
# - An outcome that spans powers of ten is told as its logarithm.
# - Fronts are compared by their volume under one reference.
#
# Next: :doc:`/objectives` has goals, noise, late answers and what is proved. :doc:`/constraints` is for outcomes that
# must stay below a limit. :doc:`tune_a_model` is the same kind of model with one outcome.
