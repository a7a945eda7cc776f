"""GP-UCB, experimental design, and the rules that they are compared with (Srinivas, Krause, Kakade & Seeger 2010)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, Unpack

from .._utils.checks import flag
from ..domains.domain import D
from ..errors import InvalidInput
from ..kernels import Kernel
from ..policy.policy import Policy
from ..slots.envelope import Confidence
from ..slots.scores import (
    ExpectedImprovement,
    PosteriorDeviation,
    PosteriorMean,
    ProbabilityOfImprovement,
    Score,
    UpperConfidenceBound,
)
from ..theory.series import Series
from .arguments import check_gain, chosen_gain, chosen_width, is_exact, is_other, noise_and_ridge, norm_bound_or_guess
from .bayes_widths import bayes_width, bounds_without_theorem, prior_std
from .definition import Slots, algorithm, build, given

WIDTHS = ("finite", "compact", "rkhs")
SMALL_MARGIN = 0.05  # Share of the prior standard deviation, for the probability of improvement.


@algorithm()
def gp_ucb(
    domain: D,
    kernel: Kernel,
    *,
    noise: float | None = None,
    width: Literal["finite", "compact", "rkhs"] | Confidence | None = None,
    scale: float = 1.0,
    delta: float = 0.1,
    a: float | None = None,
    b: float | None = None,
    r: float | None = None,
    series: Series | float | None = None,
    norm_bound: float | None = None,
    guess_norm: bool = False,
    information_gain: Literal["greedy", "realised", "rate"] | float = "greedy",
    regularization: float | None = None,
    **slots: Unpack[Slots],
) -> Policy[D]:
    """GP-UCB: argmax mu_{t-1}(x) + beta_t^{1/2} sigma_{t-1}(x) (Srinivas et al. 2010, Algorithm 1, eq. 6).

    beta_t is that of Theorem 1 for finitely many arms and contexts, and that of Theorem 2 elsewhere. `width` may say
    otherwise. `irgp_ucb` draws a width in each round instead, and has less regret.

    Args:
        domain: arms, a box, or a space of parameters (encoded into the unit cube).
        kernel: prior covariance of the rewards, of (context, point) rows if there are contexts. The theorems assume
            k(x, x) <= 1.
        noise: standard deviation of the reward noise, reward units. For Theorem 3 its largest absolute value.
        width: the width of the confidence bounds.

            - "finite": Theorem 1, beta_t = 2 log(|D| t^2 pi^2 / (6 delta)). The default if D is finite.
            - "compact": Theorem 2, beta_t = 2 log(2 t^2 pi^2 / (3 delta)) + 2 d log(t^2 d b r
              sqrt(log(4 d a / delta))). The default elsewhere.
            - "rkhs": Theorem 3, beta_t = 2 B^2 + 300 gamma_t log^3(t / delta). With `noise` 0 the bounds without noise
              (`nilregret.slots.widths.mixtures`), beta_t at most B^2.
            - A part such as `nilregret.slots.envelope.ConstantWidth(value=2.0)`. Then the other arguments about the
              bounds must be left out.
        scale: multiplies beta_t. The paper's experiments divide beta_t by 5 (0.2). Below 1 nothing is proved.
        delta: failure probability of the confidence bounds.
        a: constant of Theorem 2, P(sup |df/dx_j| > L) <= a exp(-(L / b)^2). Derived from the kernel unless given (see
            `nilregret.slots.widths.slopes`).
        b: the other constant of Theorem 2, in reward units per unit of length.
        r: longest side of the box in Theorem 2. Taken from the domain unless given.
        series: pi_t of Theorems 1 and 2, which shares delta out over the rounds. Lemma 5.1 allows any with
            sum 1 / pi_t = 1. A power p > 1 for pi_t = zeta(p) t^p, or a part such as `nr.slots.EvenSeries(1000)`. The
            default is pi^2 t^2 / 6.
        norm_bound: B of Theorem 3, a bound on ||f||_k, reward units.
        guess_norm: takes `norm_bound` (default 1) as a guess only, with `width="rkhs"`. The guess doubles whenever the
            observations contradict it (remark after Theorem 3). `study.norm_bounds` shows the guesses.
        information_gain: gamma_t of Theorem 3. "greedy" is an upper bound. For "realised", "rate" or a number nothing
            is proved.
        regularization: lambda, `noise**2` unless given (eq. 1). With another value nothing is proved of Theorems 1 to
            3. With `noise` 0 it is 1e-8 of the prior variance unless given.
        slots: keywords that every algorithm takes (`nilregret.algorithms.Slots`):

            - context: domain of the contexts given to `ask`, or None.
            - prior_mean: expected reward before any observation, reward units. The default is 0. The theorems are for
              f - prior_mean.
            - memory: the trials that count, all by default. "adaptive" (`nr.slots.EDetector()`) counts those since the
              last change that was detected. Otherwise a part such as `nr.slots.SlidingWindow(200)` or
              `nr.slots.RestartEvery(100)`.
            - explore: the forced rounds, none by default. Otherwise a part of `nilregret.slots.explore`.
            - pending: the value that an unanswered trial counts as. "ignore", "hallucinate", or a part.
            - search: the search on a continuous domain, `nr.slots.PointSearch(...)`.
            - refit: the way to learn the kernel from the record. `nr.slots.Refit(...)` fits on a schedule,
              `nr.slots.LengthscaleBank()` averages over lengthscales. With either nothing is proved.
            - switching: the number of rounds that a choice is played, one by default. "lazy" (`nr.slots.Lazy()`) plays
              a choice as long as little can be learned from playing it.
            - constraints: the constraints, each with a posterior of its own. `nr.EveryRound(count=1)`,
              `nr.OnAverage(count=1)` or `nr.Safe(start=points, scale=...)`. None by default.
            - reward: the kind of reward, if more is known than its size. "bernoulli" (clicks), "poisson" (counts),
              "bounded", or a part such as `nr.slots.Bernoulli(ceiling=0.1)`. The noise follows, so `noise` is left out.

    Raises:
        InvalidInput: for values that make no sense, and for parts that do not fit together.
        TypeError: for an unknown keyword.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.gp_ucb(arms, kernel, noise=0.1)
    >>> round(nr.Study(policy).width, 2), policy.valid_for
    (3.22, 'f')
    """
    noise, ridge = noise_and_ridge(domain, kernel, given("gp_ucb", noise, slots), regularization, slots)  # eq. 1
    _check_arguments(guess_norm, information_gain)
    confidence = chosen_width(
        width, WIDTHS, delta=delta, scale=is_other(scale, 1.0), a=a is not None, b=b is not None,
        r=r is not None, series=series is not None, norm_bound=norm_bound is not None, guess_norm=guess_norm,
        information_gain=is_other(information_gain, "greedy"),
    )  # fmt: skip
    context, matched, exact = slots.get("context"), ridge == noise**2, is_exact(noise, slots) and scale == 1.0
    if confidence == "rkhs":
        bound = _norm_of_theorem_3(norm_bound, series, guess_norm=guess_norm, slots=slots)
        confidence = _width_of_theorem_3(
            bound, partial(chosen_gain, information_gain, domain, context, kernel), exact=exact, delta=delta,
            guessed=guess_norm, scale=scale, noise_matched=matched, noise=noise,
        )  # fmt: skip
    elif isinstance(confidence, str | None):
        _refuse_norm(norm_bound, guess_norm=guess_norm)
        confidence = bayes_width(
            domain, context, kernel, width=confidence, a=a, b=b, r=r, delta=delta, scale=scale, noise_matched=matched,
            series=series,
        )  # fmt: skip
    score = UpperConfidenceBound()  # eq. 6
    return build("gp_ucb", domain, kernel, confidence, score, noise=noise, regularization=ridge, **slots)


def _check_arguments(guess_norm: bool, information_gain: str | float) -> None:
    flag("guess_norm", guess_norm, why="The guess itself is `norm_bound`.")
    check_gain(information_gain)


def _refuse_norm(norm_bound: float | None, *, guess_norm: bool) -> None:
    """Raises an error if the caller gave a norm bound, which Theorems 1 and 2 do not use."""
    if norm_bound is not None or guess_norm:
        raise InvalidInput(
            "`norm_bound` belongs to Theorem 3: add `width` 'rkhs' to use it, or leave it out; Theorems 1 and 2 "
            "are for samples of the process and need none."
        )


def _width_of_theorem_3(
    bound: float, gain: Callable[[], Any], *, exact: bool, delta: float, guessed: bool, **noisy: Any
) -> Confidence:
    """Returns the width for functions whose norm is bounded, without noise or with it."""
    from ..slots.widths import mixtures, self_normalized

    if exact:
        return mixtures.NoiseFree(norm_bound=bound, delta=delta, guessed=guessed)
    return self_normalized.BoundedNoise(norm_bound=bound, gain=gain(), delta=delta, guessed=guessed, **noisy)


def _norm_of_theorem_3(
    norm_bound: float | None, series: Series | float | None, *, guess_norm: bool, slots: Slots
) -> float:
    """Returns B of Theorem 3, or the first guess of B."""
    if series is not None:
        raise InvalidInput("`series` is of Theorems 1 and 2: Theorem 3 has no pi_t. Leave it out.")
    if norm_bound is None and not guess_norm:
        raise InvalidInput(
            "`width` 'rkhs' is Theorem 3, which needs `norm_bound`: a bound on the norm of f in the kernel's RKHS. "
            "Where none is known, `guess_norm` finds one by doubling."
        )
    return norm_bound_or_guess(norm_bound, guess_norm=guess_norm, refit=slots.get("refit"))


@algorithm()
def expected_improvement(
    domain: D,
    kernel: Kernel,
    *,
    noise: float | None = None,
    incumbent: str = "mean",
    margin: float = 0.0,
    width: Literal["finite", "pointwise"] | Confidence | None = None,
    delta: float = 0.1,
    regularization: float | None = None,
    **slots: Unpack[Slots],
) -> Policy[D]:
    """Expected improvement, EI (Mockus et al. 1978), on the highest posterior mean in place of the best reward.

    This is a baseline of Srinivas et al. 2010, section 6. Before the first reward the prior mean is the incumbent.
    Wang et al. 2025 (arXiv 2508.15674) show that it has no regret for samples of a Gaussian process. That is for the
    incumbent "mean" without a margin, and for squared exponential and Matern kernels that are known.

    Args:
        domain, kernel, noise, regularization, slots: see `gp_ucb`.
        incumbent: "mean", "pending" or "reward" (see `nilregret.slots.scores.Improvement`).

            - "mean": the highest posterior mean over the domain, under the context of the question. It makes EI
              competitive under noise (Srinivas et al.).
            - "reward": the best noisy reward told under this very context. EI gets stuck with it (Chowdhury & Gopalan
              2017).
        margin: the smallest improvement that counts, reward units.
        width: bounds of `study.bounds` alone. "finite" (Theorem 1) is the default on arms. "pointwise", for one point
            in one round, is the default elsewhere. Or a part.
        delta: failure probability of these bounds.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.expected_improvement(arms, kernel, noise=0.1)
    >>> policy.valid_for
    'f'
    >>> nr.Study(policy).ask().state
    'pending'
    """
    noise = given("expected_improvement", noise, slots)
    return _rule(
        "expected_improvement", domain, kernel, ExpectedImprovement(incumbent=incumbent, margin=margin),
        noise=noise, width=width, delta=delta, regularization=regularization, **slots,
    )  # fmt: skip


@algorithm()
def probability_of_improvement(
    domain: D,
    kernel: Kernel,
    *,
    noise: float | None = None,
    incumbent: str = "mean",
    margin: float | None = None,
    width: Literal["finite", "pointwise"] | Confidence | None = None,
    delta: float = 0.1,
    regularization: float | None = None,
    **slots: Unpack[Slots],
) -> Policy[D]:
    """Most probable improvement, PI (Kushner 1964), by a 20th of the prior std on the highest posterior mean.

    This is the baseline "MPI" of Srinivas et al. 2010, section 6.

    Args:
        domain, kernel, noise, incumbent, width, delta, regularization, slots: see `expected_improvement`.
        margin: the improvement whose probability is maximised, reward units. 5% of the prior standard deviation unless
            given. With 0 and the incumbent "mean" the rule is `greedy_mean`.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.algorithms.probability_of_improvement(arms, kernel, noise=0.1)
    >>> policy.valid_for
    'f'
    >>> nr.Study(policy).ask().state
    'pending'
    """
    noise = given("probability_of_improvement", noise, slots)
    if margin is None:
        margin = SMALL_MARGIN * prior_std(domain, slots.get("context"), kernel)
    return _rule(
        "probability_of_improvement", domain, kernel, ProbabilityOfImprovement(incumbent=incumbent, margin=margin),
        noise=noise, width=width, delta=delta, regularization=regularization, **slots,
    )  # fmt: skip


@algorithm()
def greedy_mean(
    domain: D,
    kernel: Kernel,
    *,
    noise: float | None = None,
    width: Literal["finite", "pointwise"] | Confidence | None = None,
    delta: float = 0.1,
    regularization: float | None = None,
    **slots: Unpack[Slots],
) -> Policy[D]:
    """Exploitation alone, argmax mu_{t-1}(x) ("mean only" of Srinivas et al. 2010, section 6).

    Args:
        domain, kernel, noise, width, delta, regularization, slots: see `expected_improvement`.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.algorithms.greedy_mean(arms, kernel, noise=0.1)
    >>> policy.valid_for
    'f'
    >>> nr.Study(policy).ask().state
    'pending'
    """
    noise = given("greedy_mean", noise, slots)
    return _rule(
        "greedy_mean", domain, kernel, PosteriorMean(),
        noise=noise, width=width, delta=delta, regularization=regularization, **slots,
    )  # fmt: skip


@algorithm()
def greedy_variance(
    domain: D,
    kernel: Kernel,
    *,
    noise: float | None = None,
    width: Literal["finite", "pointwise"] | Confidence | None = None,
    delta: float = 0.1,
    regularization: float | None = None,
    **slots: Unpack[Slots],
) -> Policy[D]:
    """Experimental design, argmax sigma_{t-1}(x) (Srinivas et al. 2010, eq. 4): learns f everywhere.

    The gathered information is at least (1 - 1/e) of the largest possible. Section 6 calls this rule "variance only".

    Args:
        domain, kernel, noise, width, delta, regularization, slots: see `expected_improvement`.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.algorithms.greedy_variance(arms, kernel, noise=0.1)
    >>> policy.valid_for
    'f'
    >>> nr.Study(policy).ask().state
    'pending'
    """
    noise = given("greedy_variance", noise, slots)
    return _rule(
        "greedy_variance", domain, kernel, PosteriorDeviation(),
        noise=noise, width=width, delta=delta, regularization=regularization, **slots,
    )  # fmt: skip


def _rule(
    algorithm: str,
    domain: D,
    kernel: Kernel,
    score: Score,
    *,
    noise: float | None = None,
    width: str | Confidence | None,
    delta: float,
    regularization: float | None,
    **slots: Unpack[Slots],
) -> Policy[D]:
    """Returns the policy of a rule that uses no confidence bounds."""
    noise, ridge = noise_and_ridge(domain, kernel, noise, regularization, slots)
    confidence = chosen_width(width, ["finite", "pointwise"], delta=delta)
    if isinstance(confidence, str | None):
        context, matched = slots.get("context"), ridge == noise**2
        confidence = bounds_without_theorem(domain, context, width=confidence, delta=delta, noise_matched=matched)
    return build(algorithm, domain, kernel, confidence, score, noise=noise, regularization=ridge, **slots)
