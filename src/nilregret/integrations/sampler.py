"""A policy as a sampler of Optuna."""

from __future__ import annotations

import hashlib
import json
import math
import threading
import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast, final

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from .._utils.checks import LARGEST_SEED, integer, many, one_of, shown
from .._utils.errors import InvalidInput, NoRegretWarning
from ..algorithms.auto import auto
from ..domains.domain import Arms, Space
from ..domains.search.designs import from_cube
from ..policy.policy import Policy
from ..study.direction import Goal
from .distributions import Translation, is_known
from .follower import Follower, Mark, OptunaHistory, Running, mark
from .suggested import Suggested

OLD_RELATIVE = "noregret:relative"  # in studies of version 0.2
RELATIVE = "nilregret:relative"  # what a trial was told before it asked, in parts: other workers see it there
LONGEST = 2045  # characters of an attribute that every storage of Optuna takes
STUDIES, FOLLOWERS = 8, 32  # of which something is kept in mind
CONSTRAINT = "constraints"  # prefix of the attributes that `Trial.set_constraint` sets
ENDED = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL)

MakePolicy = Callable[[Space], Policy]
ConstraintsFunction = Callable[[FrozenTrial], Sequence[float]]


class _Told(NamedTuple):
    """What a trial was told before it asked: values as a storage holds them, and which groups of them were forced."""

    values: dict[str, float]
    explored: list[str]


class _Key(NamedTuple):
    """What a follower is of: one study (or bracket of Hyperband), one domain, one goal."""

    study: tuple[str, Any]
    distributions: dict[str, BaseDistribution]
    constraints: tuple[str, ...]
    goal: Goal
    seed: int


class _Reading:
    """What one study's finished trials have shown so far."""

    def __init__(self, study: tuple[str, Any]) -> None:
        self.study = study
        self.suggested = Suggested()
        self._marks: list[Mark] = []
        self._known: dict[int, tuple[FrozenTrial, Mark]] = {}

    def mark(self, trial: FrozenTrial) -> Mark:
        """Of a finished trial; a storage keeps those as they are."""
        known = self._known.get(trial.number)
        if known is None or known[0] is not trial:
            known = self._known[trial.number] = (trial, mark(trial))
        return known[1]

    def take(self, finished: Sequence[FrozenTrial], marks: list[Mark]) -> None:
        """The finished trials, in the order of their ends."""
        read = len(self._marks)
        if marks[:read] != self._marks:
            read, self.suggested = 0, Suggested()
        for trial in finished[read:]:
            if trial.state == TrialState.COMPLETE:
                self.suggested.take(trial)
        self._marks = marks


@final
class NoRegretSampler(BaseSampler):
    """Decides for an Optuna study as a policy of this library does.

    What a trial gets is a function of the policy, the seed, the trial's number and the trials on record: a study that
    is resumed, in another process too, goes on exactly as it would have. Running trials count as pending ones.

    Args:
        policy: None for `nr.auto`, whose space is what completed trials were suggested; a function that makes a policy
            of such a space, as `lambda space: nr.auto(space, budget=50, answers="late")`; or a policy of an `nr.Space`
            (or of arms of one), which then is the space, from the first trial on.
        seed: of all random choices; a whole number >= 0.
        constraints_func: gives the constraint values of a finished trial, each satisfied when <= 0, as Optuna's own
            samplers take it; `Trial.set_constraint` does the same and needs no function.
        failed: whether the policy is "told" of trials that have failed, so that it does not ask for the same again, or
            they are "ignored", as Optuna's own samplers do.
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
        self._lock = threading.RLock()  # trials of several threads
        self._readings: deque[_Reading] = deque(maxlen=STUDIES)
        self._followers: deque[tuple[_Key, Follower]] = deque(maxlen=FOLLOWERS)
        self._warned = False

    def __getstate__(self) -> dict[str, Any]:
        """A copy begins afresh: all that it needs is on record."""
        kept = ("_declared", "_policy", "_seed", "_constraints_func", "_failed")
        return {name: self.__dict__[name] for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()

    def reseed_rng(self) -> None:
        """Nothing: what is drawn depends on the seed and the trial's number."""

    # -- what Optuna calls ---------------------------------------------------------------------------------------

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:  # noqa: ARG002
        """What is decided before a trial asks: the policy's space, or what completed trials were suggested."""
        _check(study)
        if self._declared is not None:
            return {name: each for name, each in self._declared.distributions.items() if not each.single()}
        with self._lock:
            space = self._read(study, None)[0].suggested.space
        return {name: each for name, each in space.items() if is_known(each)}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The values of those parameters, which are then on record for other workers to see."""
        _check(study)
        fixed = dict(trial.system_attrs.get("fixed_params", {}))  # of an enqueued trial
        if not search_space.keys() - fixed.keys():
            return {}
        with self._lock:
            reading, seen = self._read(study, trial)
            values: dict[str, Any] = {}
            told = _Told({}, [])
            now = trial.datetime_start.timestamp() if trial.datetime_start else math.inf
            for follower in self._followers_of(study, reading, search_space):
                translation = follower.translation
                others = OptunaHistory(seen.finished, seen.marks, [_known(each, translation) for each in seen.running])
                decision = follower.decide(trial.number, others, now=now, fixed=fixed)
                chosen = translation.values(decision.point)
                values |= {name: value for name, value in chosen.items() if name in search_space}
                told.explored.extend([next(iter(chosen))] if decision.explored else [])
            told.values.update({name: search_space[name].to_internal_repr(each) for name, each in values.items()})
            _share(study, trial, told)
        return values

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """A uniform draw (in the logarithm, where the distribution says so) for what was not decided beforehand."""
        _check(study)
        if param_distribution.single():
            return (
                param_distribution.choices[0]
                if isinstance(param_distribution, CategoricalDistribution)
                else cast("Any", param_distribution).low
            )
        translation = Translation({param_name: param_distribution})
        rng = np.random.default_rng([self._seed, trial.number, _number_of(param_name)])
        return translation.values(from_cube(translation.space, rng.random((1, 1)))[0])[param_name]

    def after_trial(
        self,
        study: Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,  # noqa: ARG002 - as Optuna calls it
    ) -> None:
        """Record what `constraints_func` says of a trial, as `Trial.set_constraint` would."""
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

    # -- reading a study -----------------------------------------------------------------------------------------

    def _read(self, study: Study, trial: FrozenTrial | None) -> tuple[_Reading, OptunaHistory]:
        """What a study shows, the trial in question aside."""
        number = None if trial is None else trial.number
        trials = study.get_trials(deepcopy=False, states=(*ENDED, TrialState.RUNNING))
        ended = ENDED[:2] if self._failed == "ignored" else ENDED
        name = (study.study_name, getattr(study, "_bracket_id", None))
        reading = next((known for known in self._readings if known.study == name), None)
        if reading is None:
            reading = _Reading(name)
            self._readings.append(reading)
        finished = sorted(
            (reading.mark(each), each) for each in trials if each.state in ended and each.number != number
        )
        running = [Running(each, {}) for each in trials if each.state == TrialState.RUNNING and each.number != number]
        seen = OptunaHistory([each for _, each in finished], [each for each, _ in finished], running)
        reading.take(seen.finished, seen.marks)
        return reading, seen

    def _followers_of(
        self, study: Study, reading: _Reading, search_space: Mapping[str, BaseDistribution]
    ) -> list[Follower]:
        """One for each part of the parameters that is decided by itself."""
        limits = tuple(sorted(reading.suggested.constraints, key=_by_number))
        goal: Goal = "maximize" if study.directions[0] == StudyDirection.MAXIMIZE else "minimize"
        if self._declared is not None:
            spaces = [self._declared.distributions]
        else:
            spaces = [{name: search_space[name] for name in group} for group in reading.suggested.groups(search_space)]
        followers = []
        for space in spaces:
            seed = self._seed if len(spaces) == 1 else _number_of(f"{self._seed} {' '.join(space)}")
            followers.append(self._follower(_Key(reading.study, space, limits, goal, seed)))
        return followers

    def _follower(self, key: _Key) -> Follower:
        for each in self._followers:
            if each[0] == key:
                self._followers.remove(each)
                self._followers.append(each)  # the ones used last stay longest
                return each[1]
        translation = self._declared or Translation(key.distributions)
        policy = self._made(translation.space, len(key.constraints))
        if policy.domain is not translation.domain:
            translation = Translation(key.distributions, cast("Space | Arms", policy.domain))
        names, first = self._channels(policy, key.constraints), next(iter(key.distributions))
        follower = Follower(
            policy, translation, goal=key.goal, seed=key.seed, constraints=names,
            explored=lambda trial: first in _told(trial).explored,
        )  # fmt: skip
        self._followers.append((key, follower))
        return follower

    def _made(self, space: Space, constraints: int) -> Policy:
        """The policy for a space."""
        if isinstance(self._policy, Policy):
            return self._policy
        if self._policy is None:
            return auto(space, constraints=constraints, answers="late")
        policy = self._policy(space)
        _check_policy(policy)
        if policy.domain != space and getattr(policy.domain, "space", None) != space:
            raise InvalidInput(
                f"The `policy` of the sampler was given {shown(space)} and made a policy of {shown(policy.domain)}. It "
                "must be of the space that it is given, or of arms of it; for a space of your own pass the policy "
                "itself."
            )
        return policy

    def _channels(self, policy: Policy, names: tuple[str, ...]) -> tuple[str, ...]:
        """The constraints that the policy learns, in their order; none while the trials have had fewer."""
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


def _check(study: Study) -> None:
    if len(study.directions) > 1:
        raise InvalidInput(
            f"This study has {len(study.directions)} objectives, and NoRegretSampler decides for one: there is no "
            "regret of several. Take optuna.samplers.GPSampler or NSGAIISampler, or make one number of them."
        )


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
    """A whole number for a text, the same in every process."""
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big")


def _share(study: Study, trial: FrozenTrial, told: _Told) -> None:
    text = json.dumps(told)
    for i, start in enumerate(range(0, len(text), LONGEST)):
        study._storage.set_trial_system_attr(trial._trial_id, f"{RELATIVE}:{i}", text[start : start + LONGEST])


def _told(trial: FrozenTrial) -> _Told:
    parts: list[str] = []
    prefix = OLD_RELATIVE if f"{OLD_RELATIVE}:0" in trial.system_attrs else RELATIVE
    while (part := trial.system_attrs.get(f"{prefix}:{len(parts)}")) is not None:
        parts.append(part)
    try:
        return _Told(*json.loads("".join(parts))) if parts else _Told({}, [])
    except ValueError:  # its writer is in the middle of it
        return _Told({}, [])


def _known(running: Running, translation: Translation) -> Running:
    """A running trial with what is known of its values: suggested, fixed beforehand, or told and not asked for yet."""
    trial = running.trial
    told = {
        name: translation.distributions[name].to_external_repr(value)
        for name, value in _told(trial).values.items()
        if name in translation.distributions
    }
    return Running(trial, told | trial.system_attrs.get("fixed_params", {}) | trial.params)
