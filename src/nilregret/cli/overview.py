"""The summary of a study that `nilregret show` prints."""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from operator import gt, lt
from typing import TYPE_CHECKING, Any

import numpy as np

from .._utils.checks import counted, many
from .._utils.numerals import numeral, percent, with_error
from ..domains.domain import Arms, Space
from ..errors import InvalidInput, NoRegretError, TrialError
from ..policy.policy import Policy
from ..storage.record import Trial
from ..study.best import admissible, at_full, told_best
from ..study.cautions import Answered, cautions
from ..study.direction import best_label, has_channels
from ..study.formatting import cell, figure, mean_uses, metrics_text, moment, sparkline, use_text, where
from ..study.function import answers_for_units, reached_ends
from ..study.late_fits import answer_delays
from ..study.study import Study
from ..study.trial_json import context_json, with_history
from ..study.waiting import PAST, Counted, counted_trials, overdue, set_at_deadline, told_counted

if TYPE_CHECKING:
    from rich.table import Table

MILESTONES = (1, 2, 5)  # The best reward so far is shown after these numbers of rewards, times powers of ten.
MOST_MILESTONES = 6  # in the text
LISTED = 20  # trials in the text
# Entries about one best trial, in the summary of several objectives.
NO_BEST: Mapping[str, Any] = {
    "progress": [], "rate": None, "rate_of": 0, "not_counted_yet": "", "best": None, "why_no_best": None,
    "best_told": None, "best_told_of": "", "expected_gain": None, "importance": None,
}  # fmt: skip
LONGEST = 100  # characters of a domain
SPARKS = 60  # most characters of a sparkline
LABELS = 14  # characters of the names beside it
MOST_COLUMNS, MOST_ANSWERS = 6, 500  # of a study whose importance takes seconds at most
MOST_NAMED = 3  # parameters in the text


def overview(study: Study) -> dict[str, Any]:
    """Returns the summary as plain data for JSON."""
    trials = list(study.trials)
    several, pruned = study.policy.objective_count > 1, study.pruned()
    return {
        "name": study.name, "goal": study.goal, "seed": study.seed, "algorithm": study.policy.algorithm,
        "domain": repr(study.policy.domain), "about": study.about,
        "trials": {"all": len(trials), **Counter(trial.state for trial in trials)},
        "first_asked_at": trials[0].asked_at if trials else None,
        "last_told_at": max((trial.told_at for trial in trials if trial.told_at is not None), default=None),
        **({**NO_BEST, "front": front_json(study)} if several else _of_one(study, trials)),
        "restarts": [
            {"round": round_, "reason": why}
            for round_, why in zip(study.restarts, study.restart_reasons, strict=True)
        ],
        "multipliers": study.multipliers.tolist(), "saturated": study.saturated,
        "norm_bounds": [list(pair) for pair in study.norm_bounds],
        "pending": [with_history(trial) for trial in trials if trial.state == "pending"],
        "overdue": overdue(study, study.replica.clock()),
        "enqueued": [entry._asdict() for entry in study.enqueued], "delays": _delays(study, trials),
        **({"pruned": pruned._asdict() | {"said": str(pruned)}} if pruned.stopped or pruned.spared else {}),
        "notes": [
            *study.remarks.values(), *cautions(study.policy, Answered.of(trials), study.multipliers).values(),
            *reached_ends(study),
        ],
    }  # fmt: skip


def _of_one(study: Study, trials: Sequence[Trial]) -> dict[str, Any]:
    """Returns the part of the summary that is about one reward."""
    return {"progress": progress(study, trials), **_rate(study), **_best(study), **_model(study), **_budgets(study)}


def _budgets(study: Study) -> dict[str, Any]:
    """Returns the mean use of each budget and the best mix, if constraints hold on average."""
    found: dict[str, Any] = {"budgets": mean_uses(study.policy, study.about, study.trials)}
    if not found["budgets"]:
        return {}
    with contextlib.suppress(NoRegretError):  # There is a context, or constraints without a posterior.
        mix = study.mix()
        shares = {trial.number: float(share) for trial, share in zip(mix.trials, mix.shares, strict=True)}
        at = mix.said(partial(where, names=study.replica.roster.names))
        found["mix"] = {"shares": shares, "reward": mix.reward, "use": mix.use.tolist(), "said": at}
    return found


def _budget_facts(summary: dict[str, Any]) -> Sequence[tuple[str, object]]:
    """Returns the best mix, and the mean use of each budget."""
    mix = summary.get("mix")
    said = None if mix is None else f"{mix['said']}: {figure(mix['reward'])} a trial, within the budget on average"
    return [("best mix", said), *(("mean use", use_text(each)) for each in summary.get("budgets", ()))]


def front_json(study: Study, reference: Any = None) -> dict[str, Any]:
    """Returns the trials that no other beats, with posterior means and intervals of their objectives, for JSON.

    Args:
        study: with several objectives.
        reference: of the hypervolume, or None for that of the study.
    """
    front = study.front_values(reference)
    matrices = {name: getattr(front, name).tolist() for name in ("mean", "std", "lower", "upper")}
    columns = study.replica.roster.columns
    return {
        "objectives": objectives_json(study), "trials": [with_history(each) | columns(each) for each in front.trials],
        **matrices, "hypervolume": front.hypervolume, "left_out": front.left_out, "note": front.note,
        "reference": front.reference.tolist() if np.isfinite(front.reference).all() else None,
    }  # fmt: skip


def objectives_json(study: Study) -> list[dict[str, str]]:
    """Returns name and goal of each objective."""
    names, goals = study.policy.objective_names, study.goals
    return [{"name": name, "goal": goal} for name, goal in zip(names, goals, strict=True)]


def front_table(front: dict[str, Any], *, wide: bool | None = None) -> Table:
    """Returns the front as a table: value told, posterior mean and interval of each objective.

    Args:
        front: as of `front_json`. `recommended` is the number of a trial, if there is one.
        wide: see `table`.
    """
    from ..study.terminal import table

    names = [each["name"] for each in front["objectives"]]
    columns = [front[name] for name in ("trials", "mean", "lower", "upper")]
    rows = [
        [
            trial["number"], trial.get("arm_name"), trial["parameters"] or trial["point"], *trial["values"], *mean,
            *(f"{figure(a)} to {figure(b)}" for a, b in zip(lower, upper, strict=True)),
        ]
        for trial, mean, lower, upper in zip(*columns, strict=True)
    ]  # fmt: skip
    states = ["best" if trial["number"] == front.get("recommended") else "" for trial in front["trials"]]
    told, means, ends = ([f"{name}, {word}" for name in names] for word in ("told", "mean", "between"))
    least = [*ends[::-1], *told[::-1]]
    return table(rows, ["trial", "arm", "at", *told, *means, *ends], states=states, dispensable=least, wide=wide)


def front_facts(front: dict[str, Any]) -> list[tuple[str, object]]:
    """Returns the size of the front, its volume and its recommended trial."""
    if not front["trials"]:
        return [("front", "empty so far")]
    names = [each["name"] for each in front["objectives"]]
    volume = f"{figure(front['hypervolume'])} beyond {figure(dict(zip(names, front['reference'], strict=True)))}"
    number = front.get("recommended")
    recommended = None if number is None else f"trial {number}"
    size = "; ".join(filter(None, (many(len(front["trials"]), "trial"), front["note"])))
    return [("front", size), ("hypervolume", volume), ("recommended", recommended)]


def value_names(study: Study) -> Sequence[str]:
    """Returns the name of the value of each objective. Of one objective, it is the reward or the loss."""
    one = "reward" if study.goals[0] == "maximize" else "loss"
    return (one,) if study.policy.objective_count == 1 else study.policy.objective_names


def stds(trial: Trial) -> float | str | None:
    """Returns the standard deviation of the noise of each objective of a trial, where it is known."""
    if not any(other.std is not None for other in trial.others):
        return trial.std
    return ", ".join(figure(each) or "?" for each in (trial.std, *(other.std for other in trial.others)))


def last_report(trial: Trial) -> str | None:
    """Returns the last step of a trial that has reported, and its value."""
    return f"{trial.curve[-1].step}: {figure(trial.curve[-1].value)}" if trial.curve else None


def goal_in_words(objectives: Sequence[Mapping[str, str]]) -> str:
    """Returns the goal of each objective, or the goal alone if there is one objective."""
    named = len(objectives) > 1
    return ", ".join(f"{each['goal']} {each['name']}" if named else each["goal"] for each in objectives)


def progress(study: Study, trials: Sequence[Trial]) -> list[dict[str, Any]]:
    """Returns the best feasible reward so far after 1, 2, 5, 10, ... rewards and after the last."""
    _, told = _told(study, trials)
    if not told:
        return []
    best = (np.maximum if study.goals[0] == "maximize" else np.minimum).accumulate(told)
    at = {i * 10**j for j in range(len(str(len(told)))) for i in MILESTONES if i * 10**j <= len(told)} | {len(told)}
    return [{"answers": i, "best": float(best[i - 1])} for i in sorted(at) if math.isfinite(best[i - 1])]


def _told(study: Study, trials: Sequence[Trial]) -> tuple[list[float], list[float]]:
    """Returns rewards in the order told, and the same with an infinitely bad one unless constraints are met."""
    worst = -math.inf if study.goals[0] == "maximize" else math.inf
    feasible = {trial.number for trial in admissible(study.policy, at_full(study.policy, trials))}
    clicks = _clicks(study)
    ordered = sorted(trials, key=lambda trial: trial.told_order or 0) if clicks is None else clicks.answered
    told = [(trial.number, trial.reward) for trial in ordered if trial.reward is not None]
    return [value for _, value in told], [value if number in feasible else worst for number, value in told]


def _clicks(study: Study) -> Counted | None:
    """Returns the trials that count in a rate, or None if rewards are no clicks."""
    clicks = isinstance(study.policy, Policy) and study.policy.objective.clicks
    return counted_trials(study) if clicks else None


def _rate(study: Study) -> dict[str, Any]:
    """Returns the rate of clicks so far, and the trials that do not count in it yet, in words."""
    clicks = _clicks(study)
    told = [] if clicks is None else [trial.reward for trial in clicks.answered if trial.reward is not None]
    return {
        "rate": float(np.mean(told)) if told else None, "rate_of": len(told),
        "not_counted_yet": "" if clicks is None else clicks.left_out,
    }  # fmt: skip


def _rate_text(summary: dict[str, Any]) -> str:
    """Returns the rate, of how many trials it is, and what is left out, in a line."""
    waiting = f"not counted yet: {summary['not_counted_yet']}" if summary["not_counted_yet"] else ""
    if summary["rate"] is None:
        return waiting
    said = f"{numeral(summary['rate'], 3)} in {many(summary['rate_of'], 'trial')}"
    return said + (f"; {waiting}" if waiting else "")


def _model(study: Study) -> dict[str, Any]:
    """Returns the best value told, the gain to expect, and the total index of each parameter.

    Each is None where it is not known. The index is None, too, where it takes long.
    """
    from ..plots.history_picture import History

    answers = sum(trial.reward is not None for trial in study.trials)
    counted, which = told_counted(study)
    best, importance = told_best(counted, study.goals[0]), None
    if study.policy.domain.dimension <= MOST_COLUMNS and answers <= MOST_ANSWERS:
        with contextlib.suppress(InvalidInput):
            found = study.importance()
            importance = {found.names[i]: float(found.value.total[i]) for i in found.order}
    return {
        "best_told": None if best is None else with_history(best) | study.replica.roster.columns(best),
        "best_told_of": which,
        "expected_gain": History(study).gain if answers else None, "importance": importance,
    }  # fmt: skip


def _best(study: Study) -> dict[str, Any]:
    """Returns the best trial and its posterior, or the reason why there is none."""
    try:
        best = study.best()
    except TrialError as error:
        return {"best": None, "why_no_best": str(error)}
    found: dict[str, Any] = with_history(best) | study.replica.roster.columns(best)
    if study.replica.query(answers_for_units):
        return {"best": found, "why_no_best": None}
    try:
        mean, std = study.predict(best.point[None], context=best.context)
        lower, upper = study.bounds(best.point[None], context=best.context)
        found |= {"mean": float(mean[0]), "std": float(std[0]), "lower": float(lower[0]), "upper": float(upper[0])}
        found["width"] = None if math.isnan(study.width) else study.width
        if has_channels(study.policy):
            found["feasible"] = float(study.feasible(best.point[None], context=best.context)[0])
    except NoRegretError:  # The policy has no posterior.
        pass
    return {"best": found, "why_no_best": None}


def _delays(study: Study, trials: Sequence[Trial]) -> dict[str, Any]:
    """Returns statistics of the delays, in trials asked meanwhile and in seconds, and the trials answered too late."""
    silent = set_at_deadline(study)
    each = [found for found in zip(*answer_delays(trials), strict=True) if found[0].number not in silent]
    if not each:
        return {"answers": 0, "late": 0, "too_late": [], "of_abandoned": [], "set_at_deadline": len(silent)}
    waited, questions, seconds = zip(*each, strict=True)
    counts = study.policy.pending.counts
    told = [(trial, partial(int, count)) for trial, count, _ in each if trial.state == "observed"]
    too_late = [trial.number for trial, since in told if not counts(trial, since)]
    return {
        "answers": len(waited), "late": sum(int(count) > 0 for count in questions), "too_late": too_late,
        "of_abandoned": [trial.number for trial in waited if trial.late],
        "median_questions": float(np.median(questions)), "most_questions": int(max(questions)),
        "median_seconds": float(np.median(seconds)), "most_seconds": float(max(seconds)),
        "set_at_deadline": len(silent),
    }  # fmt: skip


def marks(study: Study) -> dict[int, str]:
    """Returns "best" for the trial with the best reward, and "better" for those that were the best when they came.

    Trials that violate a constraint are none of them. Of several objectives, "best" are the trials of the front.
    """
    better = gt if study.goals[0] == "maximize" else lt
    if study.policy.objective_count > 1:
        return dict.fromkeys((trial.number for trial in study.front()), "best")
    found: dict[int, str] = {}
    best: float | None = None
    for trial in sorted(told_counted(study)[0], key=lambda trial: trial.told_order or 0):
        if trial.reward is not None and (best is None or better(trial.reward, best)):
            best = trial.reward
            found = dict.fromkeys(found, "better") | {trial.number: "best"}
    return found


def overview_parts(summary: dict[str, Any], study: Study) -> list[str | Table]:
    """Returns the summary as texts and tables.

    Args:
        summary: the result of `overview`.
        study: of which it is.
    """
    from ..study.terminal import facts, table

    trials = list(study.trials)
    pending = [trial for trial in trials if trial.state == "pending"]
    counts = ", ".join(f"{count} {state}" for state, count in summary["trials"].items() if state != "all")
    parts: list[str | Table] = [
        facts([
            ("study", summary["name"]), ("policy", summary["algorithm"]), ("domain", _domain(study)),
            ("goal", f"{goal_in_words(objectives_json(study))}, seed {summary['seed']}"),
            ("trials", f"{summary['trials']['all']}" + (f": {counts}" if counts else "")),
            ("overdue", f"{many(summary['overdue'], 'pending trial')}{PAST}" if summary["overdue"] else None),
            ("to try first", len(summary["enqueued"]) or None),
            ("about", summary["about"]), ("first asked", _utc(summary["first_asked_at"])),
            ("last answer", _utc(summary["last_told_at"])), *_best_facts(summary), *_budget_facts(summary),
            *(front_facts(summary["front"]) if "front" in summary else ()),
            (best_label(study.goals[0]), _told_text(summary)), ("progress", _milestones(summary["progress"])),
            ("rate", _rate_text(summary)), *_sparklines(study, trials), *_model_facts(summary),
            ("answers", _delays_text(summary["delays"])), ("early ends", summary.get("pruned", {}).get("said")),
            ("restarts", "; ".join(f"trial {each['round']}: {each['reason']}" for each in summary["restarts"])),
            ("multipliers", summary["multipliers"]),
            ("norm bound", summary["norm_bounds"][-1][1] if summary["norm_bounds"] else None),
        ])
    ]  # fmt: skip
    if "front" in summary:
        parts += ["\nNo trial beats these:", front_table(summary["front"])] * bool(summary["front"]["trials"])
    if pending:
        names, curves = study.replica.roster.names, any(trial.curve for trial in pending[:LISTED])
        rows = [
            [
                trial.number, where(trial, names=names), context_json(trial), *[last_report(trial)] * curves,
                moment(trial.asked_at),
            ]
            for trial in pending[:LISTED]
        ]  # fmt: skip
        headings = ["trial", "at", "context", *["last step"] * curves, "asked (UTC)"]
        parts += ["\nWaiting for an answer:", table(rows, headings)]
        parts += [f"and {len(pending) - LISTED} more"] * (len(pending) > LISTED)
    return [*parts, *(f"\nNote: {note}" for note in summary["notes"])]


def _utc(time: float | None) -> str:
    said = moment(time)
    return f"{said} UTC" if ":" in said else said  # A clock of the user may count from any moment.


def _domain(study: Study) -> str:
    """Returns the domain in a line, or its parameters, one a line."""
    from ..study.terminal import console

    domain = study.policy.domain
    whole, space = repr(domain), domain if isinstance(domain, Space) else getattr(domain, "space", None)
    if len(whole) <= min(LONGEST, console().width - LABELS):
        return whole
    if space is None:
        return cell(whole, most=LONGEST)
    lines = [f"{name} {parameter!r}" for name, parameter in space.declared.items()]
    lines += [f"where {text}" for text in (() if space.limits is None else space.limits.texts)]
    return "\n".join([f"{many(len(domain), 'arm')} of", *lines] if isinstance(domain, Arms) else lines)


def _sparklines(study: Study, trials: Sequence[Trial]) -> list[tuple[str, object]]:
    """Returns the rewards, and the best so far, as lines of bars."""
    from ..study.terminal import console

    values, counted = _told(study, trials)
    if len(values) < 2 or study.policy.objective_count > 1:
        return []
    screen = console()
    width = max(8, min(SPARKS, screen.width - LABELS))
    first, second = sparkline(values, counted, study.goals[0], width=width, encoding=screen.encoding)
    return [("rewards" if study.goals[0] == "maximize" else "losses", first), ("best so far", second)]


def _model_facts(summary: dict[str, Any]) -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = []
    if summary["expected_gain"] is not None:
        gain = numeral(summary["expected_gain"], 2)
        found.append(("further gain", f"{gain} expected over the recommended trial"))
    if summary["importance"]:
        first = list(summary["importance"].items())[:MOST_NAMED]
        shares = ", ".join(f"{name} {total:.0%}" for name, total in first)
        found.append(("importance", f"{shares}, each with its interactions"))
    return found


def _at(trial: dict[str, Any] | None) -> str:
    """Returns number, place and reward of a trial in words."""
    if trial is None:
        return ""
    name, place = trial.get("arm_name"), figure(trial["parameters"] or trial["point"])
    named = f"{figure(name)}, arm {trial['arm']} ({place})" if name else place
    return f"trial {trial['number']} at {named}: {figure(trial['reward'])}"


def _told_text(summary: dict[str, Any]) -> str:
    """Returns the best value told, and of which trials it is."""
    return "; ".join(filter(None, (_at(summary["best_told"]), summary["best_told_of"] * bool(summary["best_told"]))))


def _best_facts(summary: dict[str, Any]) -> list[tuple[str, object]]:
    best = summary["best"]
    if best is None:
        return [("recommended", summary["why_no_best"])]
    found: list[tuple[str, object]] = [("recommended", _at(best))]
    if best["context"] is not None:
        found.append(("under", best["context"]))
    if best.get("metrics"):
        found.append(("metrics there", metrics_text(tuple(best["metrics"].items()))))
    if "mean" in best:
        bounds = f"{figure(best['lower'])} to {figure(best['upper'])}"
        text = f"{with_error(best['mean'], best['std'])}, bounds {bounds}"
        found.append(("believed", text + (f", width {figure(best['width'])}" if best["width"] is not None else "")))
    if "feasible" in best:
        said = f"keeps the budget if played every time, {percent(best['feasible'])} sure" * ("budgets" in summary)
        found.append(("feasible", said or percent(best["feasible"])))
    return found


def _milestones(progress: list[dict[str, Any]]) -> str:
    """Returns the last milestones, each with its number of rewards."""
    shown = progress[-MOST_MILESTONES:]
    text = ", ".join(f"{figure(each['best'])} after {each['answers']}" for each in shown)
    return f"{text} {counted(shown[-1]['answers'], 'answer')}" if shown else text


def _delays_text(delays: dict[str, Any]) -> str:
    silent = delays["set_at_deadline"]
    unanswered = f"none in time to {many(silent, 'trial')}" if silent else ""
    if not delays["answers"]:
        return unanswered
    text = f"after {figure(delays['median_seconds'])} s (median), {figure(delays['most_seconds'])} s at most"
    if delays["late"]:
        text += f"; {delays['late']} came after further questions, up to {delays['most_questions']}"
    if delays["too_late"]:
        text += f"; too late to count: {_numbered(delays['too_late'])}"
    if delays["of_abandoned"]:
        text += f"; abandoned before: {_numbered(delays['of_abandoned'])}"
    return text + (f"; {unanswered}" if unanswered else "")


def _numbered(trials: Sequence[int]) -> str:
    more = f" and {len(trials) - LISTED} more" if len(trials) > LISTED else ""
    return f"trial{'s' * (len(trials) > 1)} {figure(list(trials[:LISTED]))}{more}"
