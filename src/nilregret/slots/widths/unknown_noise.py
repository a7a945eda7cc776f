"""Upper bound, in all rounds, on the standard deviation of Gaussian noise.

| symbol | name | meaning | shape |
|---|---|---|---|
| R | | standard deviation of the noise, the same everywhere, reward units | scalar |
| e_t | | reward of round t minus its prediction from the rounds before | reward units |
| w_t | | a weight in (0, 1] that is known before round t | |
| s | `SCALES` | half of a fixed factor on 1 / R^2 | (J,) |

Whatever the prediction, given the past e_t is normal around some number with variance R^2. So e_t^2 is no smaller, in
distribution, than R^2 times a chi-square of one degree of freedom. Hence E[exp(-s w_t e_t^2 / R^2) | past] <= (1 + 2 s
w_t)^{-1/2}, and for every s > 0

    exp(-s sum w_t e_t^2 / R^2) prod (1 + 2 s w_t)^{1/2}

is a supermartingale however the points were chosen. With probability 1 - delta it stays below 1 / delta in all rounds
(Ville). This says R^2 <= 2 s sum w_t e_t^2 / (sum ln(1 + 2 s w_t) - 2 ln(1 / delta)). For J values of s and two
predictions, delta is divided evenly. Both sums are functions of numbers that a posterior has anyway:

- Prediction by the posterior mean, with w_t = lambda / v_t and v_t = lambda + sigma_{t-1}^2(x_t). Then sum w_t e_t^2 =
  lambda y^T (K + lambda I)^{-1} y and sum ln(v_t / lambda) = LD. As ln(1 + 2 s e^{-u}) is convex in u, sum ln(1 + 2 s
  w_t) >= n ln(1 + 2 s e^{-LD / n}).
- Prediction by the mean of the k - 1 earlier rewards of the same arm, with w_t = (k - 1) / k. Then sum w_t e_t^2 is the
  sum of squared deviations of the rewards from the mean of their arm. With q = 2 s / (1 + 2 s), the other sum is over
  arms of n plays. For each it is the sum over k = 2, ..., n of ln(1 + 2 s) + ln(1 - q / k), a difference of log gammas.

Rewards that come together are predicted from those that came before them. The choice of rewards that come must not
depend on their values.
"""

from __future__ import annotations

import math

import numpy as np

from ..._utils.checks import Array
from ...gp import ArmPosterior, Posterior
from ...gp.protocol import RevisablePosterior
from ..envelope import Progress

SCALES = 2.0 ** np.array([-5, -4, -3, -2, -1, 0, 1, 2, 4, 6, 9, 14, 20, 40])  # the large ones serve the first rewards
UNKNOWN = 1e50  # reward units, the bound without any information


def noise_bound(posterior: Posterior, delta: float) -> float:
    """Returns an upper bound of R that holds in all rounds with probability 1 - delta.

    Before the first reward it is 0, when there is no noise yet.

    Args:
        posterior: posterior of the rewards.
        delta: failure probability.
    """
    if not isinstance(posterior, RevisablePosterior) or not posterior.count:
        return 0.0 if isinstance(posterior, RevisablePosterior) else UNKNOWN
    n, least = posterior.count, 2.0 * math.log(2.0 * len(SCALES) / delta)
    squares = posterior.regularization * posterior.quadratic_form
    spread = n * np.log1p(2.0 * SCALES * math.exp(-posterior.log_determinant_ratio / n))
    found = _least(squares, spread - least)
    if isinstance(posterior, ArmPosterior) and (several := posterior.plays[posterior.plays > 1]).size:
        found = min(found, _least(posterior.scatter_within_arms, _of_replicates(several) - least))
    return math.sqrt(found)


def bounded_noise(noise: float | None, delta: float, progress: Progress) -> tuple[float, float]:
    """Returns R in the units of the targets, and the failure probability that is left for the width.

    If R is unknown, the first is an upper bound of R, which takes half of delta.
    """
    if noise is not None:
        return progress.noise_factor * noise, delta
    answers = progress.posterior if progress.answers is None else progress.answers
    return noise_bound(answers, 0.5 * delta), 0.5 * delta


def _least(squares: float, rest: Array) -> float:
    """Returns the least bound on R^2 over the informative scales."""
    said = rest > 0.0
    return float((2.0 * SCALES[said] * max(squares, 0.0) / rest[said]).min()) if said.any() else UNKNOWN**2


def _of_replicates(plays: Array) -> Array:
    """Returns the sum of ln(1 + 2 s (k - 1) / k) over k = 2, ..., n of arms of n plays, `(J,)`."""
    from scipy.special import gammaln

    counts, arms = np.unique(plays, return_counts=True)
    q = (2.0 * SCALES / (1.0 + 2.0 * SCALES))[:, None]
    each = (counts - 1.0) * np.log1p(2.0 * SCALES)[:, None] + gammaln(counts + 1.0 - q) - gammaln(2.0 - q)
    return np.asarray((each - gammaln(counts + 1.0)) @ arms)
