"""One trial: what was decided and all that came of it.

A trial is pending until its answer comes: a reward, or that it has failed. It may be abandoned before (its worker is
gone), and its answer may still come, late. An answer may be corrected; what was told first stays with the trial.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, final

import numpy as np

from .._utils.checks import Array, frozen, many

TrialState = Literal["pending", "observed", "failed", "abandoned"]
EventKind = Literal["asked", "told", "limited", "abandoned", "corrected"]


class Abandoned(NamedTuple):
    """That nobody works on a trial any more.

    Attributes:
        order: position among all events of the study.
        time: Unix seconds.
        reason: why it is thought so, in words.
    """

    order: int
    time: float
    reason: str


class Plays(NamedTuple):
    """What came of a trial that was played several times, besides the average reward.

    Attributes:
        times: rewards told, at least 2.
        scatter: sum of their squared deviations from their average, reward units squared.
    """

    times: int
    scatter: float


class Fit(NamedTuple):
    """Hyperparameters that came into force with a decision.

    Attributes:
        channel: 0 for the reward, j for constraint j.
        number: 1, 2, ... since the memory was last cut.
        values: plain JSON values (`nilregret.slots.refit.Refitted.plain`), of rewards: minus the losses.
    """

    channel: int
    number: int
    values: dict[str, Any]


class Answer(NamedTuple):
    """What was told of a trial before it was corrected.

    Attributes:
        order: position among all events of the study.
        time: Unix seconds.
        reward: or None where the trial was told to have failed.
        reason: why it failed, or None.
        constraints: the constraint values known then, `(m,)`, read-only, or None.
        plays: of a run of several plays, of which `reward` is the average; None of one.
    """

    order: int
    time: float
    reward: float | None
    reason: str | None
    constraints: Array | None
    plays: Plays | None = None


class _Fields(NamedTuple):
    number: int
    point: Array
    arm: int | None
    settings: tuple[tuple[str, Any], ...] | None
    asked_order: int
    asked_at: float
    context: Array | None = None
    explored: bool = False
    state: TrialState = "pending"
    reward: float | None = None
    reason: str | None = None
    told_order: int | None = None
    told_at: float | None = None
    constraints: Array | None = None
    context_settings: tuple[tuple[str, Any], ...] | None = None
    constraints_order: int | None = None
    lease_until: float | None = None
    abandoned: Abandoned | None = None
    corrected: tuple[Answer, ...] = ()
    repeats: int = 1
    plays: Plays | None = None
    fits: tuple[Fit, ...] | None = None


ASKED = _Fields._fields.index("state")  # fields that never change


@final
class Trial(_Fields):  # a tuple: two are made in each round, and a frozen dataclass takes five times as long
    """One decision and, once it is there, its answer.

    Attributes:
        number: 0, 1, 2, ... in the order of asking.
        point: coordinates as the kernel sees them, `(d,)`, read-only.
        arm: index into the `Arms`, or None on other domains.
        settings: (name, value) of each parameter where the domain has named ones, else None; see `parameters`.
        context: context it was decided for, or None.
        explored: True for a forced uniform round.
        state: "pending", "observed", "failed", or "abandoned" (given up, and no answer has come since).
        reward: the reward told, or None; of several plays their average.
        constraints: the constraint values told, `(m,)`, read-only, or None.
        context_settings: (name, value) of each parameter of the context where the contexts have named ones, else None;
            see `context_parameters`.
        reason: why it failed, or None.
        asked_order: position among all events of the study; equal to `told_order` for a point never asked for.
        asked_at: Unix time in seconds.
        told_order: position of the answer among all events (of the correction, where it was corrected), or None while
            there is none.
        told_at: Unix time of the answer in seconds, or None.
        constraints_order: position among all events of the constraint values that were told by themselves, before or
            after the reward; None where they came with it, or are not known.
        lease_until: Unix time at which it counts as abandoned unless it has been answered, or None for never.
        abandoned: when and why it was given up, a `nilregret.storage.trial.Abandoned`, also after its answer came; or
            None.
        corrected: the answers, oldest first, that a later one has replaced, each a `nilregret.storage.trial.Answer`.
        repeats: how often it is to be played (see `switching`): 1, unless the policy makes few decisions.
        plays: how many rewards were told of it and how they scatter, a `nilregret.storage.trial.Plays`, or None where
            there was
            one, or none.
        fits: hyperparameters that came into force with this decision, each a `nilregret.storage.trial.Fit` (see
            `study.fits`);
            None where the policy fits nothing, and in records of older versions, which did not say.
    """

    __slots__ = ()

    @property
    def parameters(self) -> dict[str, Any] | None:
        """The named parameters, a fresh dict, or None where the domain has none."""
        return None if self.settings is None else dict(self.settings)

    @property
    def feasible(self) -> bool | None:
        """Whether every constraint value told for it is at most 0; None where none was told."""
        return None if self.constraints is None else bool(self.constraints.max(initial=0.0) <= 0.0)

    @property
    def context_parameters(self) -> dict[str, Any] | None:
        """The named parameters of the context, a fresh dict, or None where it has none."""
        return None if self.context_settings is None else dict(self.context_settings)

    @property
    def late(self) -> bool:
        """Whether its answer came after it had been abandoned."""
        return self.abandoned is not None and self.told_order is not None

    @property
    def times(self) -> int:
        """How many plays it stands for: those told, or as long as nothing was told those asked for."""
        if self.told_order is None:
            return self.repeats
        return 1 if self.plays is None else self.plays.times

    @property
    def scatter(self) -> float:
        """Sum of squared deviations of its rewards from their average."""
        return 0.0 if self.plays is None else self.plays.scatter

    @property
    def open(self) -> bool:
        """Whether an answer may still come: it is pending or abandoned."""
        return self.told_order is None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trial) and self._key() == other._key()

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __repr__(self) -> str:
        """What a reader of the record asks for; orders, times and what is None are left out."""
        facts: dict[str, Any] = {"context": self.context_parameters or _listed(self.context), "arm": self.arm}
        facts |= {"parameters": self.parameters} if self.settings is not None else {"point": _listed(self.point)}
        reason = self.abandoned.reason if self.abandoned is not None and self.state == "abandoned" else self.reason
        facts |= {"reward": self.reward, "constraints": _listed(self.constraints), "reason": reason}
        words = [str(self.number), self.state] + ["explored"] * self.explored + ["late"] * self.late
        words += ["corrected"] * bool(self.corrected)
        words += [many(self.times, "play")] * (self.repeats > 1)
        return (
            f"Trial({', '.join(words + [f'{name}={value!r}' for name, value in facts.items() if value is not None])})"
        )

    def __hash__(self) -> int:
        return hash((self.number, self.state))

    def _key(self) -> tuple[Any, ...]:
        return (
            self.number, self.point.tobytes(), self.arm, self.explored, self.state, self.reward, self.reason,
            self.asked_order, self.asked_at, self.told_order, self.told_at, _bytes(self.context),
            _bytes(self.constraints), self.constraints_order, self.lease_until, self.abandoned,
            self.repeats, self.plays, self.fits,
            tuple(answer._replace(constraints=_bytes(answer.constraints)) for answer in self.corrected),  # type: ignore[arg-type]  # to compare
        )  # fmt: skip

    def __reduce__(self) -> tuple[Any, ...]:
        # Arrays come out of a pickle writable, and a record does not change.
        return _restored, tuple(self)

    # -- as it was -----------------------------------------------------------------------------------------------

    def asked(self) -> Trial:
        """This trial as it was when it was asked for, its outcome unknown."""
        if self.state == "pending":
            return self
        unknown = ("pending", None, None, None, None, None, None, None, self.lease_until, None, (), self.repeats, None)
        return tuple.__new__(Trial, (*self[:ASKED], *unknown, self.fits))  # a replay makes one of each trial

    def as_of(self, order: int) -> Trial:
        """This trial as it was after the event of this order."""
        trial = self
        while trial.corrected and trial.told_order is not None and trial.told_order > order:
            trial = trial._uncorrected()
        if trial.abandoned is not None and trial.abandoned.order > order:
            trial = trial._replace(abandoned=None, state="pending" if trial.state == "abandoned" else trial.state)
        if trial.told_order is not None and trial.told_order > order:
            known = None if trial.constraints_order is None else trial.constraints
            state: TrialState = "pending" if trial.abandoned is None else "abandoned"
            trial = trial._replace(
                state=state, reward=None, reason=None, told_order=None, told_at=None, constraints=known, plays=None
            )
        if trial.constraints_order is not None and trial.constraints_order > order:
            trial = trial._replace(constraints=None, constraints_order=None)
        return trial

    def _uncorrected(self) -> Trial:
        """This trial before it was corrected for the last time."""
        *earlier, last = self.corrected
        return self._replace(
            state=_state_of(last.reward), reward=last.reward, reason=last.reason, constraints=last.constraints,
            told_order=last.order, told_at=last.time, corrected=tuple(earlier), plays=last.plays,
        )  # fmt: skip

    def righted(self) -> Trial:
        """This trial as if the answer in force had been told in the first place."""
        if not self.corrected:
            return self
        first = self.corrected[0]
        return self._replace(told_order=first.order, told_at=first.time, corrected=())

    def happened(self) -> list[tuple[EventKind, int]]:
        """The events in which it had a part, with their orders."""
        first, last = self.told_order, None
        if self.corrected:
            first, last = self.corrected[0].order, self.told_order
        found: list[tuple[EventKind, int | None]] = [
            ("asked", None if first == self.asked_order else self.asked_order),
            ("told", first),
            ("limited", self.constraints_order),
            ("abandoned", None if self.abandoned is None else self.abandoned.order),
            *(("corrected", answer.order) for answer in self.corrected[1:]),
            ("corrected", last),
        ]
        return [(kind, order) for kind, order in found if order is not None]

    @property
    def last_order(self) -> int:
        """The position of the last event in which it had a part."""
        if self.constraints_order is None and self.abandoned is None:
            return self.asked_order if self.told_order is None else self.told_order
        return max(order for _, order in self.happened())

    # -- as it becomes -------------------------------------------------------------------------------------------

    def answered(
        self, *, reward: float, order: int, time: float, constraints: Array | None = None, plays: Plays | None = None
    ) -> Trial:
        """This trial with its reward, and the constraint values that came with it; those known before stay."""
        return Trial(
            self.number, self.point, self.arm, self.settings, self.asked_order, self.asked_at, self.context,
            self.explored, "observed", reward, None, order, time,
            self.constraints if constraints is None else constraints, self.context_settings, self.constraints_order,
            self.lease_until, self.abandoned, (), self.repeats, plays, self.fits,
        )  # fmt: skip

    def limited(self, *, constraints: Array, order: int) -> Trial:
        """This trial with its constraint values, told by themselves."""
        return self._replace(constraints=constraints, constraints_order=order)

    def failed(self, *, reason: str, order: int, time: float) -> Trial:
        """This trial, marked as one that will never have a reward."""
        return self._replace(state="failed", reward=None, reason=reason, told_order=order, told_at=time)

    def given_up(self, *, reason: str, order: int, time: float) -> Trial:
        """This trial, marked as one that nobody works on any more."""
        return self._replace(state="abandoned", abandoned=Abandoned(order, time, reason))

    def told_again(
        self, *, reward: float | None, reason: str | None, constraints: Array | None, order: int, time: float,
        plays: Plays | None = None,
    ) -> Trial:  # fmt: skip
        """This answered trial with another answer; the one before is kept."""
        before = Answer(
            self.told_order or 0, self.told_at or 0.0, self.reward, self.reason, self.constraints, self.plays
        )
        return self._replace(
            state=_state_of(reward), reward=reward, reason=reason, constraints=constraints, told_order=order,
            told_at=time, corrected=(*self.corrected, before), plays=plays,
        )  # fmt: skip


def _state_of(reward: float | None) -> TrialState:
    return "failed" if reward is None else "observed"


def _listed(numbers: Array | None) -> list[float] | None:
    return None if numbers is None else [float(x) for x in numbers]


def _bytes(array: Array | None) -> bytes | None:
    return None if array is None else array.tobytes()


def _restored(*values: Any) -> Trial:
    for value in values:
        if isinstance(value, np.ndarray):
            frozen(value)
    trial = Trial(*values)
    for answer in trial.corrected:
        if answer.constraints is not None:
            frozen(answer.constraints)
    return trial
