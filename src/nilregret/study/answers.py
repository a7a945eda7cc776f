"""What is told of a trial: what of it is recorded, and what is refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, final

import numpy as np

from .._utils.checks import Array, shown
from .._utils.errors import InvalidInput, TrialError
from ..storage.record import said
from ..storage.trial import Plays, Trial
from .direction import AnyPolicy, has_channels
from .inputs import Inputs
from .replica import Replica
from .rewards import check_plays


class Told(NamedTuple):
    """An answer, checked: a reward, constraint values, or both."""

    trial: Trial | int
    reward: float | None
    constraints: Array | None
    plays: Plays | None = None


@final
class Answering:
    """Answers to the trials of one study; all its methods are called while nobody else writes.

    Each is idempotent: what is on record already is given back, so that a worker that does not know whether it was
    heard may say it again.
    """

    def __init__(self, policy: AnyPolicy, kept: Replica) -> None:
        self._policy, self._kept = policy, kept

    def all(self, answers: Sequence[Told], *, revise: bool) -> list[Trial]:
        """Record several."""
        return [self.tell(told, revise=revise) for told in answers]

    def tell(self, told: Told, *, revise: bool) -> Trial:
        """Record one."""
        known = self._kept.record.found(told.trial)
        if told.reward is None:
            return self._limit(known, told, revise=revise)
        if known.open:
            return self._answer(known, told, told.reward)
        if _agree(known, told):
            return known
        if not revise:
            self._kept.record.unanswered(told.trial, said(told.reward, told.constraints))  # an error
        check_plays(known, told.plays)
        return self._correct(known, told.reward, told.constraints, None, told.plays)

    def fail(self, trial: Trial | int, reason: str, *, revise: bool) -> Trial:
        """Record that there will be no reward."""
        record = self._kept.record
        known = record.found(trial)
        if known.state == "failed" and known.reason == reason:
            return known
        if not known.open and revise:
            return self._correct(known, None, None, reason)
        known = record.unanswered(trial, said(None, None, reason))
        return self._kept.put(known.failed(reason=reason, order=record.order + 1, time=self._kept.now()))

    def abandon(self, trial: Trial | int, reason: str) -> Trial:
        """Record that nobody works on a trial any more."""
        record = self._kept.record
        known = record.found(trial)
        if known.state == "abandoned":
            return known
        if not known.open:
            raise TrialError(
                f"Trial {known.number} cannot be abandoned: its answer is there "
                f"({said(known.reward, known.constraints, known.reason)}).",
                advice="A wrong answer is corrected by `tell(..., revise=True)` or `fail(..., revise=True)`.",
                topic="answered",
            )
        return self._kept.put(known.given_up(reason=reason, order=record.order + 1, time=self._kept.now()))

    def _answer(self, known: Trial, told: Told, reward: float) -> Trial:
        g, plays = told.constraints, told.plays
        if plays is not None:
            check_plays(known, plays)
        if g is not None and known.constraints is not None:
            if not np.array_equal(g, known.constraints):
                self._kept.record.unlimited(known)  # an error: others are known
            g = None
        kept = self._kept
        order = kept.record.order + 1
        return kept.put(known.answered(reward=reward, constraints=g, order=order, time=kept.now(), plays=plays))

    def _limit(self, known: Trial, told: Told, *, revise: bool) -> Trial:
        """Constraint values by themselves."""
        g = told.constraints
        if g is not None and known.constraints is not None and np.array_equal(g, known.constraints):
            return known
        if revise and not known.open and known.constraints is not None:
            return self._correct(known, known.reward, g, known.reason, known.plays)
        known = self._kept.record.unlimited(known)
        policy = self._policy
        if known.state == "observed" and policy.constraint_count and not has_channels(policy):
            raise TrialError(
                f"The reward of trial {known.number} was told without constraint values, and {policy.algorithm} learns "
                "from both together: it is too late for them. Tell them with the reward, or before it.",
                advice="Policies made with `constraints=nr.EveryRound(...)` take them in any order.",
                topic="together",
            )
        if g is None:
            return known
        return self._kept.put(known.limited(constraints=g, order=self._kept.record.order + 1))

    def _correct(
        self, known: Trial, reward: float | None, constraints: Array | None, reason: str | None,
        plays: Plays | None = None,
    ) -> Trial:  # fmt: skip
        """Another answer than before; where it says nothing of constraints, what is known of them stays."""
        kept = self._kept
        g = known.constraints if constraints is None else constraints
        if reward is None and known.constraints_order is None:
            g = None  # they came with the reward that is taken back
        order = kept.record.order + 1
        now = kept.now()
        return kept.put(
            known.told_again(reward=reward, reason=reason, constraints=g, order=order, time=now, plays=plays)
        )


def _agree(known: Trial, told: Told) -> bool:
    """Whether an answered trial has this very answer."""
    g = told.constraints
    same = g is None or (known.constraints is not None and np.array_equal(g, known.constraints))
    return known.reward == told.reward and known.plays == told.plays and same


def reason_of(what: str, reason: object) -> str:
    """Words that say why, as they can be stored whatever an exception's message held."""
    if not isinstance(reason, str) or not reason.strip():
        raise InvalidInput(f"`reason` must say in words why the trial {what}, not {shown(reason)}.")
    return reason.encode("utf-8", "replace").decode("utf-8").replace("\0", "?")


def told_of(given: Inputs, trial: Any, reward: Any, constraints: Any) -> Told:
    """An answer as users give it, checked."""
    if reward is None and constraints is not None:
        return Told(trial, None, given.constraints(constraints))
    g = None if constraints is None else given.constraints(constraints)
    return Told(trial, given.reward(reward), g) if type(reward) is float else Told(trial, *_with(given, reward, g))


def _with(given: Inputs, reward: Any, g: Array | None) -> tuple[float, Array | None, Plays | None]:
    mean, plays = given.rewards(reward)
    return mean, g, plays


def told_by_each(given: Inputs, answers: object) -> list[Told]:
    """Several answers, each as `told_by` takes it."""
    if not isinstance(answers, Iterable) or isinstance(answers, str | bytes | Mapping | Trial):
        raise InvalidInput(
            f"`answers` is {shown(answers)}: it must be a list, each of (trial, reward) or (trial, reward, "
            "constraints). A single answer is told by `tell`."
        )
    return [told_by(given, answer) for answer in answers]


def told_by(given: Inputs, answer: Any) -> Told:
    """One of several answers: (trial, reward), (trial, reward, constraints), or a dict of these names."""
    if isinstance(answer, Mapping):
        if "trial" not in answer or not answer.keys() <= {"trial", "reward", "constraints"}:
            raise InvalidInput(
                f"An answer in a dict has 'trial', 'reward' and perhaps 'constraints', not {shown(list(answer))}."
            )
        return told_of(given, answer["trial"], answer.get("reward"), answer.get("constraints"))
    parts = answer if isinstance(answer, tuple | list) and type(answer) is not Trial else ()
    if len(parts) not in (2, 3):
        raise InvalidInput(
            f"An answer is (trial, reward) or (trial, reward, constraints), or a dict; {shown(answer)} is none."
        )
    return told_of(given, parts[0], parts[1], parts[2] if len(parts) == 3 else None)
