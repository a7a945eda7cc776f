"""Bound of a study's regret so far, for policies whose theorem gives one."""

from __future__ import annotations

import math
from typing import cast

import numpy as np

from ..domains.domain import Arms
from ..policy.engines import row_of
from ..policy.policy import Policy
from ..slots.envelope import Confidence, FiniteBayes
from ..study.study import Study
from ..theory.regret_bounds import sum_of_deviations_bound


def regret_bound(study: Study) -> float | None:
    """Returns R_T <= 2 beta_T sum sigma_{t-1}(x_t) after T rounds, in reward units, or None if nothing is proved.

    This is how Srinivas et al. 2010 (Lemmas 5.2 and 5.4) and Chowdhury & Gopalan 2017 (Theorem 3) bound the regret of a
    policy that plays the highest upper bound. Here the realised information gain replaces its largest value.

    The bound needs confidence bounds that are proved for f, and finitely many arms. It also needs each answer before
    the next decision. With later answers, and for the later plays of a run (`switching`), another posterior has
    decided. The width must never fall, so that the last one is the largest. With unknown noise it falls, because the
    noise is bounded ever more closely. With a sketch it may fall, because the next sketch may be a better one.
    """
    policy, trials = study.policy, study.trials
    if not isinstance(policy, Policy) or not _proves(policy):
        return None
    played = [trial for trial in trials if trial.state != "pending"]
    prompt = all(
        trial.state == "observed" and trial.told_order == trial.asked_order + 1 and not trial.corrected
        for trial in played
    )
    width = study.width
    if not played or not prompt or len(trials) > len(played) + 1 or math.isnan(width):
        return None
    rows = np.stack([row_of(trial) for trial in played])
    deviations = sum_of_deviations_bound(
        len(played), information_gain=study.information_gain, regularization=policy.regularization,
        prior_variance=float(policy.kernel.diagonal(rows).max()),
    )  # fmt: skip
    return 2.0 * _largest(width, policy.confidence, len(played)) * deviations


def _largest(width: float, confidence: Confidence, rounds: int) -> float:
    """Returns the largest width of all rounds, given the last. Widths grow unless a series shares delta unevenly."""
    series = getattr(confidence, "series", None)
    if series is None:
        return width
    bayes = cast(FiniteBayes, confidence)  # of the widths that grow, this one alone has a series
    return max(width, bayes.width(max(range(1, rounds + 1), key=series.log)))


def _proves(policy: Policy) -> bool:
    certain = policy.valid_for == "f" and policy.plain and not policy.explore.ever and policy.switching is None
    highest = policy.score.highest_bound and isinstance(policy.domain, Arms)
    return certain and highest and not policy.constraint_count and policy.sketch is None and _grows(policy.confidence)


def _grows(confidence: Confidence) -> bool:
    """Returns whether the width never falls. For `FiniteBayes` this leaves out its series (see `_largest`)."""
    return confidence.grows and getattr(confidence, "noise", 0.0) is not None
