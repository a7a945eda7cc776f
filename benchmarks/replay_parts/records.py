"""Long records, made without deciding: points by chance, answers, and fits where the schedule has them."""

import numpy as np

import nilregret as nr
from nilregret._utils.checks import frozen
from nilregret.slots.refit import WARPS, Refitted
from nilregret.storage import Change
from nilregret.storage.trial import Fit, Trial

FITTED = 200  # answers that a fit looks at here, at most: opening takes as long whatever a fit has found


def fits_of(policy, rows, rewards):
    """By the number of answers before it, what comes into force: of warped rewards with a map of all of them."""
    refit, found, known = policy.fitting, {}, None
    for number in range(1, refit.fits(len(rows)) + 1) if refit is not None else ():
        seen = refit.seen_by(number)
        if known is None or seen <= FITTED:
            known = refit(
                policy.kernel, rows[:seen], rewards[:seen], policy.sides, noise=policy.regularization**0.5, seed=0,
                prior_mean=policy.prior_mean,
            )  # fmt: skip
        whole = Refitted(known.kernel, known.regularization, known.scale, WARPS[refit.warp](rewards[:seen]))
        found[seen] = (Fit(0, number, whole.plain()),)
    return found


def trials_of(policy, count, *, reward=None):
    """Asked and answered one after the other."""
    rng, domain = np.random.default_rng(0), policy.domain
    arms = rng.integers(len(domain), size=count) if isinstance(domain, nr.Arms) else None
    points = rng.uniform(domain.lower, domain.upper, (count, domain.dimension)) if arms is None else domain.points[arms]
    values = np.sin(9.0 * points[:, 0]) + 0.3 * points[:, -1] + 0.1 * rng.normal(size=count)
    values = values if reward is None else reward(points, rng)
    fits = fits_of(policy, points, values)
    nothing = None if policy.fitting is None else ()
    return [
        Trial(
            number, frozen(points[number].copy()), None if arms is None else int(arms[number]),
            tuple(domain.decode(points[number]).items()) if isinstance(domain, nr.Space) else None, 2 * number + 1,
            float(number), state="observed", reward=float(values[number]), told_order=2 * number + 2,
            told_at=float(number), fits=fits.get(number, nothing),
        )
        for number in range(count)
    ]  # fmt: skip


def put(storage, name, policy, trials):
    """A study with this record."""
    stored = storage.find_or_make(name, policy=policy.to_json(), goal="maximize", seed=1, about="{}")
    with storage.writing(stored) as writer:
        writer.save([Change(None, trial) for trial in trials], order=2 * len(trials))
