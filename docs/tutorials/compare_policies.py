"""
Compare policies for a paper
============================

You have a policy, or a choice between several, and want to say which has less regret, by how much, and how sure that
is. ``nr.compare`` runs all of them in the same worlds under the same noise. It gives a table of paired differences
with intervals, a data frame, and a figure for a paper. This page does it in a world that fits the theory, and in one
of real data that does not.
"""

# %%
# Six lines
# ---------
#
# Rewards are samples of a Gaussian process on 100 arms, another one for each seed: the setting of Srinivas et al.
# (2010). The policies know the kernel.
#
# A function of the seed makes the world. All policies meet the same function and the same noise with the same seed.
# So what differs between two of them in one run is the policy, and not the luck of the draw.

import tempfile

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

import nilregret as nr

arms, kernel = nr.Arms.grid(0, 1, 100), nr.SquaredExponential(0.1)


def drawn(seed):
    return nr.Environment(nr.environments.gp_sample(kernel, arms, seed=[7, seed]), domain=arms, noise=0.3)


policies = {
    "GP-UCB, Theorem 1": nr.gp_ucb(arms, kernel, noise=0.3),
    "GP-UCB, a fifth of beta": nr.gp_ucb(arms, kernel, noise=0.3, scale=0.2),
    "IRGP-UCB": nr.irgp_ucb(arms, kernel, noise=0.3),
    "Thompson sampling": nr.gp_ts(arms, kernel, noise=0.3, v=1.0, regularization=0.09),
    "expected improvement": nr.expected_improvement(arms, kernel, noise=0.3),
}
result = nr.compare(policies, drawn, rounds=150, seeds=range(60))
print(result)

# %%
# Read the table
# --------------
#
# - *Regret* is the sum over the rounds of what the best arm would have had more. *Simple* regret is that of the best
#   arm played so far.
# - The difference is to the policy with the least regret, with a 95% interval of the paired differences. If the
#   interval excludes 0, the policies differ in this world. An interval that includes 0 says that 60 seeds cannot
#   tell.
# - The intervals of all pairs hold at once. And the reference was chosen by the same runs, which makes differences
#   slightly too large. If your paper is about one policy, name it: ``baseline="IRGP-UCB"``. Intervals are narrower then.
#
# The proved width of Theorem 1 explores much more than it needs to. A fifth of it is what the authors' own
# experiments use. Nothing is proved for that one.
#
# The figure
# ----------
#
# ``plot`` draws the mean regret with its interval. With a path it writes a file: a PDF or an SVG is a vector graphic,
# which is what a journal wants.

result.plot(f"{tempfile.mkdtemp()}/regret.svg")

# %%
# A world that nobody drew
# ------------------------
#
# A drawn function flatters those who know the kernel. So here is a real one: the accuracy of a support vector machine
# on 300 images of digits, for 81 pairs of C and gamma. We compute it once, all of it. Then each policy looks for the
# best pair with noisy looks at it. The kernel is a guess, and so are mean and scale, as they would be in your
# problem.

images, digits = load_digits(return_X_y=True)
images, digits = images[:300] / 16.0, digits[:300]
grid = nr.Space(C=nr.Float(1e-2, 1e2, log=True), gamma=nr.Float(1e-4, 1.0, log=True)).grid(9)
accuracy = np.array(
    [cross_val_score(SVC(**grid.parameters(arm)), images, digits, cv=3).mean() for arm in range(len(grid))]
)
print(f"accuracies from {accuracy.min():.2f} to {accuracy.max():.2f}")


def looked_up(points):
    """Returns the accuracies at points (n, 2), from the table."""
    return accuracy[[int(np.abs(grid.points - point).sum(axis=1).argmin()) for point in points]]


world = nr.Environment(looked_up, domain=grid, noise=0.05)
prior = {"noise": 0.05, "prior_mean": 0.6}
guess = nr.SquaredExponential(0.3, scale=0.3**2)
contenders = {
    "GP-UCB, Theorem 1": nr.gp_ucb(grid, guess, **prior),
    "GP-UCB, a fifth of beta": nr.gp_ucb(grid, guess, scale=0.2, **prior),
    "IRGP-UCB": nr.irgp_ucb(grid, guess, **prior),
    "Thompson sampling": nr.gp_ts(grid, guess, v=1.0, regularization=0.05**2, **prior),
    "expected improvement": nr.expected_improvement(grid, guess, **prior),
}
real = nr.compare(contenders, world, rounds=100, seeds=range(20))
print(real)

# %%
# Regret is now in accuracy. The worlds of all seeds are the same table here. Only the noise differs, so the intervals
# speak about this table and not about support vector machines. For a claim of that size a paper needs many tables.

real.plot()

# %%
# The numbers
# -----------
#
# ``table`` has a row for each policy with all means, errors and intervals: what a referee asks for. ``to_pandas`` has
# the regret of each policy, seed and round, for statistics of your own. We ask for quantiles of the last round: where
# the mean is far above the median, a few seeds went badly wrong. That is a finding about a policy, which a mean with
# an error bar hides.

frame = result.to_pandas(every=150)
quantiles = frame.groupby("policy")["cumulative_regret"].quantile([0.1, 0.5, 0.9]).unstack()
print(quantiles.round(0).to_string())

same = "also" if result.best() == real.best() else "not"
print(f"{result.best()} has the least regret on drawn functions, and {same} on the real table.")

# %%
# What you learned
# ----------------
#
# - ``nr.compare(policies, worlds, rounds=, seeds=)`` is paired: the same world and noise for each policy.
# - Report differences with intervals, and say what the seeds vary: functions, or only noise.
# - A world that was drawn from your own prior is the easiest one. Add one that was not.
#
# Next: :doc:`/environments` has delays, changes, constraints and the data sets of five papers. :doc:`/papers/figures`
# makes their figures again. :doc:`/policies` has all policies with their theorems, and :doc:`/extending` parts of
# your own, which ``nr.compare`` takes as well.
