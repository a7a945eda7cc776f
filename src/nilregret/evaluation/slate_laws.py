"""The slates of a study, with the law by which its policy decided each of them, from a replay."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np

from .._utils.checks import Array
from ..errors import InvalidInput
from ..policy.availability import Available
from ..policy.policy import Policy
from ..policy.state import State
from ..slots.pending import Pending
from ..storage.record import Record
from ..storage.trial import Trial
from ..study.direction import PLAIN, as_rewards, policy_of_rewards
from ..study.lessons import Lessons, places_of
from ..study.study import Study
from ..study.waiting import counted_trials

MOST_SETS = 2_000  # sets of arms before a place, whose laws are computed for each slate
ALIKE = 0.02  # by which a recorded propensity may differ from that of a replay, which may approximate it

Next = Callable[[tuple[int, ...]], Array]  # Probabilities of the next place, `(N,)`, given the arms before it.


class Slate(NamedTuple):
    """A slate of a log.

    Attributes:
        taken: arms as indices, in order of place, `(L,)`.
        propensities: of each, given the places before, `(L,)`.
        rewards: of each place, `(L,)`.
        context: or None.
        next: the law of the log's policy, or None where it is not known.
        unit: who visits, or None.
    """

    taken: tuple[int, ...]
    propensities: Array
    rewards: Array
    context: Any
    next: Next | None = None
    unit: Any = None


def slates_of_study(study: Study, needs: bool, fill: float | None, leave: Callable[[str], object]) -> Iterator[Slate]:
    """Yields the slates of a study that count, whose places all have an answer and a propensity.

    Args:
        study: on arms.
        needs: whether the law of the log's policy is needed.
        fill: the reward of places without an answer, or None.
        leave: called with the reason why a slate is left out.
    """
    counted = {trial.number: trial for trial in counted_trials(study)[0]}
    trials = study.trials
    first = [trial for trial in trials if trial.slate == trial.number]
    if not first:
        raise InvalidInput(
            "The study has no slates.", advice="`ask(count=3, slate=True)` makes one; other trials are decisions."
        )
    laws: Iterator[Next | None] = _laws(study, trials, first) if needs else iter([None] * len(first))
    drawn: dict[int | None, Next | None] = {trial.kept: None for trial in first if trial.kept is not None}
    for trial, law in zip(first, laws, strict=True):
        if trial.number in drawn:
            drawn[trial.number] = law
        next_ = drawn.get(trial.kept, law)  # A unit that keeps a slate has the law and the context of its draw.
        draw = trial if trial.kept is None else trials[trial.kept]
        slate = [counted.get(each.number) for each in places_of(trials, trial)]
        rewards = [None if each is None else fill if each.reward is None else each.reward for each in slate]
        if any(reward is None for reward in rewards):
            leave("without all rewards")
            continue
        known = [each for each in slate if each is not None and each.propensity is not None]
        if len(known) < len(slate):
            leave("without a propensity")
            continue
        found = Slate(
            tuple(each.arm or 0 for each in known), np.array([each.propensity for each in known]),
            np.array(rewards, dtype=np.float64), draw.context_parameters or draw.context, next_,
            trial.unit,
        )  # fmt: skip
        if next_ is not None and not _agrees(found, next_):
            leave("among other arms than all (`among` or `exclude`)")
            continue
        yield found


def _agrees(slate: Slate, next_: Next) -> bool:
    chances = [float(next_(slate.taken[:place])[arm]) for place, arm in enumerate(slate.taken)]
    return bool(np.all(np.abs(np.array(chances) - slate.propensities) <= ALIKE))


def _laws(study: Study, trials: Any, first: list[Trial]) -> Iterator[Next | None]:
    """Yields the law of each slate, as the policy stood when it was asked for."""
    policy, goals = study.policy, study.goals
    if not isinstance(policy, Policy) or _imputes(policy.pending):
        yield from [None] * len(first)
        return
    known = [trial.as_corrected() for trial in trials]
    events = Lessons(policy, goals[0]).of(Record().apply(known), known)
    taught = events if goals == PLAIN else as_rewards(events, goals)
    state = State(policy_of_rewards(policy, goals[0]), seed=study.seed)
    playable = study.replica.roster.playable_at([trial.asked_order for trial in first])
    numbers, at, begin = {trial.number: i for i, trial in enumerate(first)}, 0, 0
    for end, event in enumerate(taught):
        if event.kind == "asked" and event.trial.number in numbers:
            state.receive(taught[begin:end])
            begin = end
            places = len(places_of(trials, event.trial))
            yield _law(state, event.trial, places, None if playable is None else playable[at])
            at += 1


def _imputes(pending: Pending) -> bool:
    """Returns whether pending trials change decisions: then a place changes the next ones by more than its arm."""
    return bool(
        pending.hallucinates or pending.moves or pending.waits() is not None or pending.stand_in(0.0) is not None
    )


def _law(state: State, trial: Trial, places: int, playable: Array | None) -> Next | None:
    """Returns the law of one slate."""
    domain: Any = state.policy.domain
    arms = np.arange(len(domain)) if playable is None else np.flatnonzero(playable)
    if sum(comb(len(arms), place) for place in range(places)) > MOST_SETS:
        raise InvalidInput(
            f"The law of slates of {places} places among {len(arms)} arms would be computed for more than "
            f"{MOST_SETS:,} sets of arms before a place, for each slate.",
            advice='Take the estimator "cascade" or "slate", which need the recorded propensities alone.',
        )
    settled, found = state.settled(), dict[frozenset[int], Array]()
    for place in range(places):
        for before in combinations(arms.tolist(), place):
            left = np.setdiff1d(arms, before)
            available = None if len(left) == len(domain) else Available(domain.points[left], left)
            chances = settled.distribution(trial.context, now=trial.asked_at, available=available)
            if chances is None:
                return None
            found[frozenset(before)] = chances
    return lambda before: found[frozenset(before)]
