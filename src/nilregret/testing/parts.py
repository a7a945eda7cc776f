"""Checks of the parts of a policy, except for the score."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._utils.checks import Array
from .._utils.errors import InvalidInput
from .._utils.randomness import Randomness
from ..domains.domain import Domain
from ..gp import Averaged, Belief
from ..policy.engines import Engine, Prior
from ..policy.training_data import TrainingData
from ..slots.check import part_of
from ..slots.envelope import Bounds, Envelope
from ..slots.explore import Explore, Situation
from ..slots.memory import Memory
from ..storage.record import Trial
from ..study.study import Study
from .base import close, promise, same

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
            "`randomness.generator`, never from one of its own.",
        )
        promise(
            isinstance(due[0], bool | np.bool_),
            f"`{name}.due` gives {due[0]!r}: it says True or False.",
        )
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
        "`randomness.generator`, never from one of its own.",
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
        "`situation.randomness.generator`, never from one of its own.",
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
