"""Comparison of policies in the same worlds, under the same noise."""

from __future__ import annotations

import inspect
import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, ParamSpec, TypeVar, final

import numpy as np

from .._utils.checks import Array, integer, listed, many, one_of, shown
from .._utils.dataclass import dataclass, replace
from .._utils.numerals import aligned, html_table, latex_cell, latex_text, numeral, with_error
from ..environments import Environment
from ..errors import InvalidInput, NoRegretError, NoRegretWarning, needs, printable, warn
from ..study.curves import Interval, carried_by, interval, standard_error
from ..study.direction import AnyPolicy, check_policy
from .metrics import Run
from .runner import MOST_ROUNDS, by_seed, check_fit, checked_seeds, replicated, simulated

if TYPE_CHECKING:
    import pandas as pd


By = Literal["cumulative", "simple"]
HEADINGS = [f"{kind} {what}" for kind in ("cumulative", "simple") for what in ("regret", "difference", "wins")]
RARE = (
    "A difference marked with seeds rests on these few, such as runs that got stuck. How often that happens is hardly "
    "known, so its interval may be too short: take more seeds."
)


class Row(NamedTuple):
    """A policy in an environment.

    Regret is that of all T rounds, in reward units. Differences are the policy's regret minus that of the reference, so
    that a positive one is worse. Errors and intervals are NaN with a single seed. If the reference is the best policy
    of these runs, the intervals of all pairs of policies hold at once.

    Attributes:
        environment: name.
        policy: name.
        reference: name of the policy that the differences are to.
        seeds: number of seeds.
        cumulative_regret: mean over the seeds.
        cumulative_error: standard error of the mean.
        cumulative_difference: mean paired difference to the reference.
        cumulative_lower: lower end of its 95% interval.
        cumulative_upper: upper end.
        cumulative_wins: share of the seeds with which the policy had the least regret. A tie counts in equal parts.
        simple_regret: mean over the seeds of the least regret of a played point. Infinite if some run had no answer.
        simple_error: standard error of the mean.
        simple_difference: mean paired difference to the reference.
        simple_lower: lower end of its 95% interval.
        simple_upper: upper end.
        simple_wins: share of the seeds with which the policy had the least simple regret.
        violation: mean violation V_T of the constraints, or NaN without constraints.
        violation_error: standard error of the mean.
        milliseconds: wall-clock time of a round and a seed, of the whole call. Compare times with `jobs=1` only.
        cumulative_carried: number of seeds that the interval rests on, such as runs that got stuck, or 0 if it rests on
            most (`nilregret.study.curves.carried_by`).
        simple_carried: the same of the simple difference.
    """

    environment: str
    policy: str
    reference: str
    seeds: int
    cumulative_regret: float
    cumulative_error: float
    cumulative_difference: float
    cumulative_lower: float
    cumulative_upper: float
    cumulative_wins: float
    simple_regret: float
    simple_error: float
    simple_difference: float
    simple_lower: float
    simple_upper: float
    simple_wins: float
    violation: float
    violation_error: float
    milliseconds: float
    cumulative_carried: int = 0
    simple_carried: int = 0


@final
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Comparison:
    """The runs of several policies in the same environments, and their differences.

    Attributes:
        runs: by name of the environment and name of the policy. Their arrays have a leading axis of seeds.
        seeds: the seeds, in the order of that axis.
        rounds: T.
        seconds: wall-clock time of a round and a seed, by environment and policy.
        baseline: name of the policy that differences are to, or None for the best one of each environment.
        by: regret that says which policy is best.
    """

    runs: Mapping[str, Mapping[str, Run]]
    seeds: tuple[int, ...]
    rounds: int
    seconds: Mapping[str, Mapping[str, float]]
    baseline: str | None = None
    by: By = "cumulative"

    @cached_property
    def table(self) -> tuple[Row, ...]:
        """A row for each environment and policy, in the order given. `pandas.DataFrame(result.table)` is a frame."""
        return tuple(row for environment in self.runs for row in self._rows(environment))

    def best(self, environment: str | None = None) -> str:
        """Returns the name of the policy with the least mean regret.

        Args:
            environment: name. The default is the first environment.
        """
        finals = self._finals(next(iter(self.runs)) if environment is None else environment, self.by)
        return min(finals, key=lambda name: float(finals[name].mean()))

    def _finals(self, environment: str, kind: By) -> dict[str, Array]:
        """Returns the regret of all T rounds by policy, `(seeds,)` each."""
        return {
            name: np.asarray(run.total_regret if kind == "cumulative" else run.simple_regret[..., -1])
            for name, run in self.runs[environment].items()
        }

    def _rows(self, environment: str) -> list[Row]:
        reference, pairs = self.baseline or self.best(environment), self._pairs(environment)
        finals: dict[By, dict[str, Array]] = {
            kind: self._finals(environment, kind) for kind in ("cumulative", "simple")
        }
        wins, rows = {kind: _wins(values) for kind, values in finals.items()}, []
        for name, run in self.runs[environment].items():
            numbers: dict[str, Any] = {}
            for kind, values in finals.items():
                mean, error = _mean(values[name])
                numbers |= {f"{kind}_regret": mean, f"{kind}_error": error, f"{kind}_wins": wins[kind][name]}
                difference, carried = _difference(values[name], values[reference], pairs)
                numbers[f"{kind}_carried"] = carried
                numbers |= dict(
                    zip((f"{kind}_{end}" for end in ("difference", "lower", "upper")), difference, strict=True)
                )
            violation = _mean(run.violation[..., -1]) if run.constraints.shape[-1] else (math.nan, math.nan)
            rows.append(
                Row(
                    environment=environment, policy=name, reference=reference, seeds=len(self.seeds),
                    violation=violation[0], violation_error=violation[1],
                    milliseconds=1e3 * self.seconds[environment][name], **numbers,
                )
            )  # fmt: skip
        return rows

    def _pairs(self, environment: str) -> int:
        """Returns the number of differences whose intervals hold at once: of all pairs if the runs chose the best."""
        return max(math.comb(len(self.runs[environment]), 2), 1) if self.baseline is None else 1

    def to_pandas(self, *, every: int | None = None) -> pd.DataFrame:
        """Returns the regret in long form: a row for each environment, policy, seed and round.

        The columns are environment, policy, seed, round, regret, cumulative_regret and simple_regret, and violation if
        an environment has constraints. `round` is the number of rounds played, from 1 to T.

        Args:
            every: every how many rounds there is a row. The last round has one. The default keeps 300 rounds at most.
        """
        with needs("`to_pandas`", "pandas", "export", instead="`result.table` and `result.runs` need nothing."):
            import pandas as pd
        step = -(-self.rounds // 300) if every is None else integer("every", every, low=1)
        kept = np.arange(self.rounds, 0, -step)[::-1]
        frames = []
        for environment, runs in self.runs.items():
            for name, run in runs.items():
                columns = {"regret": run.regret, "cumulative_regret": run.cumulative_regret}
                columns["simple_regret"] = run.simple_regret
                if run.constraints.shape[-1]:
                    columns["violation"] = run.violation
                frame = pd.DataFrame({column: values[:, kept - 1].reshape(-1) for column, values in columns.items()})
                frame.insert(0, "round", np.tile(kept, len(self.seeds)))
                frame.insert(0, "seed", np.repeat(np.array(self.seeds), len(kept)))
                frame.insert(0, "policy", name)
                frame.insert(0, "environment", environment)
                frames.append(frame)
        return pd.concat(frames, ignore_index=True)

    def to_latex(
        self, *, caption: str | None = None, label: str | None = None, columns: Sequence[str] | None = None,
        environment: str | None = None,
    ) -> str:  # fmt: skip
        """Returns the table for a paper, which needs the LaTeX package `booktabs`.

        Regret has its standard error, and differences have their 95% intervals. The least regret of each environment is
        bold. Times are left out.

        Args:
            caption: text under the table, in LaTeX. "" takes the sentences of `print(result)`. With a caption the table
                is a float, without one it is a `tabular` alone.
            label: label of the float, such as "tab:regret".
            columns: headings to keep, such as ("simple regret", "simple wins"), in this order. The default keeps all.
            environment: name of the only environment in the table. The default has all.

        Raises:
            InvalidInput: the caption or the label is no text, a label is given without a caption, there is no such
                column or environment, or no column.
        """
        if environment is not None:
            one_of("environment", environment, list(self.runs))
            one = replace(self, runs={environment: self.runs[environment]})
            return one.to_latex(caption=caption, label=label, columns=columns)
        for name, given in (("caption", caption), ("label", label)):
            if not isinstance(given, str | None):
                raise InvalidInput(f"`{name}` is {shown(given)}: it must be a text.")
        if label is not None and caption is None:
            raise InvalidInput("`label` needs a `caption`, since LaTeX refers to floats. `caption=''` takes ours.")
        headings, groups = self._cells()
        known = headings[1:-1]  # The last column, the times, is left out.
        why = "One heading alone is a list, too: ['simple wins']."
        named = known if columns is None else listed("columns", columns, why=why)
        chosen = [one_of("columns", each, known) for each in named]
        if not chosen:
            raise InvalidInput(f"`columns` is empty: name some of {', '.join(map(repr, known))}.")
        kept, width = [0, *map(headings.index, chosen)], 1 + len(chosen)
        lines = [rf"\begin{{tabular}}{{l{'r' * (width - 1)}}}", r"\toprule"]
        lines.append(" & ".join(headings[i] for i in kept) + r" \\")
        for environment, rows in groups.items():
            lines.append(r"\midrule")
            if len(groups) > 1:
                lines.append(rf"\multicolumn{{{width}}}{{l}}{{\emph{{{latex_text(environment)}}}}} \\")
            best = {1: self._least(environment, "cumulative"), 4: self._least(environment, "simple")}
            for row in rows:
                said = [latex_cell(row[i], bold=row[0] in best.get(i, ())) for i in kept[1:]]
                lines.append(" & ".join([latex_text(row[0]), *said]) + r" \\")
        table = "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])
        if caption is None:
            return table
        ours = " ".join(self._caption(environment, chosen) for environment in groups)
        under = caption or latex_text(ours.replace(f" {RARE}", "", ours.count(RARE) - 1))
        marks = [rf"\caption{{{under}}}"] + [rf"\label{{{label}}}"] * (label is not None)
        return "\n".join([r"\begin{table}", r"\centering", table, *marks, r"\end{table}"])

    def _least(self, environment: str, kind: By) -> set[str]:
        """Returns the names of the policies with the least mean regret, several if they are equal."""
        means = {name: float(values.mean()) for name, values in self._finals(environment, kind).items()}
        return {name for name, mean in means.items() if mean == min(means.values())}

    def plot(self, path: str | Path | None = None, *, environment: str | None = None, **options: Any) -> Any:
        """Returns a matplotlib figure of the mean regret with 95% intervals, a panel for each environment.

        Args:
            path: path of the picture, or None to save nothing. The ending names the format: .pdf, .svg or .png.
            environment: name of the only environment that is drawn. The default draws all.
            options: those of `nilregret.plots.regret`, such as `width="column"` and `kind="simple"`.
        """
        from .. import plots

        if environment is not None:
            one_of("environment", environment, list(self.runs))
        drawn: Any = self if environment is None else self.runs[environment]
        return plots.regret(drawn, path, **{"kind": self.by, **options})

    def __str__(self) -> str:
        from ..study.formatting import encodable
        from ..study.terminal import plain, table

        headings, groups = self._cells()
        tables = []
        for environment, rows in groups.items():
            cells = [[encodable(cell) for cell in row] for row in rows]
            tables.append(f"{encodable(self._caption(environment))}\n{plain(table(cells, headings, wide=True))}")
        return "\n\n".join(tables)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        headings, groups = self._cells()
        return "".join(
            html_table(
                headings, rows, caption=self._caption(environment),
                strong=[list(self.runs[environment]).index(self.best(environment))],
            )
            for environment, rows in groups.items()
        )  # fmt: skip

    def _caption(self, environment: str, columns: Sequence[str] = HEADINGS) -> str:
        reference = self.baseline or self.best(environment)
        known, pairs = "with 95% intervals (Student's t)", self._pairs(environment)
        if len(self.seeds) == 1:
            known = "without intervals: there is one seed"
        elif pairs > 1:
            known += f", which hold for all {pairs} pairs at once"
        start = f"{environment}: " if len(self.runs) > 1 or environment != "environment" else ""
        sizes = f"{many(len(self.seeds), 'seed')}, {many(self.rounds, 'round')}"
        kinds = [each.removesuffix(" difference") for each in columns if each.endswith(" difference")]
        few = any(getattr(row, f"{of}_carried") for of in kinds for row in self.table if row.environment == environment)
        least = "" if self.baseline else f" (least {self.by} regret)"
        means = len(self.seeds) > 1 and any(each.endswith(("regret", "violation")) for each in columns)
        error, to = " ± is one standard error of the mean." * means, f" Differences to {reference}{least}, {known}."
        return printable(f"{start}{sizes}.{error}{to * bool(kinds)}" + f" {RARE}" * few)

    def _cells(self) -> tuple[list[str], dict[str, list[list[str]]]]:
        """Returns the headings, and the cells of each environment's rows."""
        limits = any(not math.isnan(row.violation) for row in self.table)
        groups: dict[str, list[list[str]]] = {environment: [] for environment in self.runs}
        for row in self.table:
            own = row.policy == row.reference
            cumulative = _in_words(row.cumulative_difference, row.cumulative_lower, row.cumulative_upper)
            simple = _in_words(row.simple_difference, row.simple_lower, row.simple_upper)
            cells = [
                row.policy, with_error(row.cumulative_regret, row.cumulative_error, "±"),
                "" if own else cumulative + _carried(row.cumulative_carried), f"{row.cumulative_wins:.0%}",
                with_error(row.simple_regret, row.simple_error, "±"),
                "" if own else simple + _carried(row.simple_carried), f"{row.simple_wins:.0%}",
            ]  # fmt: skip
            cells += ["" if math.isnan(row.violation) else with_error(row.violation, row.violation_error, "±")] * limits
            groups[row.environment].append([*cells, numeral(row.milliseconds, 2)])
        return ["policy", *HEADINGS, *["violation"] * limits, "ms/round"], groups


def _mean(values: Array) -> tuple[float, float]:
    """Returns the mean of `(seeds,)` and its standard error. NaN for a single seed."""
    with np.errstate(invalid="ignore"):  # Regret is infinite without an answer.
        return float(values.mean()), float(standard_error(values)) if len(values) > 1 else math.nan


def _difference(values: Array, reference: Array, pairs: int = 1) -> tuple[Interval, int]:
    """Returns the mean paired difference with its interval, and the number of seeds that carry it.

    Args:
        values: regret by seed, `(seeds,)`.
        reference: that of the reference, `(seeds,)`.
        pairs: number of differences whose intervals hold at once.
    """
    with np.errstate(invalid="ignore"):
        differences = values - reference
        if len(values) == 1:
            return Interval(float(differences[0]), math.nan, math.nan), 0
        found = interval(differences, among=pairs)
        return found, carried_by(differences) if np.isfinite(differences).all() else 0


def _carried(count: int) -> str:
    """Returns a mark of a difference that a few seeds carry."""
    return f", by {many(count, 'seed')}" if count else ""


def _wins(finals: Mapping[str, Array]) -> dict[str, float]:
    """Returns the share of seeds with which each policy has the least regret. A tie counts in equal parts."""
    stacked = np.stack(list(finals.values()))
    least = stacked == stacked.min(axis=0)
    return dict(zip(finals, (least / least.sum(axis=0)).mean(axis=1).tolist(), strict=True))


def _in_words(difference: float, lower: float, upper: float) -> str:
    """Returns a difference with its interval."""
    if math.isnan(difference):
        return ""
    sign = "+" * (difference >= 0.0)
    if not (upper > lower and math.isfinite(upper - lower)):
        return sign + numeral(difference, 3) + " with each seed" * (lower == upper)
    said, *ends = aligned([difference, lower, upper], upper - lower)
    return f"{sign}{said} [{', '.join(ends)}]"


P = ParamSpec("P")
R = TypeVar("R")
PolicyOrMaker = AnyPolicy | Callable[..., AnyPolicy]
EnvironmentOrMaker = Environment | Callable[..., Environment]
OF_A_SEED = (
    "It must return an `Environment`. A function f of points is one as `nr.Environment(f, domain=..., noise=...)`, "
    "without `lambda`."
)


def compare(
    policies: Mapping[str, PolicyOrMaker] | Sequence[AnyPolicy],
    environments: EnvironmentOrMaker | Mapping[str, EnvironmentOrMaker] | Sequence[EnvironmentOrMaker],
    *,
    rounds: int,
    seeds: Sequence[int],
    jobs: int = 1,
    baseline: str | None = None,
    by: Literal["cumulative", "simple"] = "cumulative",
) -> Comparison:
    """Returns a paired comparison of policies: with each seed, all policies meet the same world and the same noise.

    The intervals are 95% intervals of Student's t for the mean of the paired differences over the seeds. They are
    exact for normal differences from two seeds on. Differences with a long tail need about twenty seeds. With
    `baseline`, each interval holds for one pair. Without, the intervals of all pairs hold at once, and the reference is
    the policy that came out best. To choose it by the same runs makes the differences slightly too large.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 20), nr.SquaredExponential(0.2)
    >>> world = nr.Environment(lambda x: x[:, 0], domain=arms, noise=0.1)
    >>> policies = {"UCB": nr.gp_ucb(arms, kernel, noise=0.1), "EI": nr.expected_improvement(arms, kernel, noise=0.1)}
    >>> result = nr.compare(policies, world, rounds=10, seeds=range(4))
    >>> print([row.policy for row in result.table], result.seeds)
    ['UCB', 'EI'] (0, 1, 2, 3)

    Args:
        policies: policies by name, or a list of them that are named by their algorithms. In place of a policy, a
            function that returns one. It is called with the seed, or with the environment if its argument is called
            `env`.
        environments: one environment, several by name, or a list. In place of an environment, a function of the seed
            that returns one, such as a new draw of f for each seed.
        rounds: rounds T of each run.
        seeds: one seed for each replicate, such as range(20).
        jobs: number of processes, as in `replicate`.
        baseline: name of the policy to which the others are compared. The default is the best in each environment.
        by: regret that says which policy is best: "cumulative" or "simple".
            Under noise "simple" ranks who played a good point, and not who knows it.

    Raises:
        InvalidInput: a policy and an environment do not fit, a name or a seed is there twice, or nothing is given. The
            error names the policy, the environment and the seed. An error of a function of yours has a note with them.
    """
    rounds, listed_seeds = integer("rounds", rounds, low=1, high=MOST_ROUNDS), checked_seeds(seeds)
    if len(set(listed_seeds)) < len(listed_seeds):
        raise InvalidInput(
            "`seeds` has a seed twice: its runs would be the same, so that intervals would be too short."
        )
    contenders, worlds = _named_policies(policies), _named_worlds(environments)
    by = "simple" if one_of("by", by, ["cumulative", "simple"]) == "simple" else "cumulative"
    if baseline is not None:
        one_of("baseline", baseline, contenders, why="It is the name of a policy.")
    for name, world in worlds.items():
        _check(name, world, contenders, listed_seeds[0])
    runs: dict[str, dict[str, Run]] = {name: {} for name in worlds}
    seconds: dict[str, dict[str, float]] = {name: {} for name in worlds}
    for name, world in worlds.items():
        if jobs == 1:
            _named(world.prepare, name)(listed_seeds)
        for policy, made in contenders.items():
            began = time.perf_counter()
            runs[name][policy], unsaid = _named(replicated, policy, name)(
                _Contender(made, world), world, rounds, seeds=listed_seeds, jobs=jobs
            )
            seconds[name][policy] = (time.perf_counter() - began) / (rounds * len(listed_seeds))
            for sentence in unsaid.values():
                warn(f"{policy}: {sentence}")
        world.forget()
    return Comparison(runs=runs, seeds=tuple(listed_seeds), rounds=rounds, seconds=seconds, baseline=baseline, by=by)


@final
class _Worlds:
    """The environments of one name: the same for all seeds, or one for each, made once in a process."""

    def __init__(self, given: EnvironmentOrMaker) -> None:
        self._given = given
        self._made: dict[int, Environment] = {}

    def __call__(self, seed: int) -> Environment:
        """Returns the environment of a seed."""
        if isinstance(self._given, Environment):
            return self._given
        if seed not in self._made:
            self._made[seed] = self.fresh(seed)
        return self._made[seed]

    def fresh(self, seed: int) -> Environment:
        """Returns the environment of a seed, made anew if a function makes it."""
        if isinstance(self._given, Environment):
            return self._given
        try:
            made = _named(by_seed(self._given), f"seed {seed}")(seed)
        except (AttributeError, TypeError) as error:
            if "'int' object" not in str(error):
                raise
            raise InvalidInput(
                f"The function was called with seed {seed}, and it failed: {error}.", advice=OF_A_SEED
            ) from error
        if not isinstance(made, Environment):
            raise InvalidInput(f"The function for seed {seed} returned {shown(made)}.", advice=OF_A_SEED)
        return made

    def prepare(self, seeds: Sequence[int]) -> None:
        """Makes the environments and finds their best values, so that no policy's time includes this."""
        for seed in seeds:
            if self(seed).still:
                _ = self(seed).best_value

    def forget(self) -> None:
        """Releases the memory."""
        self._made.clear()

    def __getstate__(self) -> dict[str, Any]:
        return {"_given": self._given, "_made": {}}  # Other processes make the worlds of their seeds.


@final
class _Contender:
    """A function of the seed that returns the policy of a replicate."""

    def __init__(self, given: PolicyOrMaker, worlds: _Worlds) -> None:
        self._given, self._worlds = given, worlds

    def __call__(self, seed: int) -> AnyPolicy:
        return _named(self._fitting, f"seed {seed}")(self._worlds(seed), seed)

    def _fitting(self, env: Environment, seed: int) -> AnyPolicy:
        made = self._given
        if callable(made):
            made = made(env=env) if _takes_environment(made) else by_seed(made)(seed)
        check_fit(made, env)
        return made


def _takes_environment(make: Callable[..., AnyPolicy]) -> bool:
    try:
        return "env" in inspect.signature(make).parameters
    except ValueError:  # Some built-in functions have no signature.
        return False


def _named_policies(policies: Any) -> dict[str, PolicyOrMaker]:
    """Returns the policies by name after checks."""
    if not isinstance(policies, Mapping):
        single = hasattr(policies, "algorithm") or callable(policies) or isinstance(policies, str)
        if single or not isinstance(policies, Sequence):
            raise InvalidInput(
                f"`policies` is {shown(policies)}: it must be a dict such as {{'GP-UCB': policy, 'EI': other}}."
            )
        for policy in policies:
            check_policy(policy)
        policies = _unique("policies", [(policy.algorithm, policy) for policy in policies])
    if not policies:
        raise InvalidInput("`policies` is empty: there is nothing to compare.")
    for name, policy in policies.items():
        _check_name("policies", name)
        if not callable(policy):
            _named(check_policy, name)(policy)
    return _unique("policies", [(name.strip(), policy) for name, policy in policies.items()])


def _named_worlds(environments: Any) -> dict[str, _Worlds]:
    """Returns the environments by name after checks."""
    if isinstance(environments, Environment) or callable(environments):
        environments = {"environment": environments}
    elif isinstance(environments, Sequence) and not isinstance(environments, str):
        environments = {f"environment {i + 1}": each for i, each in enumerate(environments)}
    if not isinstance(environments, Mapping):
        raise InvalidInput(
            f"`environments` is {shown(environments)}: it must be an `Environment`, several by name or in a list, or "
            "a function of the seed that returns one."
        )
    if not environments:
        raise InvalidInput("`environments` is empty: there is nothing to play in.")
    for name, each in environments.items():
        _check_name("environments", name)
        if not isinstance(each, Environment) and not callable(each):
            raise InvalidInput(
                f"`environments` has {shown(each)} under {name!r}: it must be an `Environment` or make one."
            )
    return _unique("environments", [(name.strip(), _Worlds(each)) for name, each in environments.items()])


def _check_name(what: str, name: object) -> None:
    if not isinstance(name, str) or not name.strip():
        raise InvalidInput(f"`{what}` has the name {shown(name)}: a name must be some text, which labels a line.")


def _unique(what: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidInput(f"`{what}` has the name {twice!r} twice: give a dict with a name of its own for each.")
    return dict(pairs)


def _named(check: Callable[P, R], *places: str) -> Callable[P, R]:
    """Returns the function with names before the text of its errors, or in a note to errors of a user's function."""

    def checked(*args: P.args, **options: P.kwargs) -> R:
        try:
            return check(*args, **options)
        except NoRegretError as error:
            for place in reversed(places):
                error = error.within(place)
            raise error from None
        except Exception as error:
            error.add_note("".join(f"[{place}]" for place in places))
            raise

    return checked


def _check(name: str, world: _Worlds, contenders: Mapping[str, PolicyOrMaker], seed: int) -> None:
    """Plays one round of each policy, so that errors come before the long part and no import is in its time."""
    env = _named(world, name)(seed)
    if not env.agrees(_named(world.fresh, name)(seed)):
        raise InvalidInput(
            f"[{name}] The function returned two different environments for seed {seed}, so that policies would not "
            "be compared in the same world: draw everything from `np.random.default_rng(seed)`."
        )
    for policy, given in contenders.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoRegretWarning)
            made = _named(_Contender(given, world), policy, name)(seed)
            _named(simulated, policy, name)(made, env, 1, seed=seed)
