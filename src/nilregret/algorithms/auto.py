"""The recommended policy for users who do not want to choose, and BOCA: parts for every slot, picked by benchmarks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from .._utils.checks import LARGEST_REWARD, integer, number, one_of, shown
from ..domains.domain import Arms, Box, D, Domain, Space, check_domain, count_of_points
from ..domains.parameters import Choice
from ..domains.search.boxes import PointSearch
from ..errors import InvalidInput
from ..kernels import Kernel, kernel_for
from ..policy.policy import Policy
from ..slots.by_name import part_of
from ..slots.change_detection import DriftBank, EDetector
from ..slots.constraints import Constraints, EveryRound
from ..slots.elsewhere import Elsewhere
from ..slots.envelope import Confidence, ConstantWidth
from ..slots.explore import MOST_ROUNDS, AskAgain, CoordinateSearch, Explore, InitialDesign, InTurn
from ..slots.fidelity import Confirm, Fidelity
from ..slots.memory import AllOf, Forever, Memory, Tide
from ..slots.no_worse import NoWorse, parted
from ..slots.pareto import MOST_OBJECTIVES, Pareto
from ..slots.pending import Hallucinated, Ignored, Pending
from ..slots.pruning import Pruning
from ..slots.refit import ArmModels, Refit
from ..slots.rewards import KnownReward, chosen_reward
from ..slots.scores import (
    ExpectedImprovement,
    GaussianDraws,
    RandomisedBound,
    Score,
    ThompsonSample,
    UpperConfidenceBound,
)
from ..slots.silence import Imputed, LateOrNever, by_exposure
from ..slots.slates import SlateModel
from .definition import build
from .earlier import with_earlier

CONFIRMED = 4  # One of so many trials confirms a best point at the full setting, and at least one of a run does.


def boca(
    domain: D, kernel: Kernel, *, fidelity: Fidelity, noise: float,
    width: Literal["finite", "compact"] | Confidence | None = None, delta: float = 0.1,
    regularization: float | None = None, prior_mean: float | None = None,
) -> Policy[D]:  # fmt: skip
    """Returns BOCA (Kandasamy, Dasarathy, Schneider & Poczos 2017, algorithm 1): GP-UCB that chooses the setting, too.

    In each round x_t is the point with the highest upper bound at the full setting z*. The setting z_t is the cheapest
    one of Z_t(x_t), whose answer is still uncertain and tells enough about z* (`nilregret.slots.fidelity.boca`). With
    high probability, the simple regret per cost is bounded by their Theorem 1, for kernels k(z, z') k(x, x').

    Args:
        domain: of the points.
        kernel: prior covariance of two rows (z, x), the setting first.
        fidelity: the setting. Its rule becomes "boca". Of a continuous setting, `levels` values are compared.
        noise: standard deviation of the noise, reward units.
        width: see `gp_ucb`.
        delta: failure probability of the bounds.
        regularization: see `gp_ucb`.
        prior_mean: see `gp_ucb`.

    >>> import nilregret as nr
    >>> arms, rows = nr.Arms.grid(0, 1, 11), nr.Fidelity("rows", 10, 1_000, rule="boca")
    >>> kernel = nr.SquaredExponential([1.0, 0.2])
    >>> study = nr.Study(nr.algorithms.boca(arms, kernel, fidelity=rows, noise=0.1))
    >>> study.ask().context_parameters
    {'rows': 10}
    """
    from .srinivas import gp_ucb

    chosen = replace(checked_fidelity(fidelity), rule="boca")
    policy: Policy[D] = gp_ucb(
        domain, kernel, noise=noise, context=chosen.space, width=width, delta=delta, regularization=regularization,
        prior_mean=prior_mean,
    )  # fmt: skip
    return replace(policy, algorithm="boca", fidelity=chosen)


def checked_fidelity(fidelity: object) -> Fidelity:
    """Returns the setting, or raises `InvalidInput`."""
    part: Fidelity | None = part_of("fidelity", fidelity)
    if part is None:
        said = f"`fidelity` is {shown(fidelity)}: it must be a setting."
        raise InvalidInput(said, advice="Make it with `nr.Fidelity('rows', 1_000, 100_000)`.")
    return part


def with_fidelity(policy: Policy[D], fidelity: Fidelity, *, start: int, budget: int | None) -> Policy[D]:
    """Returns the recommended policy for a setting.

    Args:
        policy: `auto` under the settings as contexts.
        fidelity: the setting.
        start: number of points of the initial design.
        budget: number of trials, or None if it is not known.
    """
    parts: list[Explore] = [InitialDesign(start)]
    if budget is not None:
        parts.append(Confirm(budget, rounds=max(1, min(LAST, budget // CONFIRMED))))
    parts.append(CoordinateSearch(after=start + 5, every=OFTEN))
    improvement = ExpectedImprovement(incumbent="pending" if policy.pending.hallucinates else "mean")
    return policy.using(fidelity=fidelity, explore=InTurn(tuple(parts)), score=improvement)


REGRETS = ("simple", "cumulative")
WORLDS = ("stationary", "drifting", "switching", "tidal")
ANSWERS = ("prompt", "late", "silent no", "unknown")
WITH_OBJECTIVES = {"regret": ("simple",), "answers": ("prompt", "late")}  # What goes with several objectives.
FEWEST = 10  # The least points of an initial design.
MOST = 20  # The most points of an initial design, unless more workers would be idle.
SHARE = 3  # At most this fraction, a third, of a known budget goes into the initial design.
LAST = 3  # The last rounds of a known budget, which ask again where answers are noisy,
AGAIN = 10  # and how many times as many trials there must be.
LEAST_NOISE, MOST_NOISE = 1e-50, 1e40  # Reward units. Squares of numbers between them are finite and positive.
OFTEN, SELDOM = 5, 10  # From one search of a single parameter to the next, for one worker and for several.
FIRST_NOISE = 0.1  # The noise until the first fit, reward units.
MOST_EXACT = 5  # The most objectives of which the expected gain of volume is computed exactly.
WIDTH = 2.0  # The standard deviations that are shown as bounds.
DRAWN = 0.6  # The standard deviations by which draws deviate, for clicks and counts.
RELATED = 0.3  # The lengthscale for clicks and counts, in sides of the domain.
UNDER_CONTEXTS = {1: (64, 1, 3), 2: (256, 2, 5)}  # Candidates, starts and steps of a search, by real columns.
FEW_CELLS = 64  # The cells, an arm under a context each, up to which there is a table and no linear models.
MANY = 8  # The numeric parameters from which the initial design begins in the middle.
OWN = 0.01  # The lengthscale of what an arm shares with no other arm.


def auto(
    domain: D, *, context: Domain | None = None, regret: Literal["simple", "cumulative"] | None = None,
    noise: float | None = None, budget: int | None = None, parallel: int = 1,
    constraints: int | Constraints | NoWorse | Sequence[Constraints | NoWorse] = 0,
    objectives: int | Sequence[str] = 1, reference: Sequence[float] | None = None,
    world: Literal["stationary", "drifting", "switching", "tidal"] = "stationary",
    answers: Literal["prompt", "late", "silent no", "unknown"] = "prompt",
    reward: Literal["bernoulli", "poisson", "bounded"] | KnownReward | None = None,
    cost: str | None = None, pruning: Literal["never", "median", "halving", "predicted"] | Pruning | None = None,
    fidelity: Fidelity | None = None, slate: str | SlateModel | None = None, like: Any = None,
) -> Policy[D]:  # fmt: skip
    """Returns the recommended policy if nothing is known: units, kernel, noise and mean of the rewards are learned.

    It consists of ordinary parts, which `print` shows and `policy.using(...)` replaces:

    | part | filling | what decided |
    |---|---|---|
    | explore | `InitialDesign`: scrambled Sobol points, a coordinate for each parameter | docs/choosing.md, "Starts" |
    | | from eight numbers on, the first point in the middle | |
    | | then, not on arms or under constraints, `CoordinateSearch` of one parameter | "Every fifth round" |
    | | once the local search has ended, where only the best point counts, `Elsewhere` | "Second modes" |
    | | there `AskAgain` in the last three rounds of a `budget` of 30 or more, if noisy | docs/choosing.md |
    | kernel | `kernel_for`: Matern-5/2, a lengthscale for each parameter | "Kernels" |
    | refit | every third answer, then ever more rarely | "Fits" |
    | | on boxes and in spaces lengthscales vary about a shared one (`prior="related"`) | "Jagged objectives" |
    | | rewards below the median count by rank (`warp="half-rank"`), not with contexts or `nr.OnAverage` | "Outliers" |
    | score | `ExpectedImprovement` on the best posterior mean; `UpperConfidenceBound` with contexts | "Scores" |
    | | on arms without constraints `RandomisedBound`, upper bounds of a width that is drawn | docs/recommended.md |
    | search | Sobol candidates, mutations of the five best, gradients; parabolas in up to 3 real columns | "Searches" |
    | constraints | each with a posterior of its own, and fits of its own | docs/constraints.md |
    | pending | a failed trial counts as the worst; of several open ones each shrinks the variance alone | "Workers" |
    | | their means belong to the incumbent | |

    With several `objectives` these parts differ:

    | part | filling | what decided |
    |---|---|---|
    | score | `HypervolumeImprovement`, with six or more objectives 16 directions of `ScalarisedImprovement` | |
    | refit | values as they are, since a warp would bend the volume (`warp="none"`) | |

    Where every reward counts (`regret="cumulative"`), on arms under contexts, there is a linear model for each arm:

    | part | filling | what decided |
    |---|---|---|
    | refit | `ArmModels`: linear models with random waves, averaged by predictions | docs/choosing.md, live decisions |
    | score | `GaussianDraws`: a draw for each arm, 0.3 deviations wide | |
    | explore | nothing is forced | |

    Nothing is proved for this policy: its bounds are two posterior standard deviations (`valid_for` is "none").

    Args:
        domain: arms, a box, or a space of parameters.
        context: domain of the contexts given to `ask`, or None.
        regret: what counts. None for "cumulative" with `context` or `reward`, and "simple" elsewhere.

            - "simple": the best point in the end.
            - "cumulative": every reward on the way.
        noise: standard deviation of the reward noise, reward units. None or 0 if unknown, then it is learned. With
            several objectives, 0 says that values are exact: the front is of the values told, not of posterior means.
        budget: number of trials, if known. A short run has a shorter initial design. A longer one ends with questions
            that are asked again if answers are noisy.
        parallel: number of trials that are evaluated at a time.
        constraints: number of constraint values that come with each reward, each satisfied when <= 0.

            - A number: the constraints are learned like the rewards, each with units, kernel and noise of its own. The
              score is then the constrained expected improvement (`nr.EveryRound(rule="probability")`). With contexts
              it is the upper confidence bound among the points that may satisfy the constraints.
            - A part: `nr.OnAverage(...)` subtracts prices from upper bounds. `nr.EveryRound(...)` and `nr.Safe(...)`
              are the others. With `nr.Safe` nothing is forced. By slopes, kernels and noise are learned as usual. By a
              model nothing is fitted: give `noise` of the rewards, which are assumed to vary by ten times as much.
            - `nr.NoWorse(...)`, or a list with several: a control is kept. These change nothing else of the policy.
        objectives: number of objectives, or their names: `objectives=("loss", "recall")`. With two or more, each is
            learned as the reward is, and trials look for the front that no point beats (`nr.slots.Pareto`). For arms,
            boxes and spaces without contexts. `constraints` is then a number.
        reference: the worst value of each objective that is worth anything, in the units told. The search then spends
            nothing on worse ones. None, the default, follows from the answers.
        world: the change of the reward function over time.

            - "stationary": no change.
            - "switching": only trials since the last detected change count (`nr.slots.EDetector`).
            - "drifting": with `reward` on arms, "switching" and a bank of drift rates (`nr.slots.DriftBank`). Elsewhere
              the same as "switching", because fits learn the units, and they take all answers for one function.
            - "tidal": a common level of all arms moves, such as demand by the hour and the day. It is learned apart
              from the arms (`nr.slots.Tide`). With `reward` on arms, and on arms under contexts.
        answers: the meaning of unanswered trials.

            - "prompt": answers come at once.
            - "late": unanswered trials shrink the variance, as with `parallel` above 1.
            - "silent no": bad trials are never answered. A trial counts as the value expected from its silence
              (`Imputed`). With `reward` "bernoulli" or "poisson" on arms, silence is 0, and a trial counts by its
              exposure (`Exposed`).
            - "unknown": late, until there is evidence that silence means no (`LateOrNever`).
        reward: the kind of reward, if more is known than its size: "bernoulli" (clicks), "poisson" (counts), "bounded",
            or a part such as `nr.slots.Bernoulli(ceiling=0.1)`. On arms the policy is then Thompson sampling, with
            draws that deviate `DRAWN` times as far. The posterior learns a variance for each arm, and how similar
            neighbouring arms are. Nothing else is refitted (docs/clicks.md, where this was chosen). Elsewhere, if
            silence means no, the noise of clicks is 1/2.
        cost: name of the metric that a trial costs, such as "seconds". Then the expected improvement per cost decides
            (`nr.slots.PerCost`), where the best point counts.
        pruning: the rule that stops trials which report their value after each step (`Study.report`): "median",
            "halving", "predicted", or a part such as `nr.slots.Halving(steps=50)`. None stops no trial (docs/steps.md
            says why). For one objective, without contexts.
        fidelity: a setting that makes trials cheaper, such as `nr.Fidelity("rows", 1_000, 100_000)`. The policy chooses
            it for each trial (docs/fidelity.md). It goes with `noise`, `budget` and `parallel`.
        like: earlier studies of similar problems, one or a list (docs/earlier-studies.md). Their posteriors are mixed
            with that of this study, weighted by how well each ranks the new rewards (`nr.slots.EarlierStudies`). Their
            best points are played first. For boxes, and spaces that share parameters by name, without contexts.

            - A study, or a result of `nr.maximize` or `nr.minimize`. Each has its own direction.
            - The path or URL of a storage, of which all studies count, or one: "sqlite:///file.db#name".
            - A study of Optuna.
            - A data frame, a list of dicts, or the path of a CSV, JSON, Parquet or Arrow file. It has a column for each
              parameter, or those of `study.export`, and a column `reward`, where more is better, or `loss`.
        slate: the model of places of a slate (`ask(count=3, slate=True)`): "cascade", "positions", or a part such as
            `nr.slots.Positions((1.0, 0.6, 0.4))`. None if each place's answer counts as it is (docs/slates.md).

    Raises:
        InvalidInput: for values that make no sense.

    >>> import nilregret as nr
    >>> space = nr.Space(C=nr.Float(1e-2, 1e3, log=True), kernel=nr.Choice("rbf", "linear"))
    >>> study = nr.Study(nr.auto(space), seed=0)
    >>> sorted(study.ask().parameters)
    ['C', 'kernel']
    """
    if fidelity is not None:
        _check_fidelity(context, reward, cost, like, pruning, slate, world, answers, objectives, constraints)
        return _by_fidelity(domain, fidelity, noise, budget, parallel)
    if (rule := _objectives(objectives, reference)) is not None:
        _check_alone(context=context, reward=reward, cost=cost, like=like, slate=slate, regret=regret, answers=answers)
        of = auto(domain, noise=noise, constraints=_count(constraints), world=world, answers=answers, parallel=parallel)
        rule = replace(rule, exact=noise is not None and not noise)
        return _with_rules(_for_front(of, rule, start=_start(domain, budget, parallel)), pruning=pruning)
    kind = None if reward is None else chosen_reward(reward)
    std, is_known, parallel = _checked(domain, context, _noise_of(kind, noise, answers), parallel, world, answers)
    cumulative, (count, part, limited, rules) = _counts_all(regret, context, reward, cost), _limits(constraints)
    leaves = not cumulative and context is None and world == "stationary" and answers in ("prompt", "late")
    spreads = not (cumulative or limited or isinstance(domain, Arms)) and context is None
    pending, signed = _pending(answers, spreads or parallel > 1), count > 0 or (part is not None and part.by_sign)
    by_models = cumulative and _by_models(domain, context, part, answers)
    rates = None if limited else _of_rates(kind, domain, context, noise, world, pending=pending)
    if rates is not None and not by_models and like is None:
        return _with_rules(_by_exposure(rates, kind, answers), constraints=rules, pruning=pruning, slate=slate)
    policy = build(
        "auto", domain, _first_kernel(domain, context, std), ConstantWidth(value=WIDTH),
        _score(domain, context, pending, limited=signed, cumulative=cumulative, cost=cost),
        noise=std, regularization=std**2, context=context, memory=Forever() if by_models else _memory(world),
        explore=_explore(domain, context, budget, parallel, limited=limited and context is None, leaves=leaves),
        pending=pending, constraints=_constraints(count, domain, context),
        search=_search(domain, context, limited=limited, several=parallel > 1),
        refit=_fits(domain, context, part, is_known=is_known, limited=limited), reward=kind,
    )  # fmt: skip
    policy = _by_exposure(_with_models(policy, world, answers), kind, answers) if by_models else policy
    return _with_rules(policy, like, constraints=rules, pruning=pruning, slate=slate)


def _check_fidelity(*given: Any) -> None:
    """Raises `InvalidInput` for arguments of `auto` that do not go with `fidelity`."""
    names = ("context", "reward", "cost", "like", "pruning", "slate", "world", "answers", "objectives", "constraints")
    plain = (*[None] * 6, "stationary", "prompt", 1, 0)
    other = next((name for name, value, usual in zip(names, given, plain, strict=True) if value != usual), None)
    if other is not None:
        raise InvalidInput(f"`{other}` and `fidelity` do not go together in `auto`: leave one of them out.")


def _by_fidelity(
    domain: D, fidelity: Fidelity, noise: float | None, budget: int | None, parallel: int
) -> Policy[D]:  # fmt: skip
    """Returns the policy that chooses a setting of each trial."""
    of = auto(domain, context=checked_fidelity(fidelity).space, regret="simple", noise=noise, parallel=parallel)
    return with_fidelity(of, fidelity, start=_start(domain, budget, parallel), budget=budget)


def _with_rules(policy: Policy[D], like: Any = None, **rules: Any) -> Policy[D]:
    given = {slot: rule for slot, rule in rules.items() if rule is not None}
    policy = policy.using(**given) if given else policy
    return policy if like is None else with_earlier(policy, like)


def _objectives(objectives: int | Sequence[str], reference: Sequence[float] | None) -> Pareto | None:
    """Returns the rule of several objectives, or None for one."""
    worst: Any = reference  # checked by the rule
    if isinstance(objectives, str) or not hasattr(objectives, "__iter__"):
        why = "It is the number of objectives, or a tuple with the name of each."
        count = integer("objectives", objectives, low=1, high=MOST_OBJECTIVES, why=why)
        if count == 1 and reference is not None:
            raise InvalidInput("`reference` is for several objectives, and there is one: leave it out.")
        return None if count == 1 else Pareto(objectives=count, reference=worst)
    names = tuple(objectives)
    if isinstance(objectives, Mapping):
        raise InvalidInput(
            f"`objectives` is {shown(objectives)}, and a policy has no goals: pass a tuple of the names, and the goals "
            "to the study, such as `goal=('minimize', 'maximize')`."
        )
    if len(names) < 2:
        raise InvalidInput(f"`objectives` is {shown(objectives)}: a single one is a reward, so leave it out.")
    return Pareto(objectives=len(names), names=names, reference=worst)


def _check_alone(**given: Any) -> None:
    """Raises `InvalidInput` for an argument of `auto` that does not go with several objectives."""
    for name, value in given.items():
        if value not in (None, *WITH_OBJECTIVES.get(name, ())):
            raise InvalidInput(f"`{name}` is {shown(value)}, and `auto` does not combine it with several objectives.")


def _count(constraints: Any) -> int:
    count, _, _, rules = _limits(constraints)
    if rules is not None:
        raise InvalidInput(f"With several objectives `constraints` is a number, and not {shown(constraints)}.")
    return count


def _for_front(policy: Policy[D], rule: Pareto, *, start: int) -> Policy[D]:
    """Returns the policy of one objective with the rule and the score of several in place of its own.

    Args:
        policy: with the constraints that come with the objectives.
        rule: the objectives.
        start: number of points of the initial design, after which no round is forced.
    """
    limits, fits, prior = policy.constraint_count, policy.fitting, "related"
    if isinstance(policy.domain, Arms):
        prior = "hvarfner"
    own = kernel_for(policy.domain, lengthscale=0.5)  # A constraint has units of its own until its first fit.
    kernels = (*[policy.kernel] * (rule.objectives - 1), *[own] * limits)
    return replace(
        policy, explore=InitialDesign(start), score=_score_of_front(rule.objectives),
        constraints=replace(rule, count=1, limits=limits, kernel=kernels),
        refit=None if fits is None else replace(fits, prior=prior, warp="none"),
    )  # fmt: skip


def _score_of_front(objectives: int) -> Score:
    """Returns exact expected improvement for few objectives. With many, the boxes of a front are too many."""
    from ..slots.front_scores import HypervolumeImprovement, ScalarisedImprovement

    return HypervolumeImprovement() if objectives <= MOST_EXACT else ScalarisedImprovement(directions=16)


def _first_kernel(domain: Domain, context: Domain | None, noise: float) -> Kernel:
    """Returns the kernel until the first fit: rewards vary by ten times the noise, so that neither drowns the other."""
    return (min(noise, MOST_NOISE) / FIRST_NOISE) ** 2 * kernel_for(domain, context=context, lengthscale=0.5)


def _search(domain: Domain, context: Domain | None, *, limited: bool, several: bool) -> PointSearch:
    """Returns the search of a box or space.

    Several open trials keep apart, since two that nearly agree say little more than one.

    Under contexts the candidates are predicted anew in each round, which costs O(n^2) for each. So in one and two real
    columns there are no more than show every peak (docs/choosing.md, "Searches").
    """
    if context is not None and not limited and domain.dimension in UNDER_CONTEXTS:
        candidates, starts, steps = UNDER_CONTEXTS[domain.dimension]
        search = PointSearch(candidates=candidates, starts=starts, evaluations=steps, incumbents=5, apart=0.001)
        if isinstance(domain, Box | Space) and search.dense(domain):
            return search
    # On the border of the feasible region candidates must be allowed to lie close together.
    apart = 0.0001 if limited else 0.001 if several else 0.00001
    search = PointSearch(mutations=256, incumbents=5, apart=apart)
    count = count_of_points(domain)
    if isinstance(domain, Arms) or search.dense(domain) or (count is not None and count <= search.candidates):
        return search
    return replace(search, candidates=512, mutations=128, hasty=True)


def _limits(constraints: Any) -> tuple[int, Constraints | None, bool, Sequence[Constraints | NoWorse] | None]:
    """Returns the number of constraints, the part if one is given, if there are any, and the part with each `NoWorse`.

    The number of a part is its own.
    """
    rules = parted({"constraints": constraints})
    constraints = rules.get("constraints", 0)
    part: Constraints | None = part_of("constraints", constraints)
    why = "It counts constraint values, or is a part such as `nr.OnAverage()`. Texts are for `nr.minimize`."
    count = 0 if part is not None else integer("constraints", constraints, low=0, why=why)
    given = [*(rules.get("guards") or ()), *([] if part is None else [part])]
    return count, part, count > 0 or part is not None, given or None


def _counts_all(regret: str | None, context: Domain | None, reward: object, cost: str | None) -> bool:
    """Returns whether every reward counts, and not only the best point in the end."""
    found = context is not None or reward is not None
    if regret is not None:
        found = one_of("regret", regret, REGRETS) == "cumulative"
    if found and cost is not None:
        raise InvalidInput("`cost` is for the best point in the end, and here every reward counts: leave one out.")
    return found


def _noise_of(kind: KnownReward | None, noise: float | None, answers: str) -> float | None:
    """Returns the noise given, or that of clicks if a yes alone is told: it is always 1, in which a fit finds none."""
    if noise is None and kind is not None and kind.clicks and answers in ("silent no", "unknown"):
        return kind.noise
    return noise


def _checked(
    domain: Domain, context: Domain | None, noise: float | None, parallel: int, world: str, answers: str
) -> tuple[float, bool, int]:
    """Returns the noise to begin with, whether the noise is known, and the number of workers."""
    check_domain("domain", domain)
    if context is not None:
        check_domain("context", context)
    why = "It is a standard deviation; leave it out where it is not known, and it is learned."
    known = 0.0 if noise is None else number("noise", noise, low=0.0, high=LARGEST_REWARD, why=why)
    why = "It is how many trials are evaluated at a time."
    parallel = integer("parallel", parallel, low=1, high=MOST_ROUNDS, why=why)
    one_of("world", world, WORLDS)
    one_of("answers", answers, ANSWERS)
    return max(known, LEAST_NOISE) if known else FIRST_NOISE, bool(known), parallel


def _by_models(domain: Domain, context: Domain | None, part: Constraints | None, answers: str) -> bool:
    """Returns whether linear models of arms learn the rewards, and not a posterior with a kernel.

    A table of few cells is learned better. Models need a value for each trial that counts, and certify nothing.
    """
    if context is None or not isinstance(domain, Arms) or answers == "unknown" or (part and not part.fitted):
        return False
    return not isinstance(context, Arms) or len(domain) * len(context) > FEW_CELLS


def _with_models(policy: Policy[D], world: str, answers: str) -> Policy[D]:
    """Returns the policy with linear models of arms under contexts in place of a posterior with a kernel."""
    return policy.using(
        memory=Tide() if world == "tidal" else None,  # The models that drift serve other worlds that change.
        explore=None,
        pending=_pending(answers, False) if answers == "silent no" else None,  # Draws differ with the same answers.
        score=GaussianDraws(),
        refit=ArmModels(changing=world in ("drifting", "switching")),
    )


def _by_exposure(policy: Policy[D], kind: KnownReward | None, answers: str) -> Policy[D]:
    """Returns the policy with silent trials that count by their exposure, if no reward can be less than silence, 0."""
    silent = answers == "silent no" and kind is not None and kind.span[0] == 0.0
    return (by_exposure(policy, None, minimum=0.0) or policy) if silent else policy


def _of_rates(
    reward: KnownReward | None, domain: D, context: Domain | None, noise: float | None, world: str, *, pending: Pending
) -> Policy[D] | None:
    """Returns the policy for clicks, counts and bounded rewards on finitely many arms, or None for others."""
    if reward is None or not isinstance(domain, Arms) or not isinstance(context, Arms | None):
        return None
    if noise is not None:
        raise InvalidInput("With `reward` the noise follows: leave `noise` out.")
    from ..slots.widths.likelihood_ratio import RateQuantiles

    kernel = kernel_for(domain, context=context, lengthscale=RELATED)
    memory, prior_mean, ridge = _memory(world), None, reward.noise**2
    if world == "drifting":  # The similarity of arms is not learned then: half of the variance is an arm's own.
        prior_mean, spread, ridge = reward.start
        own = kernel_for(domain, context=context, lengthscale=OWN)
        memory, kernel = AllOf((memory, DriftBank())), 0.5 * spread**2 * (kernel + own)
    return build(
        "auto", domain, kernel, RateQuantiles(deviations=WIDTH), ThompsonSample(width=DRAWN), noise=reward.noise,
        regularization=ridge,
        prior_mean=prior_mean, context=context, memory=memory, pending=pending, reward=reward,
    )  # fmt: skip


def _start(domain: Domain, budget: int | None, parallel: int) -> int:
    """Returns the number of points of the initial design: every option of a choice once, a point for every worker."""
    options = (
        [len(p.options) for p in domain.parameters.values() if isinstance(p, Choice)]
        if isinstance(domain, Space)
        else []
    )
    count = min(max([FEWEST, *options]), MOST)
    if budget is not None:
        share = integer("budget", budget, low=1, why="It is how many trials there will be.") // SHARE
        count = max(min(count, share), 1)
    return max(count, parallel)


def _numbers(domain: Domain) -> int:
    """Returns the number of numeric parameters, or 0 on arms."""
    if isinstance(domain, Space):
        return sum(not isinstance(parameter, Choice) for parameter in domain.parameters.values())
    return domain.dimension if isinstance(domain, Box) else 0


def _explore(
    domain: Domain, context: Domain | None, budget: int | None, parallel: int, *, limited: bool, leaves: bool
) -> Explore:
    start = _start(domain, budget, parallel)
    if isinstance(domain, Arms) or limited:  # Near the best feasible point most points are infeasible.
        return InitialDesign(start)
    first = InitialDesign(start, middle=context is None and _numbers(domain) >= MANY)
    single = CoordinateSearch(after=start + 5, every=SELDOM if parallel > 1 else OFTEN)
    if not leaves:
        return InTurn((first, single))
    again = () if budget is None or budget < AGAIN * LAST else (AskAgain(budget=budget, rounds=LAST),)
    return InTurn((first, *again, Elsewhere(after=max(30, start + 20), otherwise=single, restarts=1)))


def _score(
    domain: Domain, context: Domain | None, pending: Pending, *, limited: bool, cumulative: bool, cost: str | None
) -> Score:
    improvement = ExpectedImprovement(incumbent="pending" if pending.hallucinates else "mean")
    if cost is not None:
        from ..slots.costs import PerCost

        return PerCost(cost, improvement)
    if context is not None:
        return UpperConfidenceBound()
    if cumulative and not limited:
        return RandomisedBound(shift=0.0)
    if isinstance(domain, Arms) and not limited:  # Expected improvement settles on an arm too soon.
        from .takeno import half_shift

        return half_shift(len(domain))
    return improvement


def _constraints(count: int, domain: Domain, context: Domain | None) -> Constraints | None:
    """Returns constraints with units of their own until their first fit, independent of the reward noise."""
    if not count:
        return None
    return EveryRound(
        count=count,
        kernel=kernel_for(domain, context=context, lengthscale=0.5),
        rule="probability" if context is None else "optimistic",
    )


def _fits(
    domain: Domain, context: Domain | None, part: Constraints | None, *, is_known: bool, limited: bool
) -> Refit:  # fmt: skip
    # A budget on average weighs mean rewards against mean uses, which ranks do not keep.
    bends = context is None and not (part is not None and part.on_average)
    warp, noise = "half-rank" if bends else "none", "given" if is_known else "unknown"
    # The prior was compared where it is taken.
    prior = "hvarfner" if limited or context is not None or isinstance(domain, Arms) else "related"
    return Refit(every=3, growth=0.1, warp=warp, noise=noise, prior=prior)


def _memory(world: str) -> Memory:
    return Tide() if world == "tidal" else Forever() if world == "stationary" else EDetector()


def _pending(answers: str, several: bool) -> Pending:
    if answers == "silent no":
        return Imputed(minimum=None, failed="weighed")
    if answers == "unknown":
        return LateOrNever(minimum=None, failed="weighed")
    return Hallucinated(failed="weighed") if answers == "late" or several else Ignored(failed="weighed")
