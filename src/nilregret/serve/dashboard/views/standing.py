"""The verdict whether a study has settled, and the next step."""

from __future__ import annotations

import math
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from ...._utils.checks import many, real
from ...._utils.numerals import numeral
from ....domains.domain import Arms
from ....errors import NoRegretError
from ....plots.base import reward_label
from ....plots.history_picture import further_gain
from ....plots.source import has_single_best
from ....storage.record import Trial
from ....study.direction import best_label
from ....study.formatting import where
from ....study.function import expected_gain, reached_ends
from ....study.study import Study
from .columns import columns_of
from .pictures import has_front
from .status import PAUSED, WHY_PAUSED, believed, of_clicks, short_context, status, told_now

SMALL = 0.01  # share of the spread of the rewards, below which a gain is next to nothing
SPREAD = (0.05, 0.95)  # quantiles of the rewards that the spread is taken from
MORE = 1.05  # times as many trials, up to which a verdict is kept
MOST_ARMS = 4096  # arms of a table that a verdict under contexts looks at
CONTEXTS = 20  # latest trials under whose contexts a verdict is taken
MOST_LISTED = 8  # contexts in the table of recommended points
LEAST = 20  # rewards before a study is called settled


class Verdict(NamedTuple):
    """The verdict whether a study has settled.

    Attributes:
        trials: number of trials then.
        settled: True if finding out whether another point is better is expected to gain next to nothing.
        sentence: why, with the figures.
    """

    trials: int
    settled: bool
    sentence: str


_known: WeakKeyDictionary[Study, Verdict] = WeakKeyDictionary()  # the last verdicts


def verdict(study: Study) -> Verdict:
    """Returns whether a study has settled, computed again after each event but reports.

    This may take a search of the policy.
    """
    found = _known[study] = study.replica.kept("verdict", lambda: Verdict(len(study.trials), *_judged(study)))
    return found


def _judged(study: Study) -> tuple[bool, str]:
    if has_front(study):
        return False, "Whether it has settled is not said: no rule holds yet for when several objectives are enough."
    columns = columns_of(study)
    rewards = columns.array("reward")
    told = rewards[~np.isnan(rewards)]
    if len(told) < LEAST:
        return False, f"Whether it has settled is said from {LEAST} answers on."
    gain, what = _gain(study)
    if gain is None:
        return False, "Whether it has settled is not known: under this policy no gain of further trials is computed."
    low, high = np.quantile(told, SPREAD)
    ends = columns.array("state") != 1.0
    since, word = _since(study, ends), "losses" if reward_label(study) == "loss" else "rewards"
    share = gain / (high - low) if high > low else 0.0 if gain == 0.0 else math.inf
    said = f"{what.format(numeral(gain, 2))} Nine in ten {word} told span {numeral(high - low, 2)}."
    return bool(share < SMALL), f"{said} {since}".rstrip()


def _gain(study: Study) -> tuple[float | None, str]:
    """Returns what further trials are expected to gain, and a sentence with a place for it."""
    try:
        if study.policy.context is None:
            return further_gain(study), "Finding out whether another point is better is expected to gain {}."
        gains = _gains_under_contexts(study)
        under = f"Under {many(len(gains), 'recent context')}, "
        place = under + "finding out whether another arm is better is expected to gain {}."
        return float(np.mean(gains)) if gains else None, place
    except NoRegretError:
        return None, ""


def _gains_under_contexts(study: Study) -> list[float]:
    """Returns the gain to expect over the arm with the best mean, under each recent context (see `expected_gain`).

    The list has no elements if the domain is no table of 2 to `MOST_ARMS` arms, or if there are constraints.
    """
    arms = study.policy.domain
    if not isinstance(arms, Arms) or not 1 < len(arms) <= MOST_ARMS or study.policy.constraint_count:
        return []
    seen = {trial.context.tobytes(): trial for trial in study.trials[-CONTEXTS:] if trial.context is not None}
    sign, gains = 1.0 if study.goals[0] == "maximize" else -1.0, []
    for trial in seen.values():
        mean, _ = study.predict(arms.points, context=trial.context)
        best = trial._replace(point=arms.points[int((sign * mean).argmax())])
        gains.append(study.replica.query(partial(expected_gain, best=best)))
    return [gain for gain in gains if gain is not None]


def _since(study: Study, ended: Any) -> str:
    """Returns a sentence on when the best value told last improved, of the trials that count."""
    found = told_now(study)
    if found is None or of_clicks(study):
        return ""
    number = found[0].number
    count = many(int(ended[number + 1 :].sum()), "trial")
    return f"The {best_label(study.goals[0])} is that of trial {number}, {count} ago."


REFUTED = (
    "No further trial is decided: two answers refute the slopes or the noise bound. Make a new study with larger ones."
)


def standing(study: Study, *, now: float, paused: bool = False) -> dict[str, Any]:
    """Returns the status of a study, the verdict whether it has settled, and what to do next."""
    found = verdict(study)
    at = standing_status(study, now=now, paused=paused)
    ends = reached_ends(study)
    return {"at": at, "settled": found, "next": next_step(study, at), "under": _under_contexts(study), "ends": ends}


def _under_contexts(study: Study) -> list[dict[str, str]]:
    """Returns the recommended point under each of the latest contexts, with its posterior mean and bounds."""
    found: dict[str, tuple[list[tuple[float, str]], dict[str, str]]] = {}
    if has_single_best(study):
        return []
    for trial in reversed(study.trials[-CONTEXTS:]):
        under = short_context(trial)
        if trial.context is None or under in found or len(found) == MOST_LISTED:
            continue
        try:
            best = study.best(context=trial.context)._replace(context=trial.context)
            row = {"context": under, "where": where(best, names=study.replica.roster.names)} | believed(study, best)
            found[under] = _in_order(trial), row
        except NoRegretError:
            continue
    return [row for _, row in sorted(found.values(), key=itemgetter(0))]


def _in_order(trial: Trial) -> list[tuple[float, str]]:
    """Returns a key of the context of a trial, by which numbers are sorted as numbers, before any text."""
    named = trial.context_parameters
    values = [] if trial.context is None else trial.context.tolist() if named is None else [*named.values()]
    return [(math.inf, str(value)) if real(value) is None else (value, "") for value in values]


def standing_status(study: Study, *, now: float, paused: bool = False) -> dict[str, Any]:
    """Returns the status, "settled" instead of "active" if a verdict says so. Few trials more keep the verdict."""
    at, known = status(study, now=now), _known.get(study)
    if paused:
        return at | {"state": "paused", "said": "paused", "state_why": WHY_PAUSED, "known": PAUSED + at["known"]}
    if known is not None and known.settled and at["state"] == "active" and at["trials"] <= MORE * known.trials + 1:
        why = f"after {many(known.trials, 'trial')}, more were expected to gain next to nothing"
        at |= {"state": "settled", "said": "settled", "state_why": why}
    return at


def next_step(study: Study, at: dict[str, Any]) -> dict[str, str]:
    """Returns what to do next: a sentence, and the path of a tab with the text of its link."""
    if "refuted" in study.remarks:
        return _step(REFUTED, "/health", "What refutes it")
    pending = many(at["pending"], "pending trial")
    if at["state"] == "paused":
        return _step("The service decides nothing until it goes on. It takes rewards.", "/actions/resume", "Go on")
    if at["state"] == "empty":
        return _step("Ask for the first trial.", "/settings#clients", "Code to paste")
    if at["state"] == "failing":
        return _step("Find out why the last trials failed.", "/trials?state=failed", "Failed trials and their reasons")
    found = at["best"] is not None or (at["front"] or {}).get("count")
    if not found:
        told = _step(f"Tell what came of the {pending}.", "/trials?state=pending", "Pending trials")
        return told if at["pending"] else _step(at["why_no_best"], "/trials", "Trials")
    best = "#front" if at["best"] is None else f"/trials/{at['best']['number']}"
    if at["state"] == "settled" and at["best"]["context"] is not None:
        said = "Go on asking under each context. Further trials are expected to gain next to nothing."
        return _step(said, "/worth", "What it is worth")
    if at["state"] == "settled":
        return _step("Use the recommended trial. Further trials are expected to gain next to nothing.", best, "See it")
    if at["state"] in ("silent", "ended") and at["pending"]:
        return _step(f"Tell what came of the {pending}, or give up.", "/trials?state=pending", "Pending trials")
    if at["state"] in ("silent", "ended"):
        use = "use the recommended one" if at["front"] is None else "choose one of the front"
        return _step(f"Ask for more trials, or {use}.", best, "See it")
    return _step("Go on asking and telling: the study still learns.", "/settings#clients", "Code to paste")


def _step(said: str, path: str, link: str) -> dict[str, str]:
    return {"said": said, "path": path, "link": link}
