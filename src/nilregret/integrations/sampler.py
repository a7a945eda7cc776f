"""The sampler of Optuna that decides by a policy."""

from __future__ import annotations

import hashlib
import json
import math
import threading
import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast, final

from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from .._utils.checks import LARGEST_SEED, integer, many, one_of, shown
from .._utils.executors import survives_forks
from .._utils.randomness import Draws
from ..algorithms.auto import auto
from ..domains.domain import Arms, Space
from ..domains.search.designs import from_cube
from ..errors import InvalidInput, NoRegretWarning
from ..policy.policy import Policy
from ..study.direction import Goal, as_given, goals_of
from .distributions import Translation, is_known
from .optuna_state import (
    ObservedSpace,
    OptunaHistory,
    OptunaState,
    Running,
    TrialKey,
    check_objectives,
    goals_in,
    trial_key,
)

RELATIVE = "nilregret:relative"  # attributes of a trial with its assigned values, which other workers read
LONGEST = 2045  # characters of an attribute that every storage of Optuna takes
STUDIES, STATES = 8, 32  # numbers of cached studies and states
CONSTRAINT = "constraints"  # prefix of the attributes that `Trial.set_constraint` sets
ENDED = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL)

MakePolicy = Callable[[Space], Policy]
ConstraintsFunction = Callable[[FrozenTrial], Sequence[float]]


class _Assigned(NamedTuple):
    """Values assigned to a trial before its objective runs, as a storage holds them.

    `explored` has a name of each group of parameters that was a forced uniform draw.
    """

    values: dict[str, float]
    explored: list[str]


class _Key(NamedTuple):
    """The key of a cached state: a study (or a bracket of Hyperband), its distributions, constraints and goals."""

    study: tuple[str, Any]
    distributions: dict[str, BaseDistribution]
    constraints: tuple[str, ...]
    goals: tuple[Goal, ...]
    seed: int


class _Observed:
    """The finished trials of a study that were read so far."""

    def __init__(self, study: tuple[str, Any]) -> None:
        self.study = study
        self.suggested = ObservedSpace()
        self._keys: list[TrialKey] = []
        self._known: dict[int, tuple[FrozenTrial, TrialKey]] = {}

    def key(self, trial: FrozenTrial) -> TrialKey:
        """Returns the key of a finished trial, cached because finished trials do not change."""
        known = self._known.get(trial.number)
        if known is None or known[0] is not trial:
            known = self._known[trial.number] = (trial, trial_key(trial))
        return known[1]

    def read(self, finished: Sequence[FrozenTrial], keys: list[TrialKey]) -> None:
        """Reads the finished trials, in the order of their ends."""
        read = len(self._keys)
        if keys[:read] != self._keys:
            read, self.suggested = 0, ObservedSpace()
        for trial in finished[read:]:
            if trial.state == TrialState.COMPLETE:
                self.suggested.observe(trial)
        self._keys = keys


@final
class NoRegretSampler(BaseSampler):
    """A sampler for Optuna that decides by a policy of this library.

    The values of a trial depend only on the policy, the seed, the number of the trial and the recorded trials. A
    resumed study, also in another process, goes on exactly as without the interruption. Running trials count as
    pending.

    Args:
        policy: None for `nr.auto` on the space of the completed trials, with as many objectives as the study has
            directions. Or a function that makes a policy of such a space, as
            `lambda space: nr.auto(space, budget=50, answers="late")`. Or a policy of an `nr.Space` (or of arms of
            one), which is then the space from the first trial on.
        seed: seed of all random choices, a whole number >= 0.
        constraints_func: returns the constraint values of a finished trial, each satisfied when <= 0, as for Optuna's
            samplers. `Trial.set_constraint` does the same without a function.
        failed: "told" records failed trials, so that the policy does not repeat them. "ignored" leaves them out, as
            Optuna's samplers do.
    """

    def __init__(
        self,
        policy: Policy | MakePolicy | None = None,
        *,
        seed: int = 0,
        constraints_func: ConstraintsFunction | None = None,
        failed: Literal["told", "ignored"] = "told",
    ) -> None:
        if policy is not None and not isinstance(policy, Policy) and not callable(policy):
            raise InvalidInput(
                f"`policy` is {shown(policy)}: it must be a policy such as `nr.auto(space)` makes, a function that "
                "makes one of a space, or None."
            )
        if constraints_func is not None and not callable(constraints_func):
            raise InvalidInput(f"`constraints_func` is {shown(constraints_func)}: it must be a function of a trial.")
        self._declared = _declared(policy) if isinstance(policy, Policy) else None
        self._policy = policy
        self._seed = integer("seed", seed, low=0, high=LARGEST_SEED, why="Random streams are numbered from 0.")
        self._constraints_func = constraints_func
        self._failed = one_of("failed", failed, ("told", "ignored"))
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.RLock()  # Optuna may run trials in several threads.
        self._studies: deque[_Observed] = deque(maxlen=STUDIES)
        self._states: deque[tuple[_Key, OptunaState]] = deque(maxlen=STATES)
        self._warned = False
        survives_forks(self)

    @property
    def fork_lock(self) -> threading.RLock:
        """See `Forkable`."""
        return self._lock

    def after_fork(self) -> None:
        """Begins anew in a forked process, which reads everything else from Optuna's record."""
        self._begin()

    def __getstate__(self) -> dict[str, Any]:
        """Returns the settings alone, because a copy reads everything else from the record."""
        kept = ("_declared", "_policy", "_seed", "_constraints_func", "_failed")
        return {name: self.__dict__[name] for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()

    def reseed_rng(self) -> None:
        """Keeps the seed, because random draws depend only on the seed and the number of the trial."""

    # -- what Optuna calls ---------------------------------------------------------------------------------------

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:  # noqa: ARG002
        """Returns the parameters decided before the objective runs: the policy's space, or that of completed trials."""
        self._check(study)
        if self._declared is not None:
            return {name: each for name, each in self._declared.distributions.items() if not each.single()}
        with self._lock:
            space = self._read(study, None)[0].suggested.space
        return {name: each for name, each in space.items() if is_known(each)}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Returns the values of these parameters, and records them for other workers."""
        self._check(study)
        fixed = dict(trial.system_attrs.get("fixed_params", {}))  # values of an enqueued trial
        if not search_space.keys() - fixed.keys():
            return {}
        with self._lock:
            observed, history = self._read(study, trial)
            values: dict[str, Any] = {}
            assigned = _Assigned({}, [])
            now = trial.datetime_start.timestamp() if trial.datetime_start else math.inf
            for state in self._states_of(study, observed, search_space):
                translation = state.translation
                others = OptunaHistory(
                    history.finished, history.keys, [_with_known_values(each, translation) for each in history.running]
                )
                decision = state.decide(trial.number, others, now=now, fixed=fixed)
                chosen = translation.values(decision.point)
                values |= {name: value for name, value in chosen.items() if name in search_space}
                assigned.explored.extend([next(iter(chosen))] if decision.explored else [])
            assigned.values.update({name: search_space[name].to_internal_repr(each) for name, each in values.items()})
            _record_assigned(study, trial, assigned)
        return values

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Returns a uniform draw (of the logarithm for log distributions) for a parameter not decided beforehand."""
        self._check(study)
        if param_distribution.single():
            return (
                param_distribution.choices[0]
                if isinstance(param_distribution, CategoricalDistribution)
                else cast("Any", param_distribution).low
            )
        translation = Translation({param_name: param_distribution})
        rng = Draws(f"parameter {self._seed} {trial.number} {_number_of(param_name)}")
        return translation.values(from_cube(translation.space, rng.random((1, 1)))[0])[param_name]

    def after_trial(
        self,
        study: Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,  # noqa: ARG002 - Optuna passes the argument.
    ) -> None:
        """Records the constraint values of `constraints_func`, as `Trial.set_constraint` would."""
        if self._constraints_func is None or state not in (TrialState.COMPLETE, TrialState.PRUNED):
            return
        limits = [float(value) for value in self._constraints_func(trial)]
        if any(math.isnan(value) for value in limits):
            raise InvalidInput(
                f"`constraints_func` gave {limits} for trial {trial.number}: a constraint value cannot be NaN. Where "
                "nothing is known of a constraint, give a positive number, or let the trial fail."
            )
        for j, value in enumerate(limits):
            study._storage.set_trial_system_attr(trial._trial_id, f"{CONSTRAINT}:{j}", value)

    # -- reading a study ------------------------------------------------------------------------------------------

    def _read(self, study: Study, trial: FrozenTrial | None) -> tuple[_Observed, OptunaHistory]:
        """Returns the trials of a study without the given one."""
        number = None if trial is None else trial.number
        trials = study.get_trials(deepcopy=False, states=(*ENDED, TrialState.RUNNING))
        ended = ENDED[:2] if self._failed == "ignored" else ENDED
        name = (study.study_name, getattr(study, "_bracket_id", None))
        observed = next((known for known in self._studies if known.study == name), None)
        if observed is None:
            observed = _Observed(name)
            self._studies.append(observed)
        finished = sorted(
            (observed.key(each), each) for each in trials if each.state in ended and each.number != number
        )
        running = [Running(each, {}) for each in trials if each.state == TrialState.RUNNING and each.number != number]
        history = OptunaHistory([each for _, each in finished], [each for each, _ in finished], running)
        observed.read(history.finished, history.keys)
        return observed, history

    def _states_of(
        self, study: Study, observed: _Observed, search_space: Mapping[str, BaseDistribution]
    ) -> list[OptunaState]:
        """Returns a state for each group of parameters that is decided by itself."""
        limits = tuple(sorted(observed.suggested.constraints, key=_by_number))
        goals = goals_in(study)
        if self._declared is not None:
            spaces = [self._declared.distributions]
        else:
            spaces = [{name: search_space[name] for name in group} for group in observed.suggested.groups(search_space)]
        states = []
        for space in spaces:
            seed = self._seed if len(spaces) == 1 else _number_of(f"{self._seed} {' '.join(space)}")
            states.append(self._state(_Key(observed.study, space, limits, goals, seed)))
        return states

    def _state(self, key: _Key) -> OptunaState:
        for each in self._states:
            if each[0] == key:
                self._states.remove(each)
                self._states.append(each)  # The states that were used last are dropped last.
                return each[1]
        translation = self._declared or Translation(key.distributions)
        policy = self._make_policy(translation.space, len(key.constraints), len(key.goals))
        if policy.domain is not translation.domain:
            translation = Translation(key.distributions, cast("Space | Arms", policy.domain))
        names, first = self._constraint_names(policy, key.constraints), next(iter(key.distributions))
        state = OptunaState(
            policy, translation, goals=goals_of(policy, as_given(key.goals)), seed=key.seed, constraints=names,
            explored=lambda trial: first in _assigned(trial).explored,
        )  # fmt: skip
        self._states.append((key, state))
        return state

    def _make_policy(self, space: Space, constraints: int, objectives: int) -> Policy:
        """Returns the policy for a space."""
        if isinstance(self._policy, Policy):
            return self._policy
        if self._policy is None:
            return auto(space, constraints=constraints, objectives=objectives, answers="late")
        policy = self._policy(space)
        _check_policy(policy)
        check_objectives(policy, objectives)
        if policy.domain != space and getattr(policy.domain, "space", None) != space:
            raise InvalidInput(
                f"The `policy` of the sampler was given {shown(space)} and made a policy of {shown(policy.domain)}. It "
                "must be of the space that it is given, or of arms of it; for a space of your own pass the policy "
                "itself."
            )
        return policy

    def _check(self, study: Study) -> None:
        """Raises `InvalidInput` if the policy has not as many objectives as the study."""
        if isinstance(self._policy, Policy):
            check_objectives(self._policy, len(study.directions))

    def _constraint_names(self, policy: Policy, names: tuple[str, ...]) -> tuple[str, ...]:
        """Returns the constraints of the policy in their order, or none while the trials have fewer."""
        count = policy.constraint_count
        if count and len(names) > count:
            raise InvalidInput(
                f"The trials have {many(len(names), 'constraint')} ({', '.join(names)}), and the policy has {count}: "
                f"make it with `constraints={len(names)}`, such as nr.auto(space, constraints={len(names)})."
            )
        if names and not count and not self._warned:
            self._warned = True
            sentence = (
                f"The trials have constraints ({', '.join(names)}), and `{policy.algorithm}` was made without: they "
                f"are not looked at. Make it with `constraints={len(names)}`, or leave `policy` out."
            )
            warnings.warn(NoRegretWarning(sentence), stacklevel=2)
        return names if len(names) == count else ()


def _check_policy(policy: object) -> None:
    if not isinstance(policy, Policy):
        raise InvalidInput(f"The `policy` of a sampler must be made by a function such as `nr.auto`: {shown(policy)}.")
    if policy.context is not None:
        raise InvalidInput("The policy has contexts, and a trial of Optuna has none: make it without `context`.")
    if not isinstance(policy.domain, Space) and not (isinstance(policy.domain, Arms) and policy.domain.space):
        raise InvalidInput(
            f"The policy's domain is {shown(policy.domain)}: parameters of Optuna have names, so it must be an "
            "nr.Space, or arms of one, as `nr.Space(...).grid(...)` makes them."
        )


def _declared(policy: Policy) -> Translation:
    _check_policy(policy)
    return Translation.of_domain(cast("Space | Arms", policy.domain))


def _by_number(name: str) -> tuple[bool, int, str]:
    return (not name.isdecimal(), int(name) if name.isdecimal() else 0, name)


def _number_of(text: str) -> int:
    """Returns a whole number for a text, the same in every process."""
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big")


def _record_assigned(study: Study, trial: FrozenTrial, assigned: _Assigned) -> None:
    text = json.dumps(assigned)
    for i, start in enumerate(range(0, len(text), LONGEST)):
        study._storage.set_trial_system_attr(trial._trial_id, f"{RELATIVE}:{i}", text[start : start + LONGEST])


def _assigned(trial: FrozenTrial) -> _Assigned:
    parts: list[str] = []
    while (part := trial.system_attrs.get(f"{RELATIVE}:{len(parts)}")) is not None:
        parts.append(part)
    try:
        return _Assigned(*json.loads("".join(parts))) if parts else _Assigned({}, [])
    except ValueError:  # Another worker has written a part only.
        return _Assigned({}, [])


def _with_known_values(running: Running, translation: Translation) -> Running:
    """Returns a running trial with its known values: suggested, fixed, or assigned and not suggested yet."""
    trial = running.trial
    assigned = {
        name: translation.distributions[name].to_external_repr(value)
        for name, value in _assigned(trial).values.items()
        if name in translation.distributions
    }
    return Running(trial, assigned | trial.system_attrs.get("fixed_params", {}) | trial.params)
