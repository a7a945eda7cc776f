"""The log of a study, and contexts as its policy takes them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .._utils.checks import Array, IndexArray, many, shown
from ..domains.domain import Arms
from ..errors import InvalidInput
from ..policy.policy import Policy
from ..storage.trial import Trial, metric_names, was_asked
from ..study.cautions import NO_ARMS
from ..study.study import Study
from ..study.visits import trial_units
from ..study.waiting import counted_trials
from .log import WAITING, Log, checked

MOST_NAMED = 10  # metrics in an error


def log_of_study(study: Study, reward: str | None = None) -> Log:
    """Returns the decisions of a study on arms, with the propensities that it recorded.

    Trials that `Study.enqueue` named are left out, since no policy drew them. A decision counts once its answer is not
    waited for any more, with the default reward if it is silent then (`nilregret.study.waiting`). Trials that were
    added with a propensity are decisions too: they come from another study or from a log.

    Args:
        study: whose policy has `Arms`.
        reward: "metrics.NAME" for a metric in the place of the reward, or None.

    Raises:
        InvalidInput: the domain is continuous, no trial has a propensity, or all are still waited for.
    """
    domain = arms_of(study)
    trials, waiting = counted_trials(study)
    if reward not in (None, "reward"):
        trials = _measured(trials, str(reward))
    added = [not was_asked(trial) for trial in trials]
    queued = sum(trial.enqueued for trial in trials)
    asked: list[Trial] = []
    alone: list[Trial] = []
    for trial, new in zip(trials, added, strict=True):
        if trial.propensity is not None or not (new or trial.enqueued):
            asked.append(trial)
        elif trial.reward is not None:
            alone.append(trial)
    of_others = any(new and trial.propensity is not None for trial, new in zip(trials, added, strict=True))
    if waiting and not asked:
        raise InvalidInput(
            f"All {many(waiting, 'decision')} are still waited for. If only some answers come at once, such as clicks, "
            "those of young decisions are no fair sample. So a decision counts once its wait is over: its deadline, or "
            "the time in which 99% of the answers come, which needs five of them. Ask again later."
        )
    left_out = {
        "added without being asked for": len(trials) - len(asked) - queued, "named by `enqueue`": queued,
        WAITING: waiting,
    }  # fmt: skip
    log = replace(
        _of_trials(study, asked),
        available=study.replica.roster.playable_at([trial.asked_order for trial in _draws(study, asked)]),
        least=None if of_others else _least(study, len(domain)),  # The policy of others may have had no floor.
        recorded=not of_others, left_out={reason: count for reason, count in left_out.items() if count},
        unweighed=_of_trials(study, alone) if alone else None,
    )  # fmt: skip
    failed = np.array([trial.state == "failed" for trial in asked], dtype=bool)
    return checked(log.only(~failed, "failed"))


def _measured(trials: list[Trial], column: str) -> list[Trial]:
    """Returns trials with a metric in the place of their reward."""
    prefix, _, name = column.partition(".")
    known = metric_names(trials)
    if prefix != "metrics" or name not in known:
        there = ", ".join(f"'metrics.{each}'" for each in known[:MOST_NAMED]) or "none"
        raise InvalidInput(
            f"`reward` is {shown(column)}, and no trial has this metric. There are: {there}. A metric is told beside a "
            "reward, or is one of several rewards by its key. Usually it has another name."
        )
    return [trial._replace(reward=trial.metrics.get(name)) for trial in trials]


def _of_trials(study: Study, trials: list[Trial]) -> Log:
    return Log(
        actions=tuple(range(len(arms_of(study)))),
        taken=np.array([trial.arm for trial in trials], dtype=np.intp),
        propensities=np.array([trial.propensity for trial in trials], dtype=np.float64),
        rewards=np.array([trial.reward for trial in trials], dtype=np.float64),
        contexts=_contexts(study, _draws(study, trials)), study=study,
        units=trial_units(trials), draws=None if all(trial.kept is None for trial in trials) else _drawn(trials),
    )  # fmt: skip


def _drawn(trials: list[Trial]) -> IndexArray:
    """Returns the number of the trial in which the arm of each trial was drawn, `(n,)`."""
    return np.array([trial.number if trial.kept is None else trial.kept for trial in trials], dtype=np.intp)


def _draws(study: Study, trials: list[Trial]) -> list[Trial]:
    """Returns the trial in which the arm of each trial was drawn: a unit keeps its arm (`Study(sticky=)`)."""
    known = study.trials if any(trial.kept is not None for trial in trials) else ()
    return [trial if trial.kept is None else known[trial.kept] for trial in trials]


def arms_of(study: Study) -> Arms:
    """Returns the arms of a study with one reward, or raises an error."""
    domain, count = study.policy.domain, study.policy.objective_count
    if count > 1:
        raise InvalidInput(
            f"The study has {count} objectives ({', '.join(study.policy.objective_names)}), and an evaluation is of "
            "one reward.",
            advice="Evaluate a table of one of them, with its values in the column `reward`.",
        )
    if not isinstance(domain, Arms):
        raise InvalidInput(
            NO_ARMS,
            advice="Decide among `nr.Arms(points)`, or a grid: `space.grid(5)`.",
            topic="no_arms",
        )
    return domain


def _least(study: Study, count: int) -> Array | None:
    """Returns the lowest propensity of each arm that the policy's forced rounds allow, `(N,)`, or None if all are 0."""
    found = study.policy.explore.floors(count) if isinstance(study.policy, Policy) else np.zeros(count)
    if isinstance(study.policy, Policy) and study.policy.guards:  # Only the control is played in rounds that are held.
        found = np.where(np.arange(count) == study.policy.guards[0].arm, found, 0.0)
    return found if found.any() else None


def _contexts(study: Study, trials: list[Trial]) -> Any:
    if study.policy.context is None:
        return None
    if trials and trials[0].context_settings is not None:
        return [trial.context_parameters for trial in trials]
    return np.array([trial.context for trial in trials], dtype=np.float64)


def means(study: Study, context: Any) -> Array:
    """Returns the posterior mean of each arm, the larger the better, `(N,)`."""
    mean = study.predict(context=context)[0]
    return mean if study.goals[0] == "maximize" else -mean
