"""The explanation of a trial, as numbers and in words."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast, final

from .._utils.checks import Array, counted, many
from .._utils.dataclass import dataclass, fields
from .._utils.numerals import MOST_DIGITS, numeral, percent, with_error
from ..domains.options import readable
from ..errors import printable
from ..kernels import Kernel
from ..policy.explain import Propensity
from ..serialize import to_plain
from ..slots.envelope import Envelope
from ..slots.memory import Restart
from ..slots.no_worse import Standing
from ..storage.record import Trial
from .direction import Goal
from .formatting import figure, in_words, settings
from .trial_json import context_json

if TYPE_CHECKING:
    from rich.console import Group


LONG = re.compile(r"\d+\.\d{5,}(?:e-?\d+)?")  # A number with more digits than it deserves.
LISTED = 12  # Pending trials that a text lists at most.
LOGARITHMS = ("ExpectedImprovement", "HypervolumeImprovement", "ScalarisedImprovement")  # Scores by their logarithm.
SIGNED = ("UpperConfidenceBound", "RandomisedBound", "GaussianDraws", "PosteriorMean", "ThompsonSample")  # Of rewards.
PLACED = {  # By what, and how, a part chose the only point of its round.
    "InitialDesign": ("Part of the initial design", "its next point"),
    "Elsewhere": (
        "Search away from the best point, near which no more gain was expected",
        "the largest expected improvement over the best trial elsewhere",
    ),
}


@final
@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A point as the policy saw it when the trial was decided.

    Attributes:
        point: `d` coordinates, as the kernel sees them.
        arm: index into the `Arms`, or None on other domains.
        parameters: named parameters, or None if the domain has none.
        score: the number that the policy maximises, also if the goal is to minimise. Scores in reward units are then of
            minus the loss. If rewards are warped, scores are in warped units. None in a forced uniform round, and if
            there was no choice.
        mean: posterior mean in the units told, or None without a posterior. Of several objectives, that of the first.
        std: posterior standard deviation, or None without a posterior.
        lower: the policy's lower bound, or None without a posterior.
        upper: the policy's upper bound, or None without a posterior.
        others: the same of each further objective.
    """

    point: tuple[float, ...]
    arm: int | None
    parameters: dict[str, Any] | None
    score: float | None
    mean: float | None = None
    std: float | None = None
    lower: float | None = None
    upper: float | None = None
    others: tuple[OutputBounds, ...] = ()

    @property
    def numbers(self) -> tuple[float | None, ...]:
        """Mean, standard deviation, lower and upper bound of the first objective."""
        return self.mean, self.std, self.lower, self.upper

    @property
    def objectives(self) -> tuple[OutputBounds, ...]:
        """The posterior of each objective at the point."""
        return OutputBounds(*cast(tuple[float, float, float, float], self.numbers)), *self.others

    @property
    def name(self) -> str:
        """The point in words."""
        return settings(self.parameters, self.point, self.arm)


@final
@dataclass(frozen=True)
class OutputBounds:
    """The posterior of an objective at a point, in the units told, or of a constraint, satisfied when <= 0.

    Attributes:
        mean: posterior mean.
        std: posterior standard deviation.
        lower: lower bound.
        upper: upper bound.
    """

    mean: float
    std: float
    lower: float
    upper: float

    def __str__(self) -> str:
        return f"{_figure(self.mean)} in [{_figure(self.lower)}, {_figure(self.upper)}]"


@final
@dataclass(frozen=True, kw_only=True)
class FrontGain:
    """The expected gain of a front by a trial, if each objective has a normal law with its mean and deviation.

    Attributes:
        size: number of trials on the front before the trial.
        volume: hypervolume of that front, the product of the units.
        reference: worst value of each objective that counts, `(k,)`.
        gain: expected gain of the volume. Pending trials count with their means.
        chance: probability that no trial of the front beats the trial in all objectives.
        beaten_by: a trial of the front that is at least as good in the mean of every objective, or None.
    """

    size: int
    volume: float
    reference: tuple[float, ...]
    gain: float
    chance: float
    beaten_by: int | None = None

    @property
    def why(self) -> str:
        """The gain in a sentence or two."""
        share = "volume to" if self.gain > 0.0 else "no volume to"
        if self.volume > 0.0:
            share = f"{numeral(100.0 * self.gain / self.volume, 2)}% to the volume of"
        said = f"It was expected to add {share} a front of {many(self.size, 'trial')}, "
        said += f"and to be on the front with probability {percent(self.chance)}."
        if self.beaten_by is not None:
            said += f" Trial {self.beaten_by} is better in all means, so only what was not known could bring the gain."
        return said

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Name and text of the front and of the gain."""
        corner = ", ".join(map(_figure, self.reference))
        return [
            ("front", f"{many(self.size, 'trial')}, volume {_figure(self.volume)} from ({corner})"),
            ("gain", f"{_figure(self.gain)} of volume expected"),
        ]


@final
@dataclass(frozen=True, kw_only=True)
class Explanation:
    """The reasons why a trial was chosen, recomputed from the record of everything before it (`Study.explain`).

    `str()` gives the explanation in words, `to_dict()` as values that JSON can hold.

    Attributes:
        trial: the trial as `ask` returned it, without an outcome.
        goal: of the study. A tuple of the goals, if there are several objectives.
        objectives: names of several objectives. Empty if there is one.
        algorithm: of the policy.
        rule: name of the score that the round maximised. None in a forced uniform round, and without a score.
        forced_by: name of the part that forced the round (`UniformExploration`, `InitialDesign`, ...), or None.
        round: t, from 1, since the last restart.
        chosen: the point that was chosen.
        runner_up: the best other point, or None. On a continuous domain, it is the best of the search's first
            candidates and of the points found, at least 2% of the diagonal away.
        compared: number of points with a score, those ruled out included, or None on a continuous domain.
        tied: number of best points that shared a random draw, or None on a continuous domain.
        width: factor of the standard deviation in the bounds. NaN if the bounds have no such factor, as with warped
            rewards (`to_dict` then has None). None without a posterior.
        drawn: factor of the standard deviation in the score, if it was drawn for the round (`RandomisedBound`), or
            None.
        valid_for: claim that was proved for the bounds (see `Study.valid_for`), or "none".
        pending: numbers of the pending trials.
        answered: number of answered trials.
        first_counted: first trial that the memory had not forgotten, 0 if it remembered all.
        restarts: cuts of the memory until then, each with its reason.
        multipliers: price of violating each constraint, reward units. Empty if the policy has none.
        constraints: bounds of each constraint at the chosen point, if constraints have posteriors of their own, else
            empty.
        front: expected gain of the front, if the policy looks for one and chose by a score, or None.
        feasible: how sure it was that the point satisfies all constraints (see `Study.feasible`), or None.
        kernel: kernel in force: the policy's, or the last fitted one, which is of standardised rewards. None without a
            posterior.
        fitted: True if the kernel is a fitted one.
        lengthscales: factors of the lengthscales that were compared, each with its weight (`Study.lengthscales`). Empty
            if there is one kernel.
        turn: the factor that decided the round alone, or None if all decided by their weights.
        propensity: probability of the choice, given everything before. None on continuous domains (except for uniform
            rounds on a box), and for points that were drawn for the whole study.
        enqueued: what `Study.enqueue` named, or `Study.sheet` rounded, which the trial is: parameters, a point or the
            number of an arm. None if the policy chose. Where some parameters were named, it chose the others.
        unrounded: what the policy chose, if the trial is that point as `Study.sheet` rounds it, or None. The score is
            then of the rounded point.
        proofs: why each constraint holds at the point, in words, with `nr.Safe(slope=...)`, else empty.
        towards: a better point that the answer may help to certify, with `nr.Safe(slope=...)`, or None.
        budgets: budgets of `nr.NoWorse` before the decision, each a `nilregret.slots.no_worse.Standing`. Empty without.
        instead: what the policy would have played, if a budget held the round to the control, or None.
        cautions: sentences about what made the belief wrong, such as default rewards at a deadline (`Study.remarks`).
        repeated: True if the policy decides the same again. It is False if `ask(among=..., exclude=...)` had left only
            some points, which a record does not hold. Pass them to `Study.explain`.

    >>> import nilregret as nr
    >>> arms = nr.Arms.grid(0, 10, 11)
    >>> study = nr.Study(nr.gp_ucb(arms, nr.SquaredExponential(2.0), noise=0.1))
    >>> why = study.explain(study.ask())
    >>> why.number, why.repeated
    (0, True)
    """

    trial: Trial
    goal: Goal | tuple[Goal, ...]
    objectives: tuple[str, ...] = ()
    algorithm: str
    rule: str | None = None
    forced_by: str | None = None
    round: int
    chosen: Candidate
    runner_up: Candidate | None = None
    compared: int | None = None
    tied: int | None = None
    width: float | None = None
    drawn: float | None = None
    valid_for: str = "none"
    pending: tuple[int, ...]
    answered: int
    first_counted: int = 0
    restarts: tuple[Restart, ...]
    multipliers: tuple[float, ...]
    constraints: tuple[OutputBounds, ...] = ()
    front: FrontGain | None = None
    feasible: float | None = None
    kernel: Kernel | None = None
    fitted: bool = False
    lengthscales: tuple[tuple[float, float], ...] = ()
    turn: float | None = None
    propensity: Propensity | None = None
    enqueued: dict[str, Any] | list[float] | int | None = None
    unrounded: Candidate | None = None
    proofs: tuple[str, ...] = ()
    towards: Candidate | None = None
    budgets: tuple[Standing, ...] = ()
    instead: Candidate | None = None
    cautions: tuple[str, ...] = ()
    repeated: bool

    @property
    def number(self) -> int:
        """Number of the trial."""
        return self.trial.number

    @property
    def explored(self) -> bool:
        """True if the round was a forced uniform one."""
        return self.trial.explored

    @property
    def score(self) -> float | None:
        """Score of the chosen point (see `Candidate`)."""
        return self.chosen.score

    @property
    def mean(self) -> float | None:
        """Posterior mean at the chosen point."""
        return self.chosen.mean

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The policy's lower and upper bound at the chosen point, or None without a posterior."""
        if self.chosen.lower is None or self.chosen.upper is None:
            return None
        return self.chosen.lower, self.chosen.upper

    @property
    def _width(self) -> float | None:
        return None if self.width is None or math.isnan(self.width) else self.width

    def to_dict(self) -> dict[str, Any]:
        """Returns the explanation as plain values that JSON can hold."""
        trial = self.trial
        first = {
            "number": trial.number, "asked_at": trial.asked_at, "explored": trial.explored, "repeats": trial.repeats,
            "context": context_json(trial),
        }  # fmt: skip
        rest = {field.name: _plain(getattr(self, field.name)) for field in fields(self) if field.name != "trial"}
        if not self.objectives:  # One objective has no such entries.
            del rest["objectives"], rest["front"]
        if self.unrounded is None:
            del rest["unrounded"]
        if not self.proofs:
            del rest["proofs"], rest["towards"]
        if not self.budgets:  # Most policies have none.
            del rest["budgets"], rest["instead"]
        if not self.cautions:
            del rest["cautions"]
        return first | rest | {"width": self._width, "why": self.why}

    def __str__(self) -> str:
        from .terminal import plain

        return "\n".join(map(plain, self._parts(wide=True)))

    def __rich__(self) -> Group:
        from rich.console import Group

        return Group(*self._parts(wide=None))

    def _parts(self, *, wide: bool | None) -> list[Any]:
        """Returns the texts and tables of the explanation, which fit the terminal unless `wide`."""
        from .terminal import facts, table

        numbers = [f"{name} (objective)" if name in ("point", "score") else name for name in self.objectives]
        rows = [
            [name, one.name, self.shown_score(one), *(map(str, one.objectives) if numbers else one.numbers)]
            for name, one in (("chosen", self.chosen), ("runner-up", self.runner_up))
            if one is not None
        ]
        headings = ["", "point", "score", *(numbers or ("mean", "std", "lower", "upper"))]
        compared = table(rows, headings, wide=wide, dispensable=["lower", "upper", "std"])
        return [f"Trial {self.number}: {self.chosen.name}", f"{self.why}\n", compared, "", facts(self.facts)]

    @property
    def why(self) -> str:
        """The reason of the choice, in a sentence or two."""
        best = "lowest" if self._of_losses else "highest"
        # Outside of its phases `Elsewhere` leaves rounds to its coordinate search, which compares several points.
        part = "CoordinateSearch" if self.forced_by == "Elsewhere" and self.compared != 1 else self.forced_by
        by = f'Forced by the rule "{in_words(part)}"' if part else f"Chosen by {printable(self.algorithm)}"
        if (unchosen := self._unchosen()) is not None:
            by, what = unchosen
        elif self.rule is None:
            what = "a uniform draw" if self.forced_by else "the next point that its script names"
        elif self.towards is not None:
            what = f"a certified point whose answer may certify {self.towards.name}, which would be better"
        elif self.compared is None:
            what = f"the {best} {self._scored} that the search found"
        elif self.compared == 1 and part in PLACED:
            by, what = PLACED[part]
        elif self.compared == 1:
            what = "the only point there was to choose"
        else:
            what = f"the {best} {self._scored}{',' * bool(self._prices)} of {self.compared} points"
            if self.tied is not None and self.tied > 1:
                what += f", one of {self.tied} that tie, drawn among them"
        what += ", rounded for a sheet" * (self.unrounded is not None)
        said = f"{by}: {what}." + (f" {self.front.why}" if self.front is not None else "")
        if self.repeated and self.towards is None and self._beaten():
            said += " What scores higher was not played: the point found was moved, by constraints, a grid or `apart`."
        if not self.repeated:
            said += (
                " Of everything there is the policy decides otherwise now. Usually `ask(among=...)` or `exclude=` had "
                "left only some points, which the record does not hold: pass them to `explain`, too."
            )
        return said

    @property
    def _scored(self) -> str:
        """The rule in words, or an empty text. If the score is shown as a loss, an upper bound is a lower bound."""
        said = in_words(self.rule or "").lower()
        said = said.replace("upper", "lower") if self._of_losses else said
        return f"{said} {'plus' if self._of_losses else 'less'} price x expected use" if self._prices else said

    @property
    def _prices(self) -> str:
        """The prices that the score counts for constraints that hold on average, as "0.2 x -0.1", or an empty text."""
        if self.rule not in SIGNED or not (self.constraints and self.multipliers):
            return ""
        priced = zip(self.multipliers, self.constraints, strict=True)
        return " + ".join(f"{_figure(price)} x {_figure(each.lower)}" for price, each in priced)

    @property
    def better(self) -> Literal["larger", "smaller"]:
        """The direction of `shown_score`."""
        return "smaller" if self._of_losses else "larger"

    @property
    def _of_losses(self) -> bool:
        return self.goal == "minimize" and self.rule in SIGNED

    def shown_score(self, candidate: Candidate) -> float | None:
        """Returns the score in the direction of the goal: a bound or a sample of losses in place of minus the loss.

        None if there is no score, or if another rule chose the point.
        """
        score = None if self.forced_by in PLACED and self.compared == 1 else candidate.score
        return score if score is None or not self._of_losses else 0.0 - score

    def _unchosen(self) -> tuple[str, str] | None:
        """Returns by what, and how, a point came that no score chose, or None."""
        if self.enqueued is not None and self.unrounded is None:
            partly = isinstance(self.enqueued, dict) and self.enqueued != self.trial.parameters
            rest = f"{settings(self.enqueued, (), None)}, and the policy chose the rest" if partly else ""  # type: ignore[arg-type]
            by = "Asked for by `enqueue`" + " or `sheet`" * (not partly and self.trial.arm is None)  # Not on record.
            return by, rest or "the point as it was named"
        if self.trial.kept is not None:
            return "Kept for the unit", f"the choice of trial {self.trial.kept}"
        if self.instead is not None:
            alike = self.instead.point == self.chosen.point
            other = "the policy would have played it too"
            return "Held to the control", other if alike else f"the budget does not bear {self.instead.name}"
        return None

    def _beaten(self) -> bool:
        other = None if self.runner_up is None else self.runner_up.score
        return self.tied is None and self.score is not None and other is not None and other > self.score

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Further facts, (name, text). The text is empty if there is nothing to say."""
        context = self.trial.context
        seen = "" if context is None else figure(self.trial.context_parameters or context.tolist())
        width = "" if self._width is None else f"mean +- {_figure(self._width)} std, "
        unscored = self.shown_score(self.chosen) is None
        logarithm = ", its logarithm" * (self.rule in LOGARITHMS)
        units = " in the units that are learned" * (self._width is None)
        plus, less = ("-", "+") if self._of_losses else ("+", "-")
        drawn = (
            "" if self.drawn is None else f"mean {plus} {_figure(self.drawn)} std{units}, a width drawn for this round"
        )
        priced = f"{less} ({self._prices}), price x lower bound of use, at the chosen point" if self._prices else ""
        made = "; ".join(filter(None, (drawn, priced)))
        waiting = f"; waiting for {counted(len(self.pending), 'trial')} {_listed(self.pending)}" if self.pending else ""
        proved = "nothing is proved for them" if self.valid_for == "none" else f"proved for {self.valid_for}"
        return [
            ("context", seen),
            ("unrounded", "" if self.unrounded is None else _exactly(self.unrounded)),
            ("plays", f"{self.trial.repeats} before the next decision" if self.trial.repeats > 1 else ""),
            ("bounds", "" if self.mean is None else width + proved),
            ("score", "" if unscored else f"{self._scored}{logarithm}, {self.better} is better{made and ': '}{made}"),
            ("known", f"{many(self.answered, 'answer')}{waiting}"),
            ("forgotten", f"trials before {self.first_counted}" if self.first_counted else ""),
            ("restarts", "; ".join(f"trial {restart.round}: {restart.reason}" for restart in self.restarts)),
            ("multipliers", ", ".join(_figure(each) for each in self.multipliers if not math.isnan(each))),
            ("constraints", "; ".join(map(str, self.constraints))),
            *(() if self.front is None else self.front.facts),
            *(("certified", f"constraint {j}, {each}") for j, each in enumerate(self.proofs, 1)),
            ("feasible", "" if self.feasible is None else percent(self.feasible)),
            ("kernel", f"{_short(repr(self.kernel))}, fitted" if self.fitted else ""),
            ("lengthscales", self._compared()),
            *(("budget", str(each)) for each in self.budgets),
            ("propensity", _probable(self.propensity)), *(("caution", each) for each in self.cautions),
        ]  # fmt: skip

    def _compared(self) -> str:
        known = ", ".join(f"x {numeral(factor, 3)}: {weight:.3f}" for factor, weight in self.lengthscales)
        return known if self.turn is None else f"{known}; the turn of x {numeral(self.turn, 3)}"


def _exactly(candidate: Candidate) -> str:
    return settings(candidate.parameters, candidate.point, candidate.arm, MOST_DIGITS)


def _probable(propensity: Propensity | None) -> str:
    if propensity is None:
        return ""
    unit = " per unit of volume" * propensity.density
    if not propensity.draws:
        return _figure(propensity.value) + unit
    return f"{with_error(propensity.value, propensity.standard_error)}{unit} ({many(propensity.draws, 'draw')})"


def _short(text: str) -> str:
    return LONG.sub(lambda found: numeral(float(found[0])), text)


def _plain(value: Any) -> Any:
    """Returns a part of an explanation as plain values."""
    if isinstance(value, Candidate | OutputBounds | FrontGain):
        return {name: _plain(each) for name, each in vars(value).items() if name != "others" or each}
    if hasattr(value, "_asdict"):  # a restart or a propensity
        return value._asdict()
    if isinstance(value, Kernel):
        return to_plain(value)
    if isinstance(value, dict):
        return readable(value)
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


def _listed(numbers: tuple[int, ...]) -> str:
    more = f" and {len(numbers) - LISTED} more" if len(numbers) > LISTED else ""
    return ", ".join(map(str, numbers[:LISTED])) + more


def _figure(value: object) -> str:
    return figure(value) or "-"


TWO = 2.0  # Standard deviations of the band if the policy's own factor proves nothing.

Band = Literal["proved", "policy", "deviations"]


class PosteriorBand(NamedTuple):
    """The posterior at n points.

    Attributes:
        mean: posterior mean, `(n,)`.
        lower: lower end of the band, `(n,)`. If the posterior is skew, the mean may lie outside the band.
        upper: upper end of the band, `(n,)`.
        band: kind of the band. "proved" is the policy's bounds, proved for f. "policy" is the policy's bounds without a
            proof that are no multiple of the standard deviation, such as quantiles of warped rewards. "deviations" is
            two standard deviations to either side.
    """

    mean: Array
    lower: Array
    upper: Array
    band: Band


def band_of(found: Envelope, *, constraint: bool) -> PosteriorBand:
    """Returns the band of the reward, or of a constraint."""
    if found.valid_for == "f":
        return PosteriorBand(found.mean, found.lower, found.upper, "proved")
    if found.width is None or constraint:
        return PosteriorBand(found.mean, found.lower, found.upper, "policy")
    return PosteriorBand(found.mean, found.mean - TWO * found.std, found.mean + TWO * found.std, "deviations")
