"""A trial: a decision and its outcome.

A trial is pending until its answer comes: a reward, that the trial has failed, or that it was stopped. It may be
abandoned before, because its worker is gone. Its answer may still come, late. An answer may be corrected, and the trial
keeps the first one. While a trial runs it may report a value after each step: its curve.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, final, get_args, overload

import numpy as np

from .._utils.checks import LARGEST_REWARD, LONGEST_NAME, Array, frozen, many, real
from .._utils.numerals import html_table, numeral
from ..domains.domain import D
from ..domains.options import fresh
from .visit import Visit

if TYPE_CHECKING:
    from ..domains.domain import Arms, Box, Domain, Space


TrialState = Literal["pending", "observed", "failed", "abandoned", "stopped"]
EventKind = Literal["asked", "told", "limited", "abandoned", "corrected", "stopped"]
Verdict = Literal["go", "stop", "wait", "spared"]
VERDICTS: tuple[str, ...] = get_args(Verdict)
GOING: tuple[Verdict, ...] = ("go", "spared")  # The verdicts after which a trial goes on.
MOST_METRICS = 100  # of one trial
Measured = tuple[tuple[str, float], ...]  # name and value of each metric


class Abandoned(NamedTuple):
    """The event that nobody works on a trial any more.

    Attributes:
        order: position among all events of the study.
        time: Unix seconds.
        reason: in words.
    """

    order: int
    time: float
    reason: str


class Other(NamedTuple):
    """The value of an objective after the first.

    Attributes:
        value: as told, in the units of the objective.
        std: standard deviation of its noise, in the same units, or None where it is unknown.
    """

    value: float
    std: float | None = None


class Report(NamedTuple):
    """The value of a running trial after a step.

    Attributes:
        order: position among all events of the study.
        time: Unix seconds.
        trial: its number.
        step: a whole number, larger than that of the trial's report before.
        value: in the units told.
        verdict: of the pruning rule: "go", "stop", "wait" (paused), or "spared" if the rule said to stop and the trial
            runs on all the same (`nilregret.slots.Pruning.explore`).
    """

    order: int
    time: float
    trial: int
    step: int
    value: float
    verdict: Verdict


@final
class Curve(Sequence[Report]):
    """The reports of a trial in their order. Curves never change: a longer one shares the reports of a shorter one.

    A curve has a report at least. `NO_CURVE` stands for a trial without any.

    Args:
        reports: all of them.
    """

    __slots__ = ("_count", "_shared")

    def __init__(self, reports: Iterable[Report] = ()) -> None:
        self._shared = list(reports)  # A longer curve may have appended more.
        self._count = len(self._shared)

    def with_report(self, report: Report) -> Curve:
        """Returns the curve with one more report, in O(1) unless another curve has gone on from this one."""
        longer = Curve.__new__(Curve)
        known = self._shared
        longer._shared = known if len(known) == self._count else known[: self._count]
        longer._shared.append(report)
        longer._count = self._count + 1
        return longer

    def until(self, order: int) -> Curve:
        """Returns the reports up to the event of this order."""
        count = bisect_right(self._shared, order, hi=self._count, key=lambda report: report.order)
        if count == self._count:
            return self
        if not count:
            return NO_CURVE  # type: ignore[no-any-return]  # typed as a curve
        shorter = Curve.__new__(Curve)
        shorter._shared, shorter._count = self._shared, count
        return shorter

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Report: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Report]: ...
    def __getitem__(self, index: int | slice) -> Report | Sequence[Report]:
        if isinstance(index, slice):
            return [self._shared[i] for i in range(*index.indices(self._count))]
        if not -self._count <= index < self._count:
            raise IndexError(f"The curve has {many(self._count, 'report')}.")
        return self._shared[index % self._count]

    def __iter__(self) -> Iterator[Report]:
        return islice(self._shared, self._count)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Curve) and self._count == other._count and all(map(Report.__eq__, self, other))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"Curve({list(self)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Curve, (list(self),)


NO_CURVE: Any = ()  # The curve without reports. A tuple, because asking whether it is empty costs no call.


class Plays(NamedTuple):
    """The rewards of a trial that was played several times, besides their average.

    Attributes:
        times: number of rewards told, at least 2.
        scatter: sum of their squared deviations from their average, reward units squared.
    """

    times: int
    scatter: float


class Fit(NamedTuple):
    """Hyperparameters that came into force with a decision.

    Attributes:
        channel: 0 for the reward, j for constraint j.
        number: 1, 2, ... since the memory was last cut.
        values: plain JSON values (`nilregret.slots.refit.Refitted.plain`), of rewards, which are minus the losses.
    """

    channel: int
    number: int
    values: dict[str, Any]


class Answer(NamedTuple):
    """An answer of a trial that was corrected later.

    Attributes:
        order: position among all events of the study.
        time: Unix seconds.
        reward: or None if the trial was told to have failed.
        reason: why it failed, or None.
        constraints: the constraint values known then, `(m,)`, read-only, or None.
        plays: number and scatter of the rewards of several plays, of which `reward` is the average, or None.
        std: standard deviation of the noise, reward units, or None.
        measured: (name, value) of each metric told with it.
        others: values of the objectives after the first.
        stopped: True if the answer was that the trial was stopped, for the reason.
    """

    order: int
    time: float
    reward: float | None
    reason: str | None
    constraints: Array | None
    plays: Plays | None = None
    std: float | None = None
    measured: Measured = ()
    others: tuple[Other, ...] = ()
    stopped: bool = False


class _Fields(NamedTuple):
    number: int
    point: Array
    arm: int | None
    settings: tuple[tuple[str, Any], ...] | None
    asked_order: int
    asked_at: float
    context: Array | None = None
    explored: bool = False
    enqueued: bool = False
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
    propensity: float | None = None
    std: float | None = None
    measured: Measured = ()
    others: tuple[Other, ...] = ()
    curve: Curve = NO_CURVE
    visit: Visit | None = None


ASKED = _Fields._fields.index("state")  # The number of fields that never change.
UNANSWERED = _Fields(0, np.zeros(0), None, None, 0, 0.0)[ASKED - 1 :]  # The other fields of a trial as it is asked.


PLAIN = frozenset({str, int, float, bool, type(None)})  # Types of values that a receiver cannot change.


def _named(settings: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Returns the values by name, in a new dict that its receiver may change."""
    found = dict(settings)
    return found if PLAIN.issuperset(map(type, found.values())) else fresh(found)


class NamedParameters:
    """The named parameters of a trial: a fresh dict, or None where the domain has none."""

    @overload
    def __get__(self, trial: Trial[Space], owner: type | None = None) -> dict[str, Any]: ...
    @overload
    def __get__(self, trial: Trial[Box], owner: type | None = None) -> None: ...
    @overload
    def __get__(self, trial: Trial[Arms] | Trial[Domain], owner: type | None = None) -> dict[str, Any] | None: ...
    def __get__(self, trial: Trial[Any], owner: type | None = None) -> dict[str, Any] | None:
        """Returns the parameters of the trial, by name."""
        return None if trial.settings is None else _named(trial.settings)


@final
class Trial(_Fields, Generic[D]):  # A tuple, because a frozen dataclass takes five times as long to make.
    """A decision and, as soon as it is known, its outcome. Trials never change.

    Attributes:
        number: 0, 1, 2, ... in the order of asking.
        point: coordinates as the kernel sees them, `(d,)`, read-only.
        arm: index into the `Arms`, or None on other domains.
        settings: (name, value) of each named parameter, or None without names. See `parameters`.
        context: context of the decision, `(c,)`, read-only, or None.
        explored: True in a forced uniform round.
        enqueued: True if `Study.enqueue` named the point, or some of its parameters.
        state: "pending", "observed", "failed", "stopped" (before its last step, because going on was not worth it), or
            "abandoned" (given up, and no answer has come since).
        reward: the reward told (the loss, if the goal is to minimise), or None. Of several plays, their average.
        constraints: the constraint values told, `(m,)`, read-only, or None.
        context_settings: (name, value) of each named parameter of the context, or None. See `context_parameters`.
        reason: why the trial failed or was stopped, or None.
        asked_order: position of the question among all events of the study. It equals `told_order` if the point was
            never asked for.
        asked_at: time of the question, Unix seconds.
        told_order: position of the answer, or of its last correction, among all events. None while there is none.
        told_at: time of the answer, Unix seconds, or None.
        constraints_order: position of constraint values that were told without a reward, or None.
        lease_until: time at which a pending trial is abandoned, Unix seconds, or None for never.
        abandoned: time and reason of giving up, a `nilregret.storage.trial.Abandoned`, also after a late answer. Or
            None.
        corrected: earlier answers that a later one has replaced, oldest first, each a `nilregret.storage.trial.Answer`.
        repeats: number of plays asked for (see `switching`). It is 1 unless the policy makes few decisions.
        plays: number and scatter of several rewards, a `nilregret.storage.trial.Plays`, or None.
        fits: hyperparameters that came into force with the decision, each a `nilregret.storage.trial.Fit`. None if the
            policy fits nothing. See `Study.fits`.
        propensity: probability with which this decision took this arm, given what was known. None where it was not
            recorded (`Study(propensities=True)`), and on continuous domains.
        std: standard deviation of the noise of this reward as told, reward units, or None where it is unknown. Of
            several plays, that of each.
        measured: (name, value) of each metric told with the reward. See `metrics`.
        others: values of the objectives after the first, each a `nilregret.storage.trial.Other`. See `values`.
        curve: the reports of the running trial, each a `nilregret.storage.trial.Report`. See `steps`.
        visit: who visits, the caller's own id and facts, and the place in a slate, a `nilregret.storage.visit.Visit`,
            or None. See `event`, `unit`, `kept`, `slate`, `place` and `facts`.

    >>> import nilregret as nr
    >>> arms = nr.Arms.grid(0, 10, 11)
    >>> study = nr.Study(nr.gp_ucb(arms, nr.SquaredExponential(2.0), noise=0.1))
    >>> trial = study.add([3.0], 0.5)
    >>> trial.number, trial.arm, trial.reward, trial.state
    (0, 3, 0.5, 'observed')
    """

    __slots__ = ()

    parameters = NamedParameters()

    @property
    def feasible(self) -> bool | None:
        """True if every constraint value told is at most 0, or None if none was told."""
        return None if self.constraints is None else bool(self.constraints.max(initial=0.0) <= 0.0)

    @property
    def context_parameters(self) -> dict[str, Any] | None:
        """Named parameters of the context in a new dict, or None if it has no names."""
        return None if self.context_settings is None else _named(self.context_settings)

    @property
    def metrics(self) -> dict[str, float]:
        """Metrics told with the reward, by name, in a new dict. Decisions do not depend on them."""
        return dict(self.measured)

    @property
    def values(self) -> tuple[float, ...] | None:
        """The values of all objectives as told, in their order, or None without an answer."""
        return None if self.reward is None else (self.reward, *(other.value for other in self.others))

    @property
    def stds(self) -> tuple[float | None, ...] | None:
        """The standard deviation of the noise of each of several objectives, None where unknown. None if all are."""
        found = (self.std, *(other.std for other in self.others))
        return found if any(std is not None for std in found) else None

    @property
    def steps(self) -> list[tuple[int, float]]:
        """Step and value of each report of the trial, in the units told. Empty if it reported none."""
        return [(report.step, report.value) for report in self.curve]

    @property
    def event(self) -> str | None:
        """The caller's own id of the decision (`Study.ask(event=)`), or None."""
        return None if self.visit is None else self.visit.event

    @property
    def unit(self) -> int | None:
        """The number of the first trial of the unit that visits (`Study.ask(unit=)`), or None."""
        return None if self.visit is None else self.visit.unit

    @property
    def kept(self) -> int | None:
        """The number of the trial whose arm this one keeps, or None if the policy decided."""
        return None if self.visit is None else self.visit.kept

    @property
    def slate(self) -> int | None:
        """The number of the first trial of the slate, or None."""
        return None if self.visit is None else self.visit.slate

    @property
    def place(self) -> int | None:
        """The place within the slate, 0, 1, ..., or None."""
        return None if self.visit is None else self.visit.place

    @property
    def facts(self) -> dict[str, Any]:
        """The caller's facts about the decision (`Study.ask(facts=)`), by name, in a new dict."""
        return {} if self.visit is None else dict(self.visit.facts)

    @property
    def late(self) -> bool:
        """True if the answer came after the trial had been abandoned."""
        return self.abandoned is not None and self.told_order is not None

    @property
    def times(self) -> int:
        """Number of plays: those told, or those asked for while there is no answer."""
        if self.told_order is None:
            return self.repeats
        return 1 if self.plays is None else self.plays.times

    @property
    def scatter(self) -> float:
        """Sum of squared deviations of the rewards from their average, reward units squared."""
        return 0.0 if self.plays is None else self.plays.scatter

    @property
    def open(self) -> bool:
        """True if an answer may still come, because the trial is pending or abandoned."""
        return self.told_order is None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trial) and self._key() == other._key()

    def __ne__(self, other: object) -> bool:
        return not self == other

    def _repr_html_(self) -> str:
        words, facts = self._described()
        named = {**facts.pop("parameters", {})}
        if "point" in facts:
            named = {"point": ", ".join(f"{numeral(x, 6)}" for x in facts.pop("point"))}
        rows = [(name, value) for name, value in (named | facts).items() if value is not None]
        return html_table([], rows, caption=f"Trial {', '.join(words)}")

    def __repr__(self) -> str:
        words, facts = self._described()
        words += [f"{name}={value!r}" for name, value in facts.items() if value is not None]
        return f"Trial({', '.join(words)})"

    def _described(self) -> tuple[list[str], dict[str, Any]]:
        """Returns number, state and remarks, and then facts by name."""
        facts: dict[str, Any] = {"context": self.context_parameters or _listed(self.context), "arm": self.arm}
        facts |= {"parameters": dict(self.settings)} if self.settings is not None else {"point": _listed(self.point)}
        reason = self.abandoned.reason if self.abandoned is not None and self.state == "abandoned" else self.reason
        facts |= {"values": self.values, "stds": self.stds} if self.others else {"reward": self.reward, "std": self.std}
        facts |= {"constraints": _listed(self.constraints), "reason": reason}
        facts |= {"metrics": dict(self.measured) or None, "steps": _said(self.curve)}
        facts |= {} if self.visit is None else self.visit.said()
        words = [str(self.number), self.state] + ["explored"] * self.explored + ["enqueued"] * self.enqueued
        words += ["late"] * self.late + ["corrected"] * bool(self.corrected)
        words += [many(self.times, "play")] * (self.repeats > 1)
        return words, facts

    def __hash__(self) -> int:
        return hash((self.number, self.state))

    def _key(self) -> tuple[Any, ...]:
        return (
            self.number, self.point.tobytes(), self.arm, self.explored, self.state, self.reward, self.reason,
            self.asked_order, self.asked_at, self.told_order, self.told_at, _bytes(self.context),
            _bytes(self.constraints), self.constraints_order, self.lease_until, self.abandoned,
            self.repeats, self.plays, self.fits, self.propensity, self.std, self.measured, self.others, self.curve,
            self.visit,
            tuple(answer._replace(constraints=_bytes(answer.constraints)) for answer in self.corrected),  # type: ignore[arg-type]  # to compare
        )  # fmt: skip

    def __reduce__(self) -> tuple[Any, ...]:
        # `_restored` makes arrays read-only again, which a pickle does not.
        return _restored, tuple(self)

    # -- as it was -----------------------------------------------------------------------------------------------

    def asked(self) -> Trial:
        """Returns this trial as it was when it was asked for."""
        if self.state == "pending" and self.curve is NO_CURVE:
            return self
        unknown = ("pending", None, None, None, None, None, None, None, self.lease_until, None, (), self.repeats, None)
        return tuple.__new__(
            Trial, (*self[:ASKED], *unknown, self.fits, self.propensity, None, (), (), NO_CURVE, self.visit)
        )  # This is fast, because a replay calls it for each trial.

    def as_of(self, order: int) -> Trial:
        """Returns this trial as it was after the event of this order."""
        trial = self
        while trial.corrected and trial.told_order is not None and trial.told_order > order:
            trial = trial._uncorrected()
        if trial.abandoned is not None and trial.abandoned.order > order:
            trial = trial._replace(abandoned=None, state="pending" if trial.state == "abandoned" else trial.state)
        if trial.told_order is not None and trial.told_order > order:
            known = None if trial.constraints_order is None else trial.constraints
            state: TrialState = "pending" if trial.abandoned is None else "abandoned"
            trial = trial._replace(
                state=state,
                reward=None,
                reason=None,
                told_order=None,
                told_at=None,
                constraints=known,
                plays=None,
                std=None,
                measured=(),
                others=(),
            )
        if trial.constraints_order is not None and trial.constraints_order > order:
            trial = trial._replace(constraints=None, constraints_order=None)
        if trial.curve and trial.curve[-1].order > order:
            trial = trial._replace(curve=trial.curve.until(order))
        return trial

    def _uncorrected(self) -> Trial:
        """Returns this trial before its last correction."""
        *earlier, last = self.corrected
        return self._replace(
            state=_state_of(last.reward, last.stopped), reward=last.reward, reason=last.reason,
            constraints=last.constraints, told_order=last.order, told_at=last.time, corrected=tuple(earlier),
            plays=last.plays, std=last.std, measured=last.measured, others=last.others,
        )  # fmt: skip

    def as_corrected(self) -> Trial:
        """Returns this trial as if its present answer had been told first."""
        if not self.corrected:
            return self
        first = self.corrected[0]
        return self._replace(told_order=first.order, told_at=first.time, corrected=())

    def events(self) -> list[tuple[EventKind, int]]:
        """Returns the kinds and orders of this trial's events, without its reports."""
        first, last, stopped = self.told_order, None, self.state == "stopped"
        if self.corrected:
            first, last, stopped = self.corrected[0].order, self.told_order, self.corrected[0].stopped
        found: list[tuple[EventKind, int | None]] = [
            ("asked", None if first == self.asked_order else self.asked_order),
            ("stopped" if stopped else "told", first),
            ("limited", self.constraints_order),
            ("abandoned", None if self.abandoned is None else self.abandoned.order),
            *(("corrected", answer.order) for answer in self.corrected[1:]),
            ("corrected", last),
        ]
        return [(kind, order) for kind, order in found if order is not None]

    @property
    def last_order(self) -> int:
        """Order of the trial's last event that is no report."""
        if self.constraints_order is None and self.abandoned is None:
            return self.asked_order if self.told_order is None else self.told_order
        return max(order for _, order in self.events())

    # -- as it becomes -------------------------------------------------------------------------------------------

    def answered(
        self, *, reward: float, order: int, time: float, constraints: Array | None = None, plays: Plays | None = None,
        std: float | None = None, measured: Measured = (), others: tuple[Other, ...] = (),
    ) -> Trial:  # fmt: skip
        """Returns this trial with its reward and the constraint values that came with it.

        Constraint values that came earlier stay if none came with the reward.
        """
        return tuple.__new__(Trial, self[:ASKED] + (  # noqa: RUF005 - a sum of tuples is faster
            "observed", reward, None, order, time, self.constraints if constraints is None else constraints,
            self.context_settings, self.constraints_order, self.lease_until, self.abandoned, (), self.repeats, plays,
            self.fits, self.propensity, std, measured, others, self.curve, self.visit,
        ))  # fmt: skip  # as in `asked`

    def with_constraints(self, *, constraints: Array, order: int) -> Trial:
        """Returns this trial with constraint values that were told without a reward."""
        return self._replace(constraints=constraints, constraints_order=order)

    def failed(self, *, reason: str, order: int, time: float) -> Trial:
        """Returns this trial as a failed one."""
        return self._replace(state="failed", reward=None, reason=reason, told_order=order, told_at=time)

    def as_stopped(self, *, reason: str, order: int, time: float) -> Trial:
        """Returns this trial as a stopped one."""
        return self._replace(state="stopped", reward=None, reason=reason, told_order=order, told_at=time)

    def with_report(self, report: Report) -> Trial:
        """Returns this trial with one more report."""
        return self._replace(curve=self.curve.with_report(report) if self.curve else Curve((report,)))

    def as_abandoned(self, *, reason: str, order: int, time: float) -> Trial:
        """Returns this trial as an abandoned one."""
        return self._replace(state="abandoned", abandoned=Abandoned(order, time, reason))

    def as_revised(
        self, *, reward: float | None, reason: str | None, constraints: Array | None, order: int, time: float,
        plays: Plays | None = None, std: float | None = None, measured: Measured = (), others: tuple[Other, ...] = (),
    ) -> Trial:  # fmt: skip
        """Returns this answered trial with another answer. `corrected` keeps the earlier one."""
        before = Answer(
            self.told_order or 0,
            self.told_at or 0.0,
            self.reward,
            self.reason,
            self.constraints,
            self.plays,
            self.std,
            self.measured,
            self.others,
            self.state == "stopped",
        )
        return self._replace(
            state=_state_of(reward), reward=reward, reason=reason, constraints=constraints, told_order=order,
            told_at=time, corrected=(*self.corrected, before), plays=plays, std=std, measured=measured,
            others=others,
        )  # fmt: skip


def is_metric_name(name: object) -> bool:
    """Returns whether a metric may have this name: one line of text, which every file can hold."""
    return isinstance(name, str) and bool(name.strip()) and len(name) <= LONGEST_NAME and name.isprintable()


def metric_of(name: object, entry: object) -> float | None:
    """Returns the number that a trial keeps under a name, or None if it keeps no such metric. True counts as 1."""
    value = real(float(entry) if isinstance(entry, bool | np.bool_) else entry) if is_metric_name(name) else None
    return value if value is not None and abs(value) <= LARGEST_REWARD else None


def metric_names(trials: Iterable[Trial]) -> list[str]:
    """Returns the names of all metrics of some trials, in the order in which they came."""
    return list(dict.fromkeys(name for trial in trials for name, _ in trial.measured))


def _state_of(reward: float | None, stopped: bool = False) -> TrialState:
    return "observed" if reward is not None else "stopped" if stopped else "failed"


def _said(curve: Curve) -> str | None:
    return f"{len(curve)}, the last {curve[-1].step}: {curve[-1].value!r}" if curve else None


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


def was_asked(trial: Trial) -> bool:
    """Returns whether the study was asked for a trial. Others were added with their answers, such as rows of a log."""
    return trial.as_corrected().told_order != trial.asked_order
