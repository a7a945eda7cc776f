"""Checks of the parts of a policy, except for the score."""

from __future__ import annotations

from typing import Any, cast, final

import numpy as np

from .._utils.checks import Array
from .._utils.randomness import Randomness
from ..domains.domain import Arms, Domain, enclosing_box
from ..domains.search.boxes import AcquisitionFunction
from ..errors import InvalidInput
from ..gp import Averaged, Belief
from ..policy.engines import Engine, Prior
from ..policy.policy import Policy
from ..policy.training_data import TrainingData
from ..slots.by_name import part_of
from ..slots.envelope import Bounds, Envelope
from ..slots.explore import Explore, NoExploration, Situation
from ..slots.memory import Memory
from ..slots.scores import PointView, PointwiseScore, Score, TableView
from ..storage.record import Trial
from ..study.study import Study
from .driver import Driver, close, promise, same

CLAIMS = ("f", "played", "rho_m f", "none")  # quantities that bounds may be proved for
MEANS = np.linspace(-1.5, 2.0, 8)
STDS = np.linspace(0.05, 1.2, 8)


# -- memory ----------------------------------------------------------------------------------------------------------


def check_memory(memory: Memory, rounds: int) -> None:
    """Checks cuts, the first counted trial, `keeps_all` and `drift` of a memory."""
    name = type(memory).__name__
    for since in (0, 3):
        before = since
        for round_ in range(since, rounds):
            first, cut = memory.first_counted(since, round_), memory.cut(since, round_)
            promise(
                before <= first <= round_,
                f"`{name}.first_counted(since={since}, round_={round_})` is {first}: it must lie between `since` and "
                f"`round_`, and it was {before} before and may not go back. Take `max(since, ...)`.",
            )
            before = first
            promise(
                cut is None or since < cut.round <= round_,
                f"`{name}.cut(since={since}, round_={round_})` is {cut}: a cut lies after `since` and not after "
                "`round_`, or there is none.",
            )
            promise(
                (cut, first) == (memory.cut(since, round_), memory.first_counted(since, round_)),
                f"`{name}` answers otherwise when it is asked again: it is a description, and remembers nothing.",
            )
            if memory.keeps_all:
                promise(
                    first == since and cut is None and memory.drift() is None,
                    f"`{name}` says that it keeps all answers (`keeps_all`) and cuts, forgets or drifts: then its "
                    "other methods are never called. Leave `keeps_all` as it is, False.",
                )
    drift = memory.drift()
    rates = drift if isinstance(drift, tuple) else (drift,)
    promise(
        drift is None or (all(rate is not None and 0.0 <= rate <= 1.0 for rate in rates) and any(rates)),
        f"`{name}.drift()` is {drift}: the share of f that is new in each round is in (0, 1], or there are several, or "
        "None.",
    )


# -- explore ---------------------------------------------------------------------------------------------------------


def check_explore(explore: Explore, rounds: int, domain: Domain, probes: Array, context: Array | None) -> None:
    """Checks that forced rounds depend only on the situation and the random numbers of the trial."""
    for number in range(rounds):
        _check_due(explore, number)
        for uniform in {0, number}:
            forcing = [explore.forcing(uniform, number, Randomness(7, number)) for _ in range(2)]
            _check_forcing(explore, forcing, uniform, number)
            if (part := forcing[0]) is not None:
                _check_places(
                    part, [part.places(_situation(domain, probes, context, number)) for _ in range(2)], domain
                )


def _situation(domain: Domain, probes: Array, context: Array | None, number: int) -> Situation:
    """Returns a situation in which the probes have been asked for in turn."""
    tried = probes[np.arange(number) % len(probes)]
    best = probes[0] if number else None
    return Situation(domain, context, number, 7, Randomness(7, number), lambda: best, lambda: tried.copy())


def _check_due(explore: Explore, number: int) -> None:
    name = type(explore).__name__
    for uniform in {0, number // 2, number}:
        due = [explore.due(uniform, number, Randomness(7, number)) for _ in range(2)]
        promise(
            due[0] == due[1],
            f"`{name}.due` answers otherwise when it is asked again about trial {number}: random numbers come from "
            "`randomness.draws`, never from one of its own.",
        )
        promise(isinstance(due[0], bool | np.bool_), f"`{name}.due` gives {due[0]!r}: it says True or False.")
        promise(
            explore.ever or not due[0],
            f"`{name}` forces a round and says that it never does (`ever = False`): then it is never asked.",
        )


def _check_forcing(explore: Explore, forcing: list[Explore | None], uniform: int, number: int) -> None:
    name = type(explore).__name__
    promise(
        forcing[0] is None or part_of("explore", forcing[0]) is not None,
        f"`{name}.forcing` gives {forcing[0]!r}: it is the part that forces the round, itself or one of its own, or "
        "None where none does.",
    )
    promise(
        forcing[0] == forcing[1],
        f"`{name}.forcing` answers otherwise when it is asked again about trial {number}: random numbers come from "
        "`randomness.draws`, never from one of its own.",
    )
    due = bool(explore.due(uniform, number, Randomness(7, number)))
    promise(
        due == (forcing[0] is not None),
        f"`{name}.forcing` gives {forcing[0]!r} for trial {number} and `{name}.due` {due}: a round is due where a part "
        "forces it, and nowhere else.",
    )


def _check_places(part: Explore, places: list[Array | None], domain: Domain) -> None:
    name, width = type(part).__name__, domain.dimension
    for each in places:
        promise(
            each is None or (isinstance(each, np.ndarray) and each.ndim == 2 and each.shape[1] == width),
            f"`{name}.places` gives {each!r}: it must be an array `(n, {width})`, with no rows where the round is not "
            "forced after all, or None for the whole domain.",
        )
    promise(
        same(places[0], places[1]),
        f"`{name}.places` answers otherwise when it is asked again about a trial: random numbers come from "
        "`situation.randomness.draws`, never from one of its own.",
    )
    if places[0] is not None and len(places[0]):
        try:
            inside = domain.inside("places", places[0])
        except InvalidInput as error:
            raise AssertionError(f"`{name}.places` must be points of the domain: {error}") from error
        promise(
            np.array_equal(inside, places[0]),
            f"`{name}.places` gives {places[0]!r}, which are no points of the domain but next to some: {inside!r}.",
        )


# -- what counts -----------------------------------------------------------------------------------------------------


def check_belief(study: Study) -> None:
    """Checks that the posterior has learned exactly the trials that memory, pending part and objective count."""
    state: Any = study.replica.current()
    policy, data = state.policy, state.reward.data
    first = max(policy.memory.first_counted(state.since, len(study.trials)), state.since)
    wanted = {trial.number for trial in study.trials if trial.number >= first and _counts(trial, data, study)}
    held = set(data.posterior.entries)
    promise(
        held == wanted,
        f"Trials {sorted(wanted)} count by what the memory ({type(policy.memory).__name__}), the pending part "
        f"({type(policy.pending).__name__}) and the objective say, and the posterior has learned {sorted(held)}. "
        "Usually "
        "what an unanswered trial counts as changes with time: then set `moves = True`.",
    )
    belief: Belief[Any] = data.posterior.belief
    valued = sum(entry.target is not None for entry in data.posterior.entries.values())
    promise(
        (belief.observed.count, belief.with_pending.count) == (valued, len(held) if belief.apart else valued),
        f"{len(held)} trials count, {valued} of them with a value, and the posterior holds {belief.observed.count} "
        "with a "
        f"value and {belief.with_pending.count} for the variance.",
    )
    if policy.memory.drift() is None and held:
        _check_predictions(study, data, state.outputs.engine)


def _counts(trial: Trial, data: TrainingData, study: Study) -> bool:
    """Returns True if a trial within the memory is among the data."""
    if trial.state == "observed" and trial.told_order == trial.asked_order:
        return data.target(trial) is not None
    if trial.state == "abandoned":
        return False
    if trial.state == "failed":
        return study.policy.pending.failed != "aside"
    if trial.state == "pending" or trial.number in data.pending.dropped:
        return data.imputed(trial) is not None
    return data.target(trial) is not None


def _check_predictions(study: Study, data: TrainingData, engine: Engine[Any]) -> None:
    """Checks that a new posterior of the same data predicts the same."""
    posterior = data.posterior
    policy: Any = study.policy
    if posterior.models is not None and not policy.plain:
        return  # The units were learned from early trials, of which some may be forgotten.
    if policy.memory.tides:
        return  # Levels were learned with the arms as they were known then.
    prior = Prior(
        posterior.in_use, posterior.ridge, known=posterior.known, bank=posterior.bank, models=posterior.models
    )
    fresh = engine.fresh(prior, apart=posterior.belief.apart)
    if isinstance(fresh.observed, Averaged):
        fresh.observed.leader = data.posterior.belief.observed.leader
    entries = list(data.posterior.entries.values())
    fresh.put_all([engine.cell(entry.trial) for entry in entries], [entry.target for entry in entries])
    cells = np.array([engine.cell(trial) for trial in study.trials])
    if data.posterior.known is not None:  # what was learned of variances hangs on when it was: of the same sums
        promise(
            close(data.posterior.belief.observed.averages, fresh.observed.averages, 1e-6),
            "The posterior has learned other rewards than those of the trials that count.",
        )
        return
    found, wanted = data.posterior.belief.predict(cells), fresh.predict(cells)
    promise(
        close(found[0], wanted[0], 1e-6) and close(found[1] ** 2, wanted[1] ** 2, 1e-6),
        "The posterior is not the one of the trials that count. Usually a part changes what trials count as without "
        "saying so: `Objective.revises`, `Pending.revises` and `Pending.moves` say what may change.",
    )


# -- pending ---------------------------------------------------------------------------------------------------------


def check_pending(study: Study) -> None:
    """Checks the imputed values of pending trials, and the flags of the pending part about them."""
    state: Any = study.replica.current()
    policy, data = state.policy, state.reward.data
    pending, name = policy.pending, type(policy.pending).__name__
    for trial in [trial for trial in study.trials if trial.state == "pending" and trial.number >= state.since]:
        pseudo = data.imputed(trial)
        promise(
            pending.revises or pseudo is None,
            f"`{name}.count_as` gives {pseudo} and `{name}.revises` is False: then it is never asked. Leave "
            "`revises` as "
            "it is, True.",
        )
        promise(
            pseudo is None or pseudo.value is None or np.isfinite(pseudo.value),
            f"`{name}.count_as` gives {pseudo}: a value is finite.",
        )
        entry = data.posterior.entries.get(trial.number)
        if entry is not None and pseudo is not None and not pending.moves:
            now = data.imputed_target(pseudo)
            promise(
                now == entry.target,
                f"`{name}` says that what an unanswered trial counts as stays (`moves = False`), and trial "
                f"{trial.number} "
                f"counts as {entry.target}, which by now would be {now}: set `moves = True` in the class.",
            )
        alone = pending.stand_in(data.lowest())
        promise(
            alone is None or (pseudo is not None and pseudo.value == alone - data.charge(trial)),
            f"`{name}.stand_in` says that all unanswered trials count as {alone}, and trial {trial.number} counts as "
            f"{pseudo}.",
        )
    claim = pending.proves("none", policy)
    promise(claim == "none", f"`{name}.proves` makes the claim {claim!r} of bounds for which nothing is proved.")


# -- confidence ------------------------------------------------------------------------------------------------------


def check_confidence(study: Study, probes: Array, context: Array | None) -> None:
    """Checks shape, order and dependencies of the bounds."""
    state: Any = study.replica.current()
    confidence = state.policy.confidence
    name = type(confidence).__name__
    promise(confidence.valid_for in CLAIMS, f"`{name}.valid_for` is {confidence.valid_for!r}: one of {CLAIMS}.")
    bounds = state.bounds(now=float(len(study.trials)))
    promise(isinstance(bounds, Bounds), f"`{name}.bounds` gives {bounds!r}: it must be a `Bounds`, made for the round.")
    _check_envelope(name, state.envelope(probes, context, now=float(len(study.trials))), len(probes))
    promise(
        bounds.width is not None or not confidence.multiple,
        f"`{name}.multiple` is True and its bounds have no `width`: draws need it.",
    )
    if bounds.pointwise:
        _check_pointwise(name, bounds)


def _check_envelope(name: str, envelope: Envelope, n: int) -> None:
    for what in ("mean", "std", "lower", "upper"):
        values = getattr(envelope, what)
        promise(
            isinstance(values, np.ndarray) and values.shape == (n,) and bool(np.isfinite(values).all()),
            f"`{name}`: `{what}` of {n} points is {values!r}: it must be an array `({n},)` of finite numbers.",
        )
    slack = 1e-9 * (1.0 + np.abs(envelope.mean) + envelope.std)
    promise(
        (envelope.lower <= envelope.upper + slack).all(),
        f"`{name}`: a lower bound lies above the upper one: {envelope.lower} and {envelope.upper}.",
    )
    if envelope.width is not None:
        promise(envelope.width >= 0.0, f"`{name}` has a width of {envelope.width}: it multiplies the std, and is >= 0.")
        promise(
            (envelope.lower <= envelope.mean + slack).all() and (envelope.mean <= envelope.upper + slack).all(),
            f"`{name}`: the mean lies outside bounds that are a multiple of the std.",
        )


def _check_pointwise(name: str, bounds: Bounds) -> None:
    whole, again = bounds(MEANS.copy(), STDS.copy()), bounds(MEANS.copy(), STDS.copy())
    _check_envelope(name, whole, len(MEANS))
    for what in ("lower", "upper"):
        here = getattr(whole, what)
        promise(
            np.array_equal(here, getattr(again, what)),
            f"`{name}`: asked again, the bounds of one round are others. They are a function of mean and std.",
        )
        singly = np.array([getattr(bounds(MEANS[[i]], STDS[[i]]), what)[0] for i in range(len(MEANS))])
        promise(
            close(singly, here, 1e-12),
            f"`{name}`: the {what} bound at a point depends on which other points are asked about. Where more than "
            "mean and std at the point count, set `pointwise = False` in its `Bounds` and look at `rows`.",
        )
        if bounds.moves:
            moved = getattr(bounds(MEANS + 2.0, STDS.copy()), what)
            promise(
                close(moved - 2.0, here, 1e-9),
                f"`{name}` says that its bounds move with the rewards (`moves`), and the {what} one does not.",
            )
    if bounds.width is not None:
        promise(
            close(whole.upper, MEANS + bounds.width * STDS, 1e-9)
            and close(whole.lower, MEANS - bounds.width * STDS, 1e-9),
            f"`{name}` gives a `width` of {bounds.width}, and its bounds are not mean +- width * std: leave it None.",
        )


STEP = 1e-5  # step of differences, relative to the sides of the domain
POINTS = 8  # points of the checks
MOST_KINKS = 0.4  # fraction of the points at which a gradient may be wrong, because a score may have kinks


@final
class _CheckedScore(Score):
    """A score that checks the results of another score in a decision."""

    def __init__(self, score: Score) -> None:
        self._score = score
        self.name = type(score).__name__
        self.in_rewards = score.in_rewards  # type: ignore[misc]  # as of the class

    @property
    def own_width(self) -> float | None:
        """The width of draws of the checked score."""
        return self._score.own_width

    def on_table(self, view: TableView) -> Array:
        """Checks that scores are finite, one for each arm, in an array of their own."""
        n = len(view.envelope().mean)
        scores = self._score.on_table(view)
        _check_scores(self.name, scores, n)
        kept = scores.copy()
        scores[:] = -1.0
        promise(
            np.isfinite(view.envelope().mean).all() and (view.envelope().mean != -1.0).any(),
            f"`{self.name}.on_table` gives an array that is not its own: the engine writes into it. Give a copy.",
        )
        return kept

    def on_points(self, view: PointView) -> AcquisitionFunction:
        """Checks that scores are finite, and that gradients agree with differences."""
        surface = self._score.on_points(view)
        _check_scores(self.name, surface.values(view.points), len(view.points))
        if not isinstance(view.domain, Arms):  # Arms are all compared.
            _check_slopes(self.name, surface, view)
        return surface

    def placed(self, point: Array, surface: AcquisitionFunction, view: PointView) -> Array:
        return self._score.placed(point, surface, view)


def check_score(driver: Driver, rounds: int) -> None:
    """Checks shape, values and gradients of the scores after some rounds."""
    policy = driver.policy
    state: Any = driver.play(driver.study(), 0, rounds).replica.state
    checked = _with(policy, score=_CheckedScore(policy.score), explore=NoExploration())
    state.policy = state.memory.policy = checked
    context = driver.context(rounds)
    state.decide(context, now=float(rounds))
    bounds = state.bounds(now=float(rounds))
    if hasattr(policy.score, "partials") and getattr(bounds, "pointwise", False):
        _check_partials(cast(PointwiseScore, policy.score), bounds)


def _with(policy: Policy, **parts: object) -> Policy:
    """Returns the policy with parts that need not be described classes."""
    other = object.__new__(Policy)
    other.__dict__.update(policy.__dict__)
    other.__dict__.update(parts)
    return other


def _check_scores(name: str, scores: Any, n: int) -> None:
    promise(
        isinstance(scores, np.ndarray) and scores.shape == (n,) and scores.dtype == np.float64,
        f"`{name}` gives scores {getattr(scores, 'shape', scores)!r} of {n} points: an array `({n},)` of floats is "
        "due.",
    )
    promise(
        not np.isnan(scores).any() and not np.isposinf(scores).any(),
        f"`{name}` gives scores that are NaN or infinite. Usually a standard deviation of 0 is divided by.",
    )


def _check_slopes(name: str, surface: AcquisitionFunction, view: PointView) -> None:
    box = enclosing_box(view.domain)
    sides = np.where(box.upper > box.lower, box.upper - box.lower, 1.0)
    inner = np.random.default_rng(3).uniform(0.05, 0.95, (POINTS, box.dimension))
    points = box.lower + inner * (box.upper - box.lower)
    values, gradients = surface.slopes(points)
    here = surface.values(points)
    _check_scores(name, values, POINTS)
    promise(
        np.allclose(values, here, rtol=1e-6, atol=1e-8),
        f"`{name}`: `slopes` gives other values than `values`: {values} and {here}.",
    )
    promise(
        gradients.shape == points.shape and np.isfinite(gradients).all(),
        f"`{name}`: the gradients of {POINTS} points have shape {gradients.shape}, or are not finite; {points.shape} "
        "is due.",
    )
    differences = np.zeros(points.shape)
    for j, side in enumerate(sides):
        shift = np.zeros(box.dimension)
        shift[j] = STEP * side
        with np.errstate(invalid="ignore"):
            differences[:, j] = (surface.values(points + shift) - surface.values(points - shift)) / (2.0 * STEP * side)
    known = np.isfinite(differences).all(axis=1) & np.isfinite(here)  # Points near a failed one have the score -inf.
    here, gradients, differences = here[known], gradients[known], differences[known]
    size = np.abs(differences * sides).max(axis=1) + 1e-3 * (np.ptp(here) + 1e-9)
    off = (np.abs(gradients - differences) * sides).max(axis=1) > 0.02 * size + 1e-5
    promise(
        off.mean() <= MOST_KINKS,
        f"`{name}`: at {int(off.sum())} of {POINTS} points the gradient is not that of the score: "
        f"{gradients[off][:1]} by `slopes` and {differences[off][:1]} by differences. Usually `partials` is wrong, or "
        "the bounds depend on more than mean and std (then set `pointwise = False` in its `Bounds`).",
    )


def _check_partials(score: PointwiseScore, bounds: Bounds) -> None:
    """Checks the derivatives in mean and std by differences of the score."""
    name = type(score).__name__
    mean, std = np.linspace(-1.3, 1.6, POINTS), np.linspace(0.2, 1.1, POINTS)

    def at(mean: Array, std: Array) -> Array:
        return score(bounds(mean.copy(), std.copy()), 0.3)

    _check_scores(name, at(mean, std), POINTS)
    given = score.partials(bounds(mean.copy(), std.copy()), 0.3)
    if given is None:
        return
    step = 1e-6
    found = (
        (at(mean + step, std) - at(mean - step, std)) / (2.0 * step),
        (at(mean, std + step) - at(mean, std - step)) / (2.0 * step),
    )
    for what, partial, difference in zip(("mean", "standard deviation"), given, found, strict=True):
        promise(
            np.shape(partial) == (POINTS,),
            f"`{name}.partials` gives derivatives in the {what} of shape {np.shape(partial)}: ({POINTS},) is due.",
        )
        off = np.abs(partial - difference) > 1e-4 * (1.0 + np.abs(difference))
        promise(
            off.mean() <= MOST_KINKS,
            f"`{name}.partials`: the derivative in the {what} is {partial}, and by differences {difference}.",
        )
