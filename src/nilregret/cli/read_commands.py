"""The commands that read studies and change nothing."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .._utils.checks import LONGEST_NAME, many
from .._utils.files import check_picture
from ..errors import InvalidInput
from . import common

if TYPE_CHECKING:
    from ..storage import StoredStudy
    from ..study.study import Study


@common.study_command("List the studies of a storage.", study="none")
@click.option("--check", is_flag=True, help="Open each study, which checks its whole record.")
@common.wide_option
@common.json_option
def studies(storage: str, *, check: bool, wide: bool, as_json: bool) -> None:
    """List the studies in STORAGE: a URL such as sqlite:///studies.db, or the path of an SQLite file.

    The best answer is of all trials on record that violate no constraint, also before a restart.
    """
    from ..study.formatting import moment
    from ..study.terminal import show, table
    from .overview import goal_in_words

    place = common.storage_at(storage)
    checked = place.names() if check else []
    for name in checked:
        for _ in common.opened_study(storage, name).trials:  # Trials of a long study are checked when they are read.
            pass
    found: list[dict[str, Any]] = [
        {
            "name": study.name, "algorithm": _algorithm_of(study.policy), "goal": study.goal, "seed": study.seed,
            "trials": known.trials, "observed": known.observed, "pending": known.pending, "failed": known.failed,
            "abandoned": known.abandoned, **({"stopped": known.stopped} if known.stopped else {}), "best": known.best,
            "last_event_at": known.last_at, **_of_several(study),
        }
        for study, known in place.summaries()
    ]  # fmt: skip
    ended = ["failed", "abandoned", *["stopped"] * any("stopped" in each for each in found)]
    if as_json:
        common.print_json(found)
    elif found:
        counts = ["seed", "trials", "observed", "pending", *ended]
        shown = [
            [
                *(each[name] for name in ("name", "algorithm")), goal_in_words(each.get("objectives", (each,))),
                *(each.get(name, 0) for name in counts), each["best"], moment(each["last_event_at"]),
            ]
            for each in found
        ]  # fmt: skip
        headings = ["study", "policy", "goal", *counts, "best answer", "last event (UTC)"]
        least = ["seed", "goal", "policy", "last event (UTC)", *ended[::-1], "pending", "observed"]
        show(table(shown, headings, dispensable=least, first=LONGEST_NAME, wide=wide), wide=wide)
        if checked:
            common.echo(f"Checked the whole record of {many(len(checked), 'study')}: no fault was found.")
        common.hint("show", storage, found[-1]["name"])
    else:
        common.echo(f"{storage} has no studies.")


def _of_several(study: StoredStudy) -> dict[str, Any]:
    """Returns what is listed of a study with several objectives, of which no told value is the best."""
    from ..study.definition import objectives_of

    objectives = [{"name": name, "goal": goal} for name, goal in objectives_of(study).items()]
    goals = [each["goal"] for each in objectives]
    return {"goal": goals, "best": None, "objectives": objectives} if objectives else {}


def _algorithm_of(policy: str) -> str:
    """Returns the name of the algorithm of a policy in JSON, which is loaded only if it is a script."""
    from ..serialize import loads, plain_loads

    named = plain_loads(policy).get("algorithm")
    return str(loads(policy).algorithm if named is None else named)


@common.study_command("Say where a study stands, and draw it.", study="optional")
@click.option(
    "--picture", type=click.Path(path_type=Path, dir_okay=False), help="Save a picture too: a PNG, PDF or SVG file."
)
@common.json_option
def show(storage: str, study: str | None, picture: Path | None, *, as_json: bool) -> None:
    """Say where STUDY stands: progress, the best point and the bounds there, restarts, multipliers, what is waited for.

    Looking changes nothing, and may be done while others work. STUDY may be left out where there is one only.
    Importance takes seconds. It is left out for more than 6 columns or 500 answers: `--picture` shows it.
    """
    from ..study import terminal
    from .overview import overview, overview_parts

    check_picture(picture)
    found = common.opened_study(storage, study)
    said = overview(found)
    if as_json:
        common.print_json(said)
    else:
        terminal.show(*overview_parts(said, found))
    if picture is not None:
        _draw(found, picture)
        click.echo(f"Picture: {picture}", err=as_json)
    if not as_json:
        _hint_after_show(storage, found, said)


def _hint_after_show(storage: str, study: Study, said: dict[str, Any]) -> None:
    """Prints the command to go on with: to answer what is pending, to see why, or to ask."""
    if said["pending"]:
        common.hint("tell", storage, study.name, said["pending"][0]["number"], common.to_fill_in(study))
    elif said["best"] is not None:
        common.hint("explain", storage, study.name, said["best"]["number"])
    else:
        common.hint("ask", storage, study.name)


@common.study_command("List the trials that no other beats, of several objectives.", study="optional")
@click.option("--weights", metavar="VALUES", help="Name the trial to take: 2,1 or loss=2,recall=1.")
@click.option("--reference", metavar="VALUES", help="The worst values that count in the hypervolume.")
@common.wide_option
@common.json_option
def front(
    storage: str, study: str | None, weights: str | None, reference: str | None, *, wide: bool, as_json: bool
) -> None:
    """List the trials of STUDY that no other beats in the posterior means: the best of each objective first.

    With --weights one of them is recommended: that with the least weighted shortfall to the best of each objective.
    """
    from ..study.terminal import facts, show
    from .overview import front_facts, front_json, front_table

    found = common.opened_study(storage, study)
    said = front_json(found, common.told_values(found, "reference", reference))
    said["recommended"] = weights and found.best(weights=common.told_values(found, "weights", weights)).number
    if as_json:
        common.print_json(said)
        return
    if said["trials"]:
        show(front_table(said, wide=wide), "", wide=wide)
    show(facts(front_facts(said)), wide=wide)
    if said["trials"] and weights is None:
        common.hint(
            "front", storage, found.name, "--weights", ",".join(f"{name}=1" for name in found.policy.objective_names)
        )


def _draw(study: Study, picture: Path) -> None:
    from .. import plots
    from ..errors import TrialError

    if all(trial.reward is None for trial in study.trials):
        raise TrialError("No trial has been answered yet, so there is nothing to draw.")
    try:
        plots.overview(study, picture)
    except OSError as error:
        raise InvalidInput(f"The picture could not be written to {picture}: {error}.") from error


@common.study_command("List the trials of a study.", study="optional")
@click.option(
    "--state", type=click.Choice(["pending", "observed", "failed", "abandoned", "stopped"]),
    help="Only those in this state.",
)  # fmt: skip
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="Only the last N of them.")
@common.wide_option
@common.json_option
def trials(storage: str, study: str | None, state: str | None, last: int | None, *, wide: bool, as_json: bool) -> None:
    """List the trials of STUDY, by number.

    A terminal has a column with "best" for the best told, and "better" for each that improved on all before it.
    """
    from ..study.formatting import metrics_text, moment, where
    from ..study.terminal import is_terminal, show, table
    from ..study.trial_json import context_json, with_history
    from .overview import last_report, marks, stds, value_names

    found = common.opened_study(storage, study)
    wanted = [trial for trial in found.trials if state in (None, trial.state)][-(last or 0) :]
    names, marked = found.replica.roster.names, marks(found) if is_terminal() else {}
    if as_json:
        common.print_json([with_history(trial) | found.replica.roster.columns(trial) for trial in wanted])
    elif wanted:
        facts, curves = any(trial.measured for trial in wanted), any(trial.curve for trial in wanted)
        values = value_names(found)
        rows = [
            [
                trial.number, trial.state, marked.get(trial.number), where(trial),
                None if trial.arm is None else names.get(trial.arm), context_json(trial),
                trial.times if trial.repeats > 1 else None, *(trial.values or [None] * len(values)), stds(trial),
                None if trial.constraints is None else trial.constraints.tolist(),
                *[metrics_text(trial.measured)] * facts, *[last_report(trial)] * curves, with_history(trial)["reason"],
                moment(trial.asked_at), moment(trial.told_at), trial.propensity,
            ]
            for trial in wanted
        ]  # fmt: skip
        headings = [
            "trial", "state", "so far", "at", "arm", "context", "plays", *values, "std", "constraints",
            *["metrics"] * facts, *["last step"] * curves, "reason", "asked (UTC)", "told (UTC)", "propensity",
        ]  # fmt: skip
        if not marked:
            rows, headings = [[*row[:2], *row[3:]] for row in rows], [*headings[:2], *headings[3:]]
        states = [marked.get(trial.number, trial.state) for trial in wanted]
        # Constraints of texts such as "latency <= 50" are of metrics, which people read more easily.
        outcomes = sorted(("constraints", "metrics"), reverse="constraints" not in found.about)
        least = [
            "propensity", "asked (UTC)", "told (UTC)", "so far", "plays", "std", "arm", *outcomes, "context",
            "last step", *["reason"] * (state is None),
        ]  # fmt: skip
        show(table(rows, headings, states=states, dispensable=least, wide=wide), wide=wide)
    else:
        common.echo("There are no such trials." if len(found.trials) else "There are no trials yet.")


@common.study_command("Say why trials were chosen.")
@click.argument("numbers", nargs=-1, type=int, required=True, metavar="NUMBER...")
@click.option("--among", metavar="JSON", help="What was passed to `ask` then.")
@click.option("--exclude", metavar="JSON", help="Likewise.")
@click.option("--draws", type=click.IntRange(min=0), help="From which a propensity is estimated; 0 for none.")
@common.json_option
def explain(
    storage: str, study: str, numbers: Sequence[int], among: str | None, exclude: str | None, draws: int | None, *,
    as_json: bool,
) -> None:  # fmt: skip
    """Say why the trials NUMBER... of STUDY were chosen, recomputed from the record of what had happened before."""
    from ..study.inputs import DRAWS
    from ..study.terminal import show

    found = common.opened_study(storage, study)
    said = [
        found.explain(
            number, among=common.from_json("--among", among), exclude=common.from_json("--exclude", exclude),
            draws=DRAWS if draws is None else draws,
        )
        for number in numbers
    ]  # fmt: skip
    if as_json:
        common.print_json([each.to_dict() for each in said] if len(said) > 1 else said[0].to_dict())
    else:
        for i, each in enumerate(said):
            show(*["\n"] * (i > 0), each)


DATABASE = (b"SQLite format 3\0", 16)


@click.command("evaluate", short_help="Say what another policy would have earned on a log.")
@click.argument("log")
@click.argument("study", required=False)
@click.option(
    "--policy", required=True, metavar="POLICY",
    help='"uniform", "best" of a study, an action, JSON of probabilities such as \'{"a": 0.9, "b": 0.1}\', or a file: '
    "choices or probabilities, a line for each decision (.csv), or a policy (.json).",
)  # fmt: skip
@click.option(
    "--estimator", type=click.Choice(["snips", "dr", "ips", "switch", "model"]), default="snips", show_default=True
)
@click.option("--delta", type=float, default=0.05, show_default=True, help="How often the interval may miss.")
@click.option("--reward-range", type=(float, float), default=(0.0, 1.0), show_default=True, metavar="LOW HIGH")
@click.option("--floor", type=float, help="The lowest probability that an action can have by design.")
@click.option("--default-reward", type=float, help="What stands in for a reward that did not come.")
@click.option("--reward", metavar="COLUMN", help="Another column in place of the reward, such as metrics.purchase.")
@click.option("--action", "actions", multiple=True, help="An action that there is; repeat for all, in order.")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Of a policy that learns.")
@click.option("--picture", type=click.Path(path_type=Path, dir_okay=False), help="Save a picture too.")
@common.json_option
@common.with_error_sentences
def evaluate(
    log: str,
    study: str | None,
    policy: str,
    actions: Sequence[str],
    picture: Path | None,
    *,
    as_json: bool,
    **given: Any,
) -> None:
    """Say what another policy would have earned on LOG: a file of decisions, or a storage with STUDY.

    LOG is a CSV table or JSON lines with the columns context, action, propensity and reward. Or a file of Vowpal
    Wabbit, Azure Personalizer or gittins. Or the URL or SQLite file of a storage, where STUDY names the study if there
    are several.
    """
    from ..errors import NoRegretWarning
    from ..evaluation import evaluate as evaluated

    check_picture(picture)
    found: Any = log
    if study is not None or _is_storage(log):
        found = common.opened_study(log, study)
    named = [_value(action) for action in actions] or None
    with warnings.catch_warnings():  # The cautions are printed.
        warnings.simplefilter("ignore", NoRegretWarning)
        result = evaluated(found, _policy(policy), actions=named, **given)
    if as_json:
        common.print_json(result.to_dict())
    else:
        common.echo(str(result))
    if picture is not None:
        try:
            result.plot(picture)
        except (OSError, ValueError) as error:
            raise InvalidInput(f"The picture could not be written to {picture}: {error}.") from error
        click.echo(f"Picture: {picture}", err=as_json)


def _is_storage(log: str) -> bool:
    """Returns whether the log is a storage: a URL, or a file that SQLite made."""
    if "://" in log or log.startswith("sqlite:"):
        return True
    magic, length = DATABASE
    try:
        with Path(log).open("rb") as file:
            return file.read(length) == magic
    except OSError:
        return False


def _policy(text: str) -> Any:
    """Returns a policy in words, or that of a file: JSON, or choices or probabilities, a line for each decision."""
    from .._utils.files import text_of
    from .._utils.tables import csv_rows
    from ..policy.policy import Policy

    ending = Path(text).suffix.lower()
    if ending == ".json":
        return Policy.from_json(text_of(text))
    if ending != ".csv":
        return _value(text)
    rows = [[_value(cell) for cell in row] for row in csv_rows(text_of(text), text)]
    return [row[0] for row in rows] if all(len(row) == 1 for row in rows) else rows


def _value(text: str) -> Any:
    """Returns JSON as its value, and other text as it is."""
    import json

    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
