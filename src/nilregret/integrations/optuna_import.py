"""Import of Optuna's studies."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from .._utils.checks import many, shown
from ..algorithms.auto import auto
from ..domains.conditions import Conditional, when
from ..domains.domain import Space
from ..domains.options import option_key, plain_option
from ..domains.parameters import Choice, Parameter
from ..errors import InvalidInput, NoRegretWarning
from ..policy.policy import Policy
from ..storage.trial import MOST_METRICS, metric_of
from ..study.direction import as_given
from ..study.study import Study
from ..study.transaction import Transaction
from .distributions import parameter_of
from .optuna_state import STD, check_objectives, constraint_values, goals_in, hull, outcome, stds_of
from .pruner import reports

if TYPE_CHECKING:
    from ..storage import Storage

PRUNED = "pruned by Optuna"  # Why an imported trial was stopped.


def import_study(
    study: optuna.Study,
    *,
    policy: Policy | None = None,
    space: Space | None = None,
    seed: int = 0,
    storage: str | Storage | None = None,
    name: str | None = None,
) -> Study:
    """Returns a new study with the trials of an Optuna study.

    Completed trials, and pruned trials with a last intermediate value, are added in the order in which they ended.
    Intermediate values become curves (`trial.steps`), and pruned trials stopped ones, which teach their last value.
    Completed trials have their constraint values, and user attributes that are numbers as metrics. A warning says if
    pruned trials had some, too, which stopped ones do not keep. Failed, waiting and running trials have no result and
    are left out.

    The space contains every suggested value. If a range has changed, the space takes the smallest range that contains
    all its versions. A float with a step loses its step. If only some trials have a parameter, it gets a condition
    (`nr.when`) on another parameter whose values explain these trials.

    Args:
        study: a study of Optuna, as `optuna.load_study(study_name=..., storage=...)` returns it.
        policy: the policy of the new study, whose domain is the space. The default is
            `nr.auto(space, constraints=...)`, with the objectives of the study under their names
            (`set_metric_names`).
        space: a space in place of the one above. Trials that do not fit it are left out with a warning.
        seed: seed of the new study.
        storage: storage of the new study, as `nr.Study` takes it. None keeps the study in memory.
        name: name of the new study. The default is the name in Optuna.

    Raises:
        InvalidInput: the study has no trial with a value, or the policy has another number of objectives. Or no
            condition explains which trials have a parameter. Or a study with this name and trials exists already.
    """
    if not isinstance(study, optuna.Study):
        raise InvalidInput(
            f"`study` is {shown(study)}: it must be a study of Optuna, as optuna.load_study(study_name=..., "
            "storage=...) gives it."
        )
    trials = [
        trial
        for trial in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.PRUNED))
        if not isinstance(outcome(trial), str) and trial.params
    ]
    trials.sort(key=lambda trial: (trial.datetime_complete.timestamp() if trial.datetime_complete else 0, trial.number))
    if not trials:
        raise InvalidInput(f"Study {study.study_name!r} has no trial with a finite value and parameters to take over.")
    limits = tuple(sorted({name for trial in trials for name in trial.constraints}))
    goals = goals_in(study)
    if policy is None:
        names = study.metric_names if len(goals) > 1 else None
        policy = auto(space or space_of(trials), constraints=len(limits), objectives=names or len(goals))
    if not isinstance(policy, Policy) or not isinstance(policy.domain, Space):
        raise InvalidInput(f"`policy` must be a policy of an nr.Space, not {shown(policy)}.")
    check_objectives(policy, len(goals))
    made = Study(policy, goal=as_given(goals), seed=seed, storage=storage, name=name or study.study_name)
    if len(made.trials):
        raise InvalidInput(
            f"There is a study {made.name!r} in {storage} already, with {many(len(made.trials), 'trial')}: it would "
            "have these twice. Choose another `name`."
        )
    _add(made, policy.domain, trials, limits if len(limits) == policy.constraint_count else ())
    return made


def _add(study: Study, space: Space, trials: Sequence[FrozenTrial], limits: tuple[str, ...]) -> None:
    left, bare = list[int](), 0  # Trials left out, and stopped ones without what else Optuna knows of them.
    for trial in trials:
        values = outcome(trial)
        parameters = {name: plain_option(each) for name, each in trial.params.items() if name in space.parameters}
        try:
            point = study.inputs.point(parameters)
        except InvalidInput:
            left.append(trial.number)
            continue
        if isinstance(values, str):
            continue
        limited, metrics = constraint_values(trial, limits), _metrics(trial)
        if limited is None and study.policy.constraint_count and len(values) > 1:
            left.append(trial.number)  # Objectives are told together with their constraint values.
            continue
        stds: Any = stds_of(trial, len(values))
        told, stds = (values, stds) if len(values) > 1 else (values[0], stds[0])
        answer = study.inputs.observation(told, limited, stds, metrics)
        curve = reports(trial) if len(values) == 1 else []
        stopped = PRUNED if curve and trial.state == TrialState.PRUNED else None
        bare += stopped is not None and (limited is not None or bool(metrics))
        calls = Transaction(study.replica)
        study.replica.write(calls.add, point, None, *answer, None, curve, stopped)
    if bare:
        sentence = (
            f"{many(bare, 'pruned trial')} came without constraint values and attributes: a stopped trial has a curve "
            "alone."
        )
        warnings.warn(NoRegretWarning(sentence), stacklevel=3)
    if left:
        also = " or lack constraint values" if study.policy.constraint_count and len(study.goals) > 1 else ""
        sentence = (
            f"{len(left)} of {many(len(trials), 'trial')} left out, which did not fit the space{also}: {shown(left)}."
        )
        warnings.warn(NoRegretWarning(sentence), stacklevel=3)


def _metrics(trial: FrozenTrial) -> dict[str, float]:
    """Returns the user attributes of a trial that are numbers, by name."""
    given = {name: metric_of(name, value) for name, value in trial.user_attrs.items() if name != STD}
    return dict(islice(((name, value) for name, value in given.items() if value is not None), MOST_METRICS))


def space_of(trials: Sequence[FrozenTrial]) -> Space:
    """Returns the space of the suggested values.

    Raises:
        InvalidInput: no condition on one parameter explains which trials have another.
    """
    names = sorted({name for trial in trials for name in trial.params})
    parameters = {name: _parameter(name, trials) for name in names}
    found: dict[str, Parameter | Conditional] = {
        name: parameters[name] for name in names if all(name in trial.params for trial in trials)
    }
    while len(found) < len(names):
        placed = {
            name: given
            for name in names
            if name not in found and (given := _conditional(name, parameters, list(found), trials)) is not None
        }
        if not placed:
            left = ", ".join(f"`{name}`" for name in names if name not in found)
            raise InvalidInput(
                f"Some trials have the parameters {left} and others do not, and no one parameter's value says which. "
                "Pass `space=` with those that are to be learned from."
            )
        found |= placed
    return Space(**found)


def _conditional(
    name: str, parameters: Mapping[str, Parameter], parents: list[str], trials: Sequence[FrozenTrial]
) -> Conditional | None:
    """Returns a parameter with the condition under which trials have it, or None if no single parent explains it."""
    having = [trial for trial in trials if name in trial.params]
    for parent in parents:
        parameter = parameters[parent]
        if parameter.real or not all(parent in trial.params for trial in having):
            continue
        values = {option_key(trial.params[parent]): plain_option(trial.params[parent]) for trial in having}
        others = [trial for trial in trials if name not in trial.params and parent in trial.params]
        if not any(option_key(trial.params[parent]) in values for trial in others):
            return when(parent, sorted(values.values(), key=repr), parameters[name])
    return None


def _parameter(name: str, trials: Sequence[FrozenTrial]) -> Parameter:
    """Returns a parameter that contains every value suggested to a trial."""
    ranges = [trial.distributions[name] for trial in trials if name in trial.distributions]
    whole = _hull(ranges) or _hull([_stepless(each) for each in ranges])
    if isinstance(whole, FloatDistribution | IntDistribution):
        return parameter_of(whole)
    if isinstance(whole, CategoricalDistribution):
        return Choice(*whole.choices)
    raise InvalidInput(
        f"Parameter `{name}` was suggested in ranges that have no grid in common, or of a kind that is not known here: "
        "pass `space=`."
    )


def _hull(ranges: Sequence[BaseDistribution]) -> BaseDistribution | None:
    whole: BaseDistribution | None = ranges[0]
    for each in ranges[1:]:
        whole = whole if whole is None or whole == each else hull(whole, each)
    return whole


def _stepless(distribution: BaseDistribution) -> BaseDistribution:
    if isinstance(distribution, FloatDistribution):
        return FloatDistribution(distribution.low, distribution.high, log=distribution.log)
    return distribution
