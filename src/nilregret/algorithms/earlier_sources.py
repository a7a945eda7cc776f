"""Trials of earlier studies from everything that holds some: studies, results, storages, Optuna's studies, tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .._utils.checks import LARGEST_REWARD, Array, shown, url_of
from .._utils.tables import ENDINGS, Table, read_table, table_of
from ..errors import InvalidInput
from ..serialize import loads
from ..storage.base import Storage

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
    sign = 1.0 if goal == "maximize" else -1.0
    found = [
        Told(trial.point if trial.parameters is None else trial.parameters, sign * trial.reward)
        for trial in trials
        if trial.reward is not None
    ]
    return Source(name, found)


def _of_storage(path: str) -> list[Source]:
    """Returns the studies of a storage, or the one named after a "#"."""
    from ..storage.opening import opened  # slow to import, and most policies have no earlier studies

    url, _, name = path.partition("#")
    storage = opened(url_of(url), make=False)
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
