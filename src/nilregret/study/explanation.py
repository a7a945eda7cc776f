"""Why a trial was chosen, as numbers and in words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

from .._utils.checks import counted, many
from .._utils.serialize import to_plain
from ..kernels import Kernel
from ..policy.explain import Propensity
from ..slots.memory import Restart
from ..storage.record import Trial
from .direction import Goal

LISTED = 12  # pending trials that a text still lists


@final
@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A point as it looked when the trial was decided.

    Attributes:
        point: `d` coordinates, as the kernel sees them.
        arm: index into the `Arms`, or None on other domains.
        parameters: where the domain has named ones, else None.
        score: what the policy maximises: the larger, the more attractive, also where the goal is to minimise (then
            scores in reward units are of minus the loss, and of warped rewards where these decide). None in a forced
            uniform round, and where it was no choice.
        mean: posterior mean, in the units told; None where the policy has no posterior. Likewise `std`, the posterior
            standard deviation, and the policy's bounds `lower` and `upper`.
        std: see `mean`.
        lower: see `mean`.
        upper: see `mean`.
    """

    point: tuple[float, ...]
    arm: int | None
    parameters: dict[str, Any] | None
    score: float | None
    mean: float | None = None
    std: float | None = None
    lower: float | None = None
    upper: float | None = None

    @property
    def name(self) -> str:
        """Where it is, in words."""
        if self.parameters is not None:
            return ", ".join(f"{name}={_figure(value)}" for name, value in self.parameters.items())
        point = ", ".join(map(_figure, self.point))
        return f"({point})" if self.arm is None else f"arm {self.arm} ({point})"


@final
@dataclass(frozen=True, kw_only=True)
class ConstraintBounds:
    """What was believed of one constraint at the point chosen, in its own units; satisfied when <= 0.

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
class Explanation:
    """Why a trial was chosen, recomputed from the record of what had happened before (`Study.explain`).

    `str()` says it in words, `to_dict()` in what JSON can hold.

    Attributes:
        trial: as it was when it was asked for.
        goal: of the study.
        algorithm: of its policy.
        rule: name of the score that the round maximised; None of a forced uniform round, and of policies without one.
        forced_by: name of the part that forced the round (`UniformExploration`, `InitialDesign`, ...), or None.
        round: t, from 1, since the last restart.
        chosen: the point that was chosen.
        runner_up: the best of the others; on a continuous domain of the candidates that its search begins with and the
            best so far, at least 2% of the diagonal away. None where there was no other.
        compared: how many points the score was compared at, those ruled out included; None on a continuous domain.
        tied: how many of them shared the draw among the best; None on a continuous domain.
        width: what multiplied the standard deviation in the bounds; NaN where they are no such multiple, as those of
            warped rewards are none (`to_dict` has None there); None without a posterior.
        drawn: what multiplied it in the score, where that was drawn for the round (`RandomisedBound`); None elsewhere.
        valid_for: what the bounds were proved for (see `study.bounds`), or "none".
        pending: numbers of the trials that waited for an answer.
        answered: how many trials had been answered.
        first_counted: trials before this one had been forgotten; 0 where none had.
        restarts: cuts of the memory until then, each with its reason.
        multipliers: what violating each constraint cost, reward units; empty without constraints.
        constraints: bounds of each at the point chosen, where they have posteriors of their own; else empty.
        feasible: what was known of the point satisfying all constraints (`study.feasible`), or None.
        kernel: in force: the policy's, or the one fitted last (then of standardised rewards); None without a posterior.
        fitted: whether it is not the policy's own.
        lengthscales: factors of the lengthscales that were compared, each with its weight (`study.lengthscales`); empty
            where one kernel counts.
        turn: which of them decided the round alone, as a factor; None where all did by their weights.
        propensity: how probable the choice was, given what had happened before; None where that is not known: on
            continuous domains (but for uniform rounds on a box) and of points that were drawn for the whole study.
        repeated: whether the policy decides the same again. False where `ask(among=..., exclude=...)` had left only
            some points, which a record does not hold: pass them to `Study.explain`.
    """

    trial: Trial
    goal: Goal
    algorithm: str
    rule: str | None
    forced_by: str | None
    round: int
    chosen: Candidate
    runner_up: Candidate | None
    compared: int | None
    tied: int | None
    width: float | None
    drawn: float | None
    valid_for: str
    pending: tuple[int, ...]
    answered: int
    first_counted: int
    restarts: tuple[Restart, ...]
    multipliers: tuple[float, ...]
    constraints: tuple[ConstraintBounds, ...]
    feasible: float | None
    kernel: Kernel | None
    fitted: bool
    lengthscales: tuple[tuple[float, float], ...]
    turn: float | None
    propensity: Propensity | None
    repeated: bool

    @property
    def number(self) -> int:
        """Of the trial."""
        return self.trial.number

    @property
    def explored(self) -> bool:
        """Whether the round was a forced uniform one."""
        return self.trial.explored

    @property
    def score(self) -> float | None:
        """Of the point chosen (see `Candidate`)."""
        return self.chosen.score

    @property
    def mean(self) -> float | None:
        """Posterior mean at the point chosen."""
        return self.chosen.mean

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The policy's lower and upper bound there; None without a posterior."""
        if self.chosen.lower is None or self.chosen.upper is None:
            return None
        return self.chosen.lower, self.chosen.upper

    @property
    def _width(self) -> float | None:
        return None if self.width is None or math.isnan(self.width) else self.width

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values that JSON can hold."""
        context = self.trial.context
        return {
            "number": self.number, "asked_at": self.trial.asked_at, "explored": self.explored,
            "repeats": self.trial.repeats,
            "context": None if context is None else self.trial.context_parameters or context.tolist(),
            "goal": self.goal, "algorithm": self.algorithm, "rule": self.rule, "forced_by": self.forced_by,
            "round": self.round, "chosen": _plain(self.chosen),
            "runner_up": None if self.runner_up is None else _plain(self.runner_up),
            "compared": self.compared, "tied": self.tied, "width": self._width, "drawn": self.drawn,
            "valid_for": self.valid_for, "pending": list(self.pending), "answered": self.answered,
            "first_counted": self.first_counted,
            "restarts": [restart._asdict() for restart in self.restarts], "multipliers": list(self.multipliers),
            "constraints": [vars(each).copy() for each in self.constraints], "feasible": self.feasible,
            "kernel": None if self.kernel is None else to_plain(self.kernel), "fitted": self.fitted,
            "lengthscales": [list(each) for each in self.lengthscales], "turn": self.turn,
            "propensity": None if self.propensity is None else self.propensity._asdict(), "repeated": self.repeated,
        }  # fmt: skip

    def __str__(self) -> str:
        from tabulate import tabulate

        facts = [(name, said) for name, said in self.facts if said]
        return f"Trial {self.number}: {self.chosen.name}\n{self.why}\n\n{self._table()}\n\n" + tabulate(
            facts, tablefmt="plain", disable_numparse=True
        )

    def _table(self) -> str:
        from tabulate import tabulate

        rows = []
        for name, one in (("chosen", self.chosen), ("runner-up", self.runner_up)):
            if one is not None:
                rows.append([name, one.name, *map(_figure, (one.score, one.mean, one.std, one.lower, one.upper))])
        headings = ["", "point", "score", "mean", "std", "lower", "upper"]
        return tabulate(rows, headings, tablefmt="simple", disable_numparse=True, stralign="left")

    @property
    def why(self) -> str:
        """What the round went by, in a sentence or two."""
        by = f"Forced by {self.forced_by}" if self.forced_by else f"Chosen by {self.algorithm}"
        if self.rule is None:
            what = "a uniform draw" if self.forced_by else "the next point that its script names"
        elif self.compared is None:
            what = f"the highest {self.rule} that the search found"
        elif self.compared == 1:
            what = "the only point there was to choose"
        else:
            what = f"the highest {self.rule} of {self.compared} points"
            if self.tied is not None and self.tied > 1:
                what += f", one of {self.tied} that tie, drawn among them"
        said = f"{by}: {what}."
        if self.repeated and self._beaten():
            said += " What scores higher was not played: the point found was moved, by constraints, a grid or `apart`."
        if not self.repeated:
            said += (
                " Of everything there is the policy decides otherwise now. Usually `ask(among=...)` or `exclude=` had "
                "left only some points, which the record does not hold: pass them to `explain`, too."
            )
        return said

    def _beaten(self) -> bool:
        other = None if self.runner_up is None else self.runner_up.score
        return self.tied is None and self.score is not None and other is not None and other > self.score

    @property
    def facts(self) -> list[tuple[str, str]]:
        """What else there is to say, (of what, what); empty where there is nothing."""
        context = self.trial.context
        seen = "" if context is None else str(self.trial.context_parameters or context.tolist())
        width = "" if self._width is None else f"mean +- {_figure(self._width)} std, "
        drawn = f"mean + {_figure(self.drawn)} std" + " in the units that are learned" * (self._width is None)
        waiting = f"; waiting for {counted(len(self.pending), 'trial')} {_listed(self.pending)}" if self.pending else ""
        proved = "nothing is proved for them" if self.valid_for == "none" else f"proved for {self.valid_for}"
        return [
            ("context", seen),
            ("plays", f"{self.trial.repeats} before the next decision" if self.trial.repeats > 1 else ""),
            ("bounds", "" if self.mean is None else width + proved),
            ("score", "" if self.drawn is None else f"{drawn}, a width drawn for this round"),
            ("known", f"{many(self.answered, 'answer')}{waiting}"),
            ("forgotten", f"trials before {self.first_counted}" if self.first_counted else ""),
            ("restarts", "; ".join(f"trial {restart.round}: {restart.reason}" for restart in self.restarts)),
            ("multipliers", ", ".join(_figure(each) for each in self.multipliers if not math.isnan(each))),
            ("constraints", "; ".join(map(str, self.constraints))),
            ("feasible", "" if self.feasible is None else _figure(self.feasible)),
            ("kernel", repr(self.kernel) + ", fitted" if self.fitted else ""),
            ("lengthscales", self._compared()),
            ("propensity", _probable(self.propensity)),
        ]  # fmt: skip

    def _compared(self) -> str:
        known = ", ".join(f"x {factor:.3g}: {weight:.3f}" for factor, weight in self.lengthscales)
        return known if self.turn is None else f"{known}; the turn of x {self.turn:.3g}"


def _probable(propensity: Propensity | None) -> str:
    if propensity is None:
        return ""
    value = _figure(propensity.value) + " per unit of volume" * propensity.density
    if not propensity.draws:
        return value
    return f"{value} +- {propensity.standard_error:.2g} ({many(propensity.draws, 'draw')})"


def _plain(candidate: Candidate) -> dict[str, Any]:
    return vars(candidate) | {"point": list(candidate.point)}


def _listed(numbers: tuple[int, ...]) -> str:
    more = f" and {len(numbers) - LISTED} more" if len(numbers) > LISTED else ""
    return ", ".join(map(str, numbers[:LISTED])) + more


def _figure(value: object) -> str:
    return "-" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
