"""Comparison of policies in the same worlds, under the same noise."""

from __future__ import annotations

import inspect
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, ParamSpec, TypeVar, final

from .._utils.checks import integer, one_of, shown
from ..environments import Environment
from ..errors import InvalidInput, NoRegretError, NoRegretWarning, warn
from ..study.direction import AnyPolicy, check_policy
from .comparison import Comparison
from .results import Run
from .runner import MOST_ROUNDS, called, check_fit, checked_seeds, replicated, simulated

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
    exact for normal differences from two seeds on. Differences with a long tail need about twenty seeds. Each interval
    holds for one pair, not for all at once. Without `baseline`, the reference is the policy that came out best. To
    choose it by the same runs makes the differences slightly too large.

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
        by: regret that says which policy is best and which one wins with a seed: "cumulative" or "simple".
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
            made = _named(called, f"seed {seed}")(self._given, seed)
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
            made = made(env=env) if _takes_environment(made) else called(made, seed)
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
