"""Policies that begin with what earlier studies of similar problems know."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from .._utils.checks import LARGEST_REWARD, Array, many, number_in, shown, url_of
from ..domains.domain import Arms, D, Domain, Space, keeping_limits, sides
from ..domains.parameters import CHOSEN, Choice, Parameter, option_place
from ..errors import InvalidInput, warn
from ..gp.mixture import EarlierStudy
from ..kernels import kernel_for
from ..policy.policy import Policy
from ..serialize import loads
from ..slots.explore import begun_with
from ..slots.refit import EarlierStudies, Refit
from ..storage.base import Storage

if TYPE_CHECKING:
    from .._utils.tables import Table

PREFIX = r"^(parameters\.|params_)"  # of a parameter's column, as `study.export` and Optuna name it
KINDS = (
    "a study, a result of `nr.maximize`, the path or URL of a storage (a study of it: 'sqlite:///file.db#name'), a "
    "study of Optuna, or a table with a column for each parameter and a column `reward`, also in a file"
)


class Told(NamedTuple):
    """An answered trial.

    Attributes:
        where: the parameters by name, or the point `(d,)` of a domain without names.
        reward: larger is better.
    """

    where: Mapping[str, Any] | Array
    reward: float


class Source(NamedTuple):
    """An earlier study.

    Attributes:
        name: of the study.
        trials: those with a reward.
    """

    name: str
    trials: Sequence[Told]


def read_sources(like: Any, goal: str) -> list[list[Source]]:
    """Returns the earlier studies of each source that was given.

    Args:
        like: a source or several.
        goal: of the new study. The rewards of tables are losses if it is "minimize".
    """
    single = not isinstance(like, list | tuple) or (len(like) > 0 and all(isinstance(row, Mapping) for row in like))
    sources = [like] if single else list(like)
    if not sources:
        raise InvalidInput("`like` is empty: leave it out, or give studies of similar problems.")
    return [_read(source, goal, f"like[{i}]") for i, source in enumerate(sources)]


def _read(source: Any, goal: str, name: str) -> list[Source]:
    from .._utils.tables import ENDINGS, read_table, table_of

    table = None if isinstance(source, str | Path) else table_of(source, f"`{name}`")
    if table is not None:
        return [_of_table(table, goal)]
    source = getattr(source, "study", source)  # of a result
    if isinstance(source, str | Path):
        path = str(source)
        if path.lower().endswith(ENDINGS):
            return [_of_table(read_table(path), goal)]
        return _of_storage(path)
    if isinstance(source, Storage):
        return _of_names(source, source.names())
    if all(hasattr(source, each) for each in ("policy", "goal", "trials")):
        return [_of_trials(source.policy, source.trials, source.goal, source.name)]
    if all(hasattr(source, each) for each in ("directions", "trials", "study_name")):
        return [_of_optuna(source)]
    raise InvalidInput(f"`{name}` is {shown(source)}: an earlier study is {KINDS}.")


def _of_trials(policy: Any, trials: Iterable[Any], goal: str, name: str) -> Source:
    """Returns the observed trials. Their constraint values and failures are left out."""
    if policy.context is not None:
        raise InvalidInput(
            f"Earlier study {shown(name)} has contexts, which are not carried over: give its rewards under the context "
            "in question as a table."
        )
    if policy.objective_count > 1:
        raise InvalidInput(
            f"Earlier study {shown(name)} has {policy.objective_count} objectives, and `like` learns from one: give "
            "the values of one as a table with a column `reward`."
        )
    sign = 1.0 if goal == "maximize" else -1.0
    found = [
        Told(trial.point if trial.parameters is None else trial.parameters, sign * trial.reward)
        for trial in trials
        if trial.reward is not None
    ]
    return Source(name, found)


def _of_storage(path: str) -> list[Source]:
    """Returns the studies of a storage, or the one named after a "#"."""
    from ..storage.sql import opened  # Slow to import, and most policies have no earlier studies.
    from .schema import within

    url, _, name = path.partition("#")
    storage = within("like", lambda: opened(url_of(url), make=False))
    try:
        return _of_names(storage, [name] if name else storage.names())
    finally:
        storage.close()


def _of_names(storage: Storage, names: Iterable[str]) -> list[Source]:
    found = []
    for name in names:
        stored = storage.find(name)
        if stored is None:
            raise InvalidInput(f"{storage.place} has no study {shown(name)}: it has {shown(storage.names())}.")
        trials = storage.news(stored, since=0, stamp="").trials
        found.append(_of_trials(loads(stored.policy), trials, stored.goal, name))
    return found


def _of_optuna(study: Any) -> Source:
    """Returns the completed trials of a study of Optuna."""
    if len(study.directions) > 1:
        raise InvalidInput(f"Study {shown(study.study_name)} has {len(study.directions)} objectives: `like` takes one.")
    sign = 1.0 if study.directions[0].name == "MAXIMIZE" else -1.0
    done = [trial for trial in study.trials if trial.state.name == "COMPLETE" and _usable(trial.value)]
    return Source(study.study_name, [Told(trial.params, sign * trial.value) for trial in done])


def _of_table(table: Table, goal: str) -> Source:
    """Returns the rows with a reward. Columns are named as parameters, or as `study.export` names them."""
    table = table.flat()
    plain = {name: re.sub(PREFIX, "", name) for name in table.columns}
    column, loss = table.reward([short for name, short in plain.items() if short != name])
    sign, found = -1.0 if loss or goal == "minimize" else 1.0, []
    for i, row in enumerate(table.rows()):
        reward = table.number(column, i)
        if reward is not None and _usable(reward):
            found.append(Told({plain[name]: row[name] for name in row if name != column}, sign * reward))
    return Source(table.called, found)


def _usable(reward: Any) -> bool:
    """Returns whether a reward is a number that a study could hold."""
    return reward is not None and abs(reward) <= LARGEST_REWARD


FEWEST = 3  # least trials of an earlier study
MOST_POINTS = 120  # most points of an earlier study: half the best ones, the rest spread over the others by rank
BEYOND = 1.0  # ranges by which an earlier value may lie outside of the new range
BEST = 5  # points of each earlier study that may be played first
SHOWN = 8  # most names that an error lists
COVER = 3  # most points that are played first
DESIGN = 6  # most rounds of the initial design, with these


def with_earlier(policy: Policy[D], like: Any, *, goal: str = "maximize") -> Policy[D]:
    """Returns a policy of `auto` that knows earlier studies (see `auto`).

    Args:
        policy: made by `auto`.
        like: the earlier studies, or None for the policy as it is.
        goal: the goal of the new study, which says whether the rewards of tables are losses.
    """
    if like is None:
        return policy
    domain, fits = policy.domain, policy.fitting
    if isinstance(domain, Arms) or policy.context is not None or fits is None:
        raise InvalidInput(
            "`like` is for boxes and spaces without contexts, whose kernel is fitted: leave it out on arms, under "
            "contexts, and where constraints are certified."
        )
    found: list[EarlierStudy] = []
    for sources in read_sources(like, goal):
        made = {source.name: study for source in sources if (study := _study(source, policy)) is not None}
        unused = [source for source in sources if source.name not in made and (source.trials or not made)]
        lacking = " ".join(_lacking(source, domain) for source in unused[:SHOWN])
        if unused and made:
            warn(f"`like` leaves out {many(len(unused), 'study')} with answers. {lacking}")
        if not made:
            raise InvalidInput(
                f"{' and '.join(shown(source.name) for source in sources) or 'An empty storage'}, given as `like`, "
                f"has no {FEWEST} answered trials that say something about {_named(domain)}. {lacking}"
            )
        found += made.values()
    first = _cover(found, domain)
    return policy.using(
        refit=EarlierStudies(studies=tuple(found), around=fits),
        explore=begun_with(policy.explore, first, rounds=DESIGN),
    )


def _lacking(source: Source, domain: Domain) -> str:
    """Returns a sentence on why an earlier study says nothing about the domain."""
    name, count = shown(source.name), len(source.trials)
    if count < FEWEST:
        return f"{name} has {many(count, 'answered trial')}."
    wheres = [told.where for told in source.trials if isinstance(told.where, Mapping)]
    theirs = sorted({str(each) for where in wheres for each in where})
    if isinstance(domain, Space):
        if not theirs:
            return f"The trials of {name} have no named parameters."
        if not set(theirs) & set(domain.parameters):
            return f"The parameters of {name} are {', '.join(theirs[:SHOWN])}."
        return f"The values in {name} are no options of the parameters of the same name, or far outside."
    if theirs:
        return f"The trials of {name} have named parameters, and a box has none."
    return f"The points of {name} have another dimension."


def _named(domain: Domain) -> str:
    return ", ".join(domain.parameters) if isinstance(domain, Space) else f"a box of {domain.dimension} dimensions"


def _study(source: Source, policy: Policy) -> EarlierStudy | None:
    """Returns the fitted earlier study in the coordinates of the new domain, or None if nothing is shared."""
    domain = policy.domain
    found = _rows_of_space(source.trials, domain) if isinstance(domain, Space) else _rows_of_box(source.trials, domain)
    if found is None or len(found[0]) < FEWEST:
        return None
    rows, rewards, names, lost = found
    if lost:
        each = ", ".join(f"{count} for `{name}`" for name, count in lost.items())
        some = f"{lost.total()} of {many(len(source.trials), 'trial')} of {shown(source.name)}"
        warn(f"`like` leaves out {some}, whose value is no number or option here, or far outside: {each}.")
    chosen = _chosen(rewards)
    rows, rewards = rows[chosen], rewards[chosen]
    columns = list(range(domain.dimension))
    part: Domain = domain
    if isinstance(domain, Space) and len(names) < len(domain.parameters):
        part = Space(**{name: domain.parameters[name] for name in names})
        where = dict(zip(domain.parameters, (columns for _, columns in domain.columns()), strict=True))
        columns = [column for name in names for column in range(*where[name].indices(domain.dimension))]
    fits = replace(cast("Refit", policy.fitting), noise="unknown")  # `with_earlier` has checked that there are fits
    fitted = fits(
        kernel_for(part, lengthscale=0.5), rows[:, columns], rewards, sides(part),
        noise=math.sqrt(policy.regularization), seed=0,
    )  # fmt: skip
    kernel = fitted.kernel if len(columns) == domain.dimension else fitted.kernel.on(*columns)
    return EarlierStudy(
        name=source.name, points=rows, targets=fitted.targets(rewards), kernel=kernel,
        regularization=fitted.regularization,
    )  # fmt: skip


Rows = tuple[Array, Array, list[str], Counter[str]]  # Points, rewards, names of shared parameters, trials left out.


def _rows_of_box(trials: Sequence[Told], domain: Domain) -> Rows | None:
    """Returns the trials as points and rewards, if the dimension is the same."""
    told = [(w, each.reward) for each in trials if np.shape(w := np.asarray(each.where)) == (domain.dimension,)]
    lost = Counter({"point": len(trials) - len(told)} if len(told) < len(trials) else {})
    return (np.array([row for row, _ in told]), np.array([y for _, y in told]), [], lost) if told else None


def _rows_of_space(trials: Sequence[Told], space: Space) -> Rows | None:
    """Returns the trials as points and rewards, with the names of the shared parameters, or None if there are none.

    Columns of the other parameters are at the middle. A trial is left out if a value is no option, or far outside.
    """
    told = [each for each in trials if isinstance(each.where, Mapping)]
    wheres = [cast("Mapping[str, Any]", each.where) for each in told]
    names = [name for name in space.parameters if any(name in where for where in wheres)]
    middle = space.lower if space.conditions is None else space.conditions.middle
    rows, rewards, lost = [], [], Counter[str]()
    for where, each in zip(wheres, told, strict=True):
        row, known = middle.copy(), zip(space.parameters.items(), space.columns(), strict=True)
        shared = [(name, parameter, columns) for (name, parameter), (_, columns) in known if name in names]
        nowhere = [name for name, parameter, at in shared if not _placed(row[at], parameter, where.get(name))]
        if not nowhere:
            rows.append(row)
            rewards.append(each.reward)
        else:
            lost[nowhere[0]] += 1
    return (np.array(rows), np.array(rewards), names, lost) if names and rows else None


def _placed(columns: Array, parameter: Parameter, value: Any) -> bool:
    """Writes a value into its columns. Returns False if the new parameter has no place for it.

    A missing value leaves them as they are.
    """
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        return True
    if isinstance(parameter, Choice):
        option = option_place(parameter, value)
        if option is None:
            return False
        columns[:] = np.where(np.arange(len(columns)) == option, CHOSEN, 0.0)
        return True
    number = number_in(value)
    if number is None or not math.isfinite(number) or (parameter.log and number <= 0.0):
        return False
    columns[0] = parameter.position(number)
    return bool(-BEYOND <= columns[0] <= 1.0 + BEYOND)


def _chosen(rewards: Array) -> Any:
    """Returns the trials that are kept, in their order."""
    order = np.argsort(-rewards, kind="stable")
    if len(order) <= MOST_POINTS:
        return np.sort(order)
    best, rest = order[: MOST_POINTS // 2], order[MOST_POINTS // 2 :]
    spread = rest[np.linspace(0, len(rest) - 1, MOST_POINTS - len(best)).astype(int)]
    return np.sort(np.concatenate([best, spread]))


def _cover(studies: Iterable[EarlierStudy], domain: Domain) -> Array:
    """Returns points that are good in each of the earlier studies, `(k, d)`, the best first.

    Each next point is the one that raises most the sum over studies of the best mean so far, until nothing is gained.
    """
    posteriors = [study.posterior() for study in studies]
    candidates = []
    for posterior in posteriors:
        best = posterior.points[np.argsort(-posterior.mean(posterior.points), kind="stable")[:BEST]]
        candidates.append(best[((best >= domain.lower) & (best <= domain.upper)).all(axis=1)])  # type: ignore[union-attr]
    points = np.concatenate(candidates)
    if not len(points):
        return points
    points = np.unique(domain.snap(points) if isinstance(domain, Space) else points, axis=0)
    points = keeping_limits(domain, points)
    if not len(points):
        return points
    means = np.array([posterior.mean(points) for posterior in posteriors])
    found: list[int] = []
    reached = means.min(axis=1)
    while len(found) < COVER:
        gains = np.maximum(means - reached[:, None], 0.0).sum(axis=0)
        best_gain = int(gains.argmax())
        if gains[best_gain] <= 1e-9:
            break
        found.append(best_gain)
        reached = np.maximum(reached, means[:, best_gain])
    return np.asarray(points[found])
