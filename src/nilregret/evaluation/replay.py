"""Replay of a policy that learns: it sees the rows of a log that it might have produced itself.

A row is learned from with probability min(1, c pi(a given x) / p), where p is its propensity. Then what is learned from
has the distribution of the policy's own decisions, wherever c pi <= p (Dudik, Erhan, Langford & Li, 2012). In each row
pi is the policy as it stands then. So pi / p is a weight of mean 1, also in rows that are not learned from.
"""

from __future__ import annotations

import numpy as np

from .._utils.checks import Array, many
from .._utils.errors import InvalidInput
from ..domains.domain import Arms
from ..policy.policy import Policy
from ..study.study import Study
from .log import Log

QUANTILE = 0.05  # of the propensities: the factor c
STREAM = 7  # of the random numbers that decide which rows are learned from


def replayed(policy: Policy, log: Log, *, seed: int) -> tuple[Array, int]:
    """Returns the policy's probabilities in each row as it learns, `(n, N)`, and the number of rows it learned from.

    Args:
        policy: on `Arms`, as many as the log has actions.
        log: whose contexts the policy takes.
        seed: of the policy and of the choice of rows.

    Raises:
        InvalidInput: the policy has other arms than the log.
    """
    domain = policy.domain
    if not isinstance(domain, Arms) or len(domain) != len(log.actions):
        there = many(len(domain), "arm") if isinstance(domain, Arms) else "none"
        raise InvalidInput(
            f"A policy that is replayed decides among {many(len(log.actions), 'arm')}, one for each action of the log "
            f"in their order, and this one has {there}."
        )
    goal = "maximize" if log.study is None else log.study.goal
    study = Study(policy, goal=goal, seed=seed)
    study.quiet = True
    table, learned = np.zeros((len(log), len(domain))), 0
    factor = float(np.quantile(log.propensities, QUANTILE))
    drawn = np.random.default_rng([seed, STREAM]).random(len(log))
    for row, (arm, propensity, reward) in enumerate(zip(log.taken, log.propensities, log.rewards, strict=True)):
        context = log.context(row) if policy.context is not None else None
        probabilities = study.probabilities(context=context)
        if probabilities is None:
            raise InvalidInput(
                "A part of this policy draws by a law that it does not say, so its probabilities are not known and it "
                "cannot be replayed.",
                advice="Say the law by `nilregret.slots.Score.law`.",
            )
        table[row] = probabilities
        if drawn[row] * propensity < factor * table[row, arm] and not np.isnan(reward):
            where = domain.points[arm] if domain.space is None else domain.parameters(int(arm))
            study.add(where, float(reward), context=context)
            learned += 1
    return table, learned
