"""Slates: several places decided together, each at another arm.

The places are decided in turn, each among the arms that no place before has, in one transaction. So the propensity of
each is given the places before it, and their product is that of the slate as played. A slate is known by the number of
its first trial.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._utils.checks import Array, flag, integer, many, shown
from ..domains.domain import Arms
from ..errors import InvalidInput, TrialError
from ..policy.availability import Available, without
from ..policy.policy import Policy
from ..storage.trial import Trial
from .lessons import places_of
from .visits import Asked, Seen

if TYPE_CHECKING:
    from .spaces import Roster
    from .transaction import Transaction

REPEATS = (
    "`count` is {}, and {} may be played under this context. Each is played before any repeats, so all are played "
    "equally often, whatever was learned. Usually the count was meant to be smaller."
)


def spreads(policy: Any) -> bool:
    """Returns whether several decisions that are asked for at once are at different arms: arms under a context.

    A control that is kept (`nr.NoWorse`) may be needed in each of them.
    """
    under = isinstance(policy, Policy) and policy.context is not None and policy.fidelity is None
    return under and isinstance(policy.domain, Arms) and policy.guards is None


def check_slate(slate: object, count: object) -> bool:
    """Returns whether a slate is asked for, or raises `InvalidInput` if it is not said of how many places."""
    wanted = flag("slate", slate)
    if wanted and count is None:
        raise InvalidInput("A slate has as many places as `count` says, and `count` is missing.")
    return wanted


def _check_places(roster: Roster, offered: Available | None, count: int) -> None:
    """Raises `InvalidInput` if a slate cannot have so many places."""
    policy = roster.policy
    if not isinstance(policy, Policy) or not isinstance(policy.domain, Arms):
        raise InvalidInput(
            "A slate is of arms, and this policy has none.",
            advice="`ask(count=...)` asks for several points of a box or space.",
        )
    if policy.switching is not None:
        raise InvalidInput("A slate plays each arm once, and this policy plays a choice several times (`switching`).")
    there = len(_arms(roster, offered).points)
    if count > there:
        raise InvalidInput(
            f"The slate has {many(count, 'place')}, and {many(there, 'arm')} may be played this time: each place "
            "needs another one. Usually a filter left too few. Nothing was recorded."
        )
    if policy.slate is not None:
        policy.slate.check_places(count)


def decided(
    calls: Transaction, context: Array | Seen | None, offered: Available | None, lease: float | None,
    asked: Asked | None, count: int, *, slate: bool,
) -> list[Trial]:  # fmt: skip
    """Records several decisions in turn, a slate or trials of their own, and returns them.

    Args:
        calls: the transaction.
        context: see `Transaction.ask`.
        offered: see there.
        lease: see there.
        asked: see there. An event is that of the whole slate, and facts stand with its first trial.
        count: number of decisions.
        slate: whether they are the places of a slate.
    """
    if slate and asked is not None and asked.event is not None and asked.event in calls.record.events:
        return _asked_before(calls, context, asked, count)
    if slate:
        _check_places(calls.roster, offered, count)
    made, first = list[Trial](), len(calls.record)
    for place in range(count):
        if slate:
            said = Asked() if asked is None else asked if place == 0 else asked._replace(event=None, facts=())
            asked_now: Asked | None = said._replace(slate=first, place=place)
        else:
            asked_now = asked
        left = left_for(calls.roster, offered, made) if slate else next_offered(calls, offered, asked, made)
        made.append(calls.ask(context, left, lease, asked_now))
    if slate and asked is not None and asked.unit is not None:
        calls.keep(asked.unit, made)
    return made


def next_offered(
    calls: Transaction, offered: Available | None, asked: Asked | None, made: Sequence[Trial]
) -> Available | None:
    """Returns what the next of several decisions of one request may play. A unit plays what it keeps."""
    apart = made and spreads(calls.roster.policy) and (asked is None or asked.unit is None)
    return left_for(calls.roster, calls.standing(_arms(calls.roster, offered)), made) if apart else offered


def _asked_before(calls: Transaction, context: Array | Seen | None, asked: Asked, count: int) -> list[Trial]:
    """Returns the slate of an event that was asked for already."""
    known = calls.ask(context, None, None, asked)
    slate = list(places_of(calls.trials, known))
    if known.slate is None or len(slate) != count:
        what = "no slate" if known.slate is None else f"a slate of {many(len(slate), 'place')}"
        raise TrialError(
            f"The event {shown(asked.event)} is trial {known.number} already, {what}, and now a slate of "
            f"{many(count, 'place')} is asked for; nothing was recorded. Usually two decisions got the same id.",
            advice="Give each decision an id of its own, and the same one to repeat the call.",
            topic="event",
        )
    return slate


def left_for(roster: Roster, offered: Available | None, made: Sequence[Trial]) -> Available | None:
    """Returns what the next of several decisions may play: the arms that the fewest of them have.

    Args:
        roster: of the study.
        offered: what is offered this time, or None for all arms.
        made: the decisions before.
    """
    if not made:
        return offered
    whole = _arms(roster, offered)
    taken = [trial.arm for trial in made[len(made) // len(whole.points) * len(whole.points) :]]
    gone = np.isin(whole.numbers, np.array(taken, dtype=np.intp))
    return without(whole, gone) if gone.any() else offered


def repeats(roster: Roster, offered: Available | None, asked: Asked | None, count: int) -> dict[str, str]:
    """Returns a warning, by kind, if several decisions are asked for at once and there are fewer arms."""
    if not spreads(roster.policy) or (asked is not None and asked.unit is not None):
        return {}
    there = len(_arms(roster, offered).points)
    return {"count": REPEATS.format(f"{count:,}", many(there, "arm"))} if count > there else {}


def _arms(roster: Roster, offered: Available | None) -> Available:
    found, domain = roster.playable(offered), roster.domain
    return Available(domain.points, np.arange(len(domain))) if found is None else found


# -- answers ---------------------------------------------------------------------------------------------------------


def told(calls: Transaction, slate: Any, rewards: Any, clicked: Any, *, revise: bool) -> list[Trial]:
    """Records answers of a slate, and returns its trials (see `Study.tell_slate`)."""
    alone = isinstance(slate, Trial | str) or not isinstance(slate, Sequence) or not slate
    places = places_of(calls.record, calls.record.require(slate if alone else slate[0]))
    calls.tell_all([calls.inputs.answer(*each) for each in rewards_of(places, rewards, clicked)], revise=revise)
    return [calls.roster.moved(calls.record[trial.number]) for trial in places]


def rewards_of(
    slate: Sequence[Trial], rewards: Iterable[float | None] | None, clicked: int | Iterable[int] | None
) -> list[tuple[Trial, float]]:
    """Returns the answers of a slate, each with its trial.

    Args:
        slate: its trials.
        rewards: of each place, None where nothing is known yet.
        clicked: the places that were answered by 1. All others were answered by 0.

    Raises:
        InvalidInput: both or none are given, or they do not fit the slate.
        TrialError: the trial is of no slate.
    """
    if slate[0].slate is None:
        raise TrialError(
            f"Trial {slate[0].number} is of no slate: it was asked for alone.",
            advice="`tell(trial, reward)` answers it; `ask(count=3, slate=True)` makes slates.",
        )
    if (rewards is None) == (clicked is None):
        raise InvalidInput(
            "A slate is answered by `rewards`, one for each place, or by `clicked`, the places that were clicked.",
            advice="Such as `rewards=[0, 1, None]`, or `clicked=1`; `clicked=[]` says that none was.",
        )
    if clicked is not None:
        places = clicked if isinstance(clicked, Iterable) else [clicked]
        known = [integer("clicked", place, low=0, high=len(slate) - 1) for place in places]
        return [(trial, float(i in known)) for i, trial in enumerate(slate)]
    given = list(rewards) if isinstance(rewards, Iterable) and not isinstance(rewards, str) else []
    if len(given) != len(slate):
        raise InvalidInput(
            f"`rewards` is {shown(rewards)}: it must have an entry for each of the {many(len(slate), 'place')} of the "
            "slate, None where nothing is known yet."
        )
    return [(trial, reward) for trial, reward in zip(slate, given, strict=True) if reward is not None]
