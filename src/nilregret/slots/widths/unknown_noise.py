"""How large Gaussian noise of an unknown standard deviation may be, by what was told: an upper bound for all rounds.

| symbol | name | meaning | shape |
|---|---|---|---|
| R | | standard deviation of the noise, the same everywhere, reward units | scalar |
| e_t | | what was told in round t less what was predicted before, from the rounds before | reward units |
| w_t | | a weight in (0, 1] that is known before round t | |
| s | `SCALES` | half of a fixed factor on 1 / R^2 | (J,) |

Whatever was predicted, given the past e_t is normal around some number with variance R^2, so that e_t^2 is no smaller,
in distribution, than R^2 times a chi-square of one degree of freedom. Hence E[exp(-s w_t e_t^2 / R^2) | past] <=
(1 + 2 s w_t)^{-1/2}, and for every s > 0

    exp(-s sum w_t e_t^2 / R^2) prod (1 + 2 s w_t)^{1/2}

is a supermartingale however the points were chosen: with probability 1 - delta it stays below 1 / delta in all rounds
(Ville), which says R^2 <= 2 s sum w_t e_t^2 / (sum ln(1 + 2 s w_t) - 2 ln(1 / delta)). For J values of s and two
predictions delta is shared out evenly. Both sums are functions of what a posterior keeps anyway:

- prediction by the posterior mean, w_t = lambda / v_t, v_t = lambda + sigma_{t-1}^2(x_t): sum w_t e_t^2 = lambda y^T
  (K + lambda I)^{-1} y, sum ln(v_t / lambda) = LD, and ln(1 + 2 s e^{-u}) is convex in u, so that
  sum ln(1 + 2 s w_t) >= n ln(1 + 2 s e^{-LD / n});
- prediction by the mean of the k - 1 answers of the same arm before, w_t = (k - 1) / k: sum w_t e_t^2 is the squared
  deviations of the answers from the mean of their arm, and with q = 2 s / (1 + 2 s) the other is, over arms of n plays,
  sum over k = 2, ..., n of ln(1 + 2 s) + ln(1 - q / k), a difference of log gammas.

Answers that come together are predicted from what had come before them; which are answered must not depend on rewards.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from ..._utils.checks import Array
from ...gp import ArmPosterior, Posterior
from ...gp.protocol import RevisablePosterior
from ..envelope import Progress

SCALES = 2.0 ** np.array([-5, -4, -3, -2, -1, 0, 1, 2, 4, 6, 9, 14, 20, 40])  # the large ones for the first answers
UNKNOWN = 1e50  # reward units: a bound where nothing is known, beyond any reward


def noise_bound(posterior: Posterior, delta: float) -> float:
    """R is at most that, in all rounds with probability 1 - delta; 0 before any answer, when there is no noise yet.

    Args:
        posterior: of the answers.
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
    """R, or a bound of what is learned, and what that leaves of delta: half, where R is not known."""
    if noise is not None:
        return progress.noise_factor * noise, delta
    answers = progress.posterior if progress.answers is None else progress.answers
    return noise_bound(answers, 0.5 * delta), 0.5 * delta


def _least(squares: float, rest: Array) -> float:
    """The least bound on R^2 over the scales that say anything."""
    said = rest > 0.0
    return float((2.0 * SCALES[said] * max(squares, 0.0) / rest[said]).min()) if said.any() else UNKNOWN**2


def _of_replicates(plays: npt.NDArray[np.int64]) -> Array:
    """Sum of ln(1 + 2 s (k - 1) / k) over k = 2, ..., n of arms of n plays, `(J,)`."""
    from scipy.special import gammaln

    counts, arms = np.unique(plays, return_counts=True)
    q = (2.0 * SCALES / (1.0 + 2.0 * SCALES))[:, None]
    each = (counts - 1.0) * np.log1p(2.0 * SCALES)[:, None] + gammaln(counts + 1.0 - q) - gammaln(2.0 - q)
    return np.asarray((each - gammaln(counts + 1.0)) @ arms)
