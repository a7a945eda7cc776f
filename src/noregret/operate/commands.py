"""The commands for people who operate studies, and for programs that drive them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import InvalidInput
from .refusals import in_sentences

if TYPE_CHECKING:
    from ..record import Trial
    from ..storage import SqlStorage
    from ..study.study import Study

SEVERAL = {"ignore_unknown_options": True}  # a reward may begin with a minus

storage_argument = click.argument("storage")
study_argument = click.argument("study", required=False)
named_argument = click.argument("study")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


def say(text: str) -> None:
    """Print what may come from anywhere: characters that a terminal would obey are shown and not sent."""
    from .words import printable

    click.echo(printable(text))


def _print(value: Any) -> None:
    from .words import as_json

    click.echo(as_json(value))


def url_of(storage: str) -> str:
    """The URL of a storage, which may be given as the path of an SQLite file."""
    return storage if "://" in storage or storage.startswith("sqlite:") else f"sqlite:///{storage}"


def _storage(storage: str) -> SqlStorage:
    """Of this URL or path; let go of when the command is over."""
    from ..storage import SqlStorage

    place = SqlStorage(url_of(storage), make=False)
    click.get_current_context().call_on_close(place.close)
    return place


def opened_study(storage: str, name: str | None) -> Study:
    """The study of this name, or the only one; it keeps its warnings to itself (`show` has them)."""
    from ..study.study import Study

    place = _storage(storage)
    if name is None:
        names = place.names()
        if len(names) != 1:
            listed = ", ".join(map(repr, names)) or "none"
            raise InvalidInput(f"{storage} has {len(names)} studies: say which one. There is: {listed}.")
        (name,) = names
    study = Study.open(storage=place, name=name)
    study.quiet = True
    return study


def _given(option: str, text: str | None) -> Any:
    """The value of an option that is JSON."""
    if text is None:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            f"`{option}` is {text[:60]!r}, which is no JSON: {error}. Write a list of numbers such as '[0.5, 2]', or "
            """an object of parameters such as '{"day": 3}'; in a shell in single quotes."""
        ) from error


def _one(trial: Trial, *, as_json: bool, text: str) -> None:
    from .words import of_trial

    if as_json:
        _print(of_trial(trial))
    else:
        say(text)


@click.command(short_help="List the studies of a storage.")
@storage_argument
@json_option
@in_sentences
def studies(storage: str, *, as_json: bool) -> None:
    """List the studies in STORAGE: a URL such as sqlite:///studies.db, or the path of an SQLite file."""
    from ..study.study import Study
    from .words import moment, table

    found: list[dict[str, Any]] = []
    place = _storage(storage)
    for name in place.names():
        study = Study.open(storage=place, name=name)
        trials = study.trials
        last = max((trial.told_at or trial.asked_at for trial in trials), default=None)
        states = [trial.state for trial in trials]
        found.append({
            "name": name, "algorithm": study.policy.algorithm, "goal": study.goal, "seed": study.seed,
            "trials": len(trials), "observed": states.count("observed"), "pending": states.count("pending"),
            "failed": states.count("failed"), "abandoned": states.count("abandoned"), "last_event_at": last,
        })  # fmt: skip
    if as_json:
        _print(found)
    elif found:
        shown = [[*list(each.values())[:-1], moment(each["last_event_at"])] for each in found]
        headings = [
            "study",
            "policy",
            "goal",
            "seed",
            "trials",
            "observed",
            "pending",
            "failed",
            "abandoned",
            "last event (UTC)",
        ]
        say(table(shown, headings))
    else:
        say(f"{storage} has no studies.")


@click.command(short_help="Say where a study stands, and draw it.")
@storage_argument
@study_argument
@click.option(
    "--picture", type=click.Path(path_type=Path, dir_okay=False), help="Save a picture too: a PNG, PDF or SVG file."
)
@json_option
@in_sentences
def show(storage: str, study: str | None, picture: Path | None, *, as_json: bool) -> None:
    """Say where STUDY stands: progress, the best point and the bounds there, restarts, multipliers, what is waited for.

    Looking changes nothing, and may be done while others work. STUDY may be left out where there is one only.
    """
    from ..tuning.config import check_picture
    from .overview import in_words, overview

    if picture is not None:
        check_picture(picture)
    found = opened_study(storage, study)
    said = overview(found)
    if as_json:
        _print(said)
    else:
        say(in_words(said, [trial for trial in found.trials if trial.state == "pending"]))
    if picture is not None:
        _draw(found, picture)
        click.echo(f"Picture: {picture}", err=as_json)


def _draw(study: Study, picture: Path) -> None:
    from .. import plots
    from ..errors import TrialError

    if all(trial.reward is None for trial in study.trials):
        raise TrialError("No trial has been answered yet, so there is nothing to draw.")
    try:
        plots.tuning(study, picture)
    except OSError as error:
        raise InvalidInput(f"The picture could not be written to {picture}: {error}.") from error


@click.command(short_help="List the trials of a study.")
@storage_argument
@study_argument
@click.option(
    "--state", type=click.Choice(["pending", "observed", "failed", "abandoned"]), help="Only those in this state."
)
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="Only the last N of them.")
@json_option
@in_sentences
def trials(storage: str, study: str | None, state: str | None, last: int | None, *, as_json: bool) -> None:
    """List the trials of STUDY, by number."""
    from .words import context_of, moment, of_trial, table, where

    found = opened_study(storage, study)
    wanted = [trial for trial in found.trials if state in (None, trial.state)][-(last or 0) :]
    if as_json:
        _print([of_trial(trial) for trial in wanted])
    elif wanted:
        rows = [
            [
                trial.number, trial.state, where(trial), context_of(trial),
                trial.times if trial.repeats > 1 else None, trial.reward,
                None if trial.constraints is None else trial.constraints.tolist(), of_trial(trial)["reason"],
                moment(trial.asked_at), moment(trial.told_at),
            ]
            for trial in wanted
        ]  # fmt: skip
        value = "reward" if found.goal == "maximize" else "loss"
        headings = [
            "trial",
            "state",
            "at",
            "context",
            "plays",
            value,
            "constraints",
            "reason",
            "asked (UTC)",
            "told (UTC)",
        ]
        say(table(rows, headings))
    else:
        say("There are no such trials." if len(found.trials) else "There are no trials yet.")


@click.command(short_help="Say why trials were chosen.")
@storage_argument
@named_argument
@click.argument("numbers", nargs=-1, type=int, required=True, metavar="NUMBER...")
@click.option("--among", metavar="JSON", help="What was passed to `ask` then.")
@click.option("--exclude", metavar="JSON", help="Likewise.")
@click.option("--draws", type=click.IntRange(min=0), help="From which a propensity is estimated; 0 for none.")
@json_option
@in_sentences
def explain(
    storage: str, study: str, numbers: Sequence[int], among: str | None, exclude: str | None, draws: int | None, *,
    as_json: bool,
) -> None:  # fmt: skip
    """Say why the trials NUMBER... of STUDY were chosen, recomputed from the record of what had happened before."""
    from ..study.explain import DRAWS

    found = opened_study(storage, study)
    said = [
        found.explain(
            number, among=_given("--among", among), exclude=_given("--exclude", exclude),
            draws=DRAWS if draws is None else draws,
        )
        for number in numbers
    ]  # fmt: skip
    if as_json:
        _print([each.to_dict() for each in said] if len(said) > 1 else said[0].to_dict())
    else:
        say("\n\n\n".join(map(str, said)))


@click.command(short_help="Ask for the next trial.")
@storage_argument
@study_argument
@click.option("--count", type=click.IntRange(min=1), help="Ask for several at once; with --json a list.")
@click.option("--context", metavar="JSON", help="What is known before, such as '[0.5]' or '{\"day\": 3}'.")
@click.option("--among", metavar="JSON", help="What may be played this time: numbers of arms, points or parameters.")
@click.option("--exclude", metavar="JSON", help="Arms that may not be.")
@click.option("--lease", type=float, metavar="SECONDS", help="After which the trial is abandoned, if no answer came.")
@json_option
@in_sentences
def ask(
    storage: str, study: str | None, count: int | None, context: str | None, among: str | None, exclude: str | None,
    lease: float | None, *, as_json: bool,
) -> None:  # fmt: skip
    """Ask STUDY for the next trial, which is recorded as pending before you see it.

    Then tell what came of it: noregret tell STORAGE STUDY NUMBER REWARD.
    """
    from .words import of_trial, where

    found = opened_study(storage, study)
    known = {"context": _given("--context", context)} if context is not None else {}
    asked = found.ask(
        **known, count=count or 1, among=_given("--among", among), exclude=_given("--exclude", exclude), lease=lease
    )
    if as_json:
        _print([of_trial(trial) for trial in asked] if count is not None else of_trial(asked[0]))
    else:
        say("\n".join(f"trial {trial.number}: {where(trial)}" for trial in asked))


@click.command(short_help="Tell what came of a trial.", context_settings=SEVERAL)
@storage_argument
@named_argument
@click.argument("number", type=int)
@click.argument("reward", type=float, required=False)
@click.option("--constraint", "constraints", type=float, multiple=True, metavar="G", help="A constraint value; repeat.")
@click.option("--plays", type=int, metavar="N", help="How many plays REWARD is the average of.")
@click.option("--scatter", type=float, metavar="S", help="Sum of squared deviations of their rewards from it.")
@click.option("--revise", is_flag=True, help="Correct an answer; the one before is kept.")
@json_option
@in_sentences
def tell(
    storage: str, study: str, number: int, reward: float | None, constraints: Sequence[float], plays: int | None,
    scatter: float | None, *, revise: bool, as_json: bool,
) -> None:  # fmt: skip
    """Tell the REWARD of trial NUMBER of STUDY: the loss, where it minimises.

    Constraint values, satisfied when <= 0, go with it, or by themselves where the reward is not known yet. Of a trial
    that is to be played several times REWARD is the average, with --plays and --scatter. To tell the same again changes
    nothing.
    """
    if reward is None and not constraints:
        raise click.UsageError("Tell a REWARD, or --constraint values, or both.")
    if (plays is None) != (scatter is None) or (plays is not None and reward is None):
        raise click.UsageError("Tell --plays and --scatter together, with the average REWARD.")
    from ..study.rewards import Rewards

    told: float | Rewards | None = reward
    found = opened_study(storage, study)
    if plays is not None and scatter is not None and reward is not None:
        told = Rewards(count=plays, sum=0.0, squares=scatter, about=reward)
    trial = found.tell(number, told, constraints=list(constraints) or None, revise=revise)
    _one(trial, as_json=as_json, text=f"Recorded: {trial!r}")


@click.command(short_help="Tell that a trial will never have a reward.")
@storage_argument
@named_argument
@click.argument("number", type=int)
@click.argument("reason")
@click.option("--revise", is_flag=True, help="Take back an answer; it is kept.")
@json_option
@in_sentences
def fail(storage: str, study: str, number: int, reason: str, *, revise: bool, as_json: bool) -> None:
    """Tell that trial NUMBER of STUDY failed, and why, in words."""
    trial = opened_study(storage, study).fail(number, reason, revise=revise)
    _one(trial, as_json=as_json, text=f"Recorded: {trial!r}")


@click.command(short_help="Tell that nobody works on a trial any more.")
@storage_argument
@named_argument
@click.argument("number", type=int)
@click.argument("reason")
@json_option
@in_sentences
def abandon(storage: str, study: str, number: int, reason: str, *, as_json: bool) -> None:
    """Tell that nobody works on trial NUMBER of STUDY any more, and why, in words.

    It no longer counts as pending, and says nothing of its point. Its answer is taken all the same if it comes.
    """
    trial = opened_study(storage, study).abandon(number, reason)
    _one(trial, as_json=as_json, text=f"Recorded: {trial!r}")


@click.command(short_help="Write the trials of a study to a file.")
@storage_argument
@named_argument
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), required=False)
@in_sentences
def export(storage: str, study: str, file: Path | None) -> None:
    """Write all trials of STUDY to FILE: .csv, .jsonl (a JSON object for each trial), .parquet or .arrow.

    Without FILE as JSON lines on the terminal.
    """
    from ..study.export import record_of

    found = opened_study(storage, study)
    if file is None:
        for trial in found.trials:
            click.echo(json.dumps(record_of(trial)))
        return
    try:
        found.export(file)
    except OSError as error:
        raise InvalidInput(f"{file} could not be written: {error.strerror}.") from error
    say(f"{len(found.trials)} trials are in {file}.")


@click.command("import", short_help="Add the trials of a file, or of a study of Optuna.")
@storage_argument
@named_argument
@click.argument("file", metavar="FILE")
@click.option("--optuna", metavar="NAME", help="FILE is the URL of a storage of Optuna: make STUDY of its study NAME.")
@json_option
@in_sentences
def import_(storage: str, study: str, file: str, optuna: str | None, *, as_json: bool) -> None:
    """Add the trials with a reward of FILE to STUDY, all or none: what `export` wrote, or a table like it.

    A table has a column for each parameter, and one named reward.
    """
    if optuna is not None:
        made = _from_optuna(url_of(storage), study, file, optuna)
        click.get_current_context().call_on_close(made.close)
        count, total = len(made.trials), len(made.trials)
    else:
        found = opened_study(storage, study)
        try:
            count = len(found.add_from(file))
        except OSError as error:
            raise InvalidInput(f"{file} cannot be read: {error.strerror}.") from error
        except UnicodeDecodeError as error:
            raise InvalidInput(f"{file} cannot be read: {error}.") from error
        total = len(found.trials)
    if as_json:
        _print({"name": study, "added": count, "trials": total})
    else:
        say(f"{count} trials were added; study {study!r} has {total}.")


def _from_optuna(storage: str, study: str, url: str, name: str) -> Study:
    """A new study, of what Optuna's has."""
    from ..errors import MissingExtra

    try:
        import optuna

        from ..integrations.importing import import_study
    except ImportError as error:
        raise MissingExtra("Optuna is not installed: pip install 'noregret[optuna]'.") from error
    from sqlalchemy.exc import SQLAlchemyError

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    path = url.removeprefix("sqlite:///")
    if path != url and not Path(path).exists():  # Optuna would make it
        raise InvalidInput(f"There is no file {path!r}.")
    of_optuna = (SQLAlchemyError, optuna.exceptions.OptunaError)
    unreadable = (KeyError, ValueError, RuntimeError, ImportError, OSError, *of_optuna)
    try:
        theirs = optuna.load_study(study_name=name, storage=url)
    except unreadable as error:
        raise InvalidInput(f"The study {name!r} of Optuna in {url} could not be read: {error!r}.") from error
    return import_study(theirs, storage=storage, name=study)


@click.command(short_help="Give a study another name.")
@storage_argument
@named_argument
@click.argument("new")
@in_sentences
def rename(storage: str, study: str, new: str) -> None:
    """Give STUDY the name NEW; whoever has it open goes on under that name."""
    _storage(storage).rename(study, new)
    say(f"Study {study!r} is now {new!r}.")


@click.command(short_help="Remove a study and all its trials.")
@storage_argument
@named_argument
@click.option("--yes", is_flag=True, help="Do not ask whether you are sure.")
@in_sentences
def delete(storage: str, study: str, *, yes: bool) -> None:
    """Remove STUDY and all its trials from STORAGE, for good. Whoever has it open is told at the next call."""
    place = _storage(storage)
    if not yes and place.find(study) is not None:
        click.confirm(f"Remove study {study!r} and all its trials from {storage}, for good?", abort=True, err=True)
    place.delete(study)
    say(f"Study {study!r} has been removed.")


@click.command(short_help="Make a study from a file.")
@storage_argument
@named_argument
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--goal", help='"maximize" or "minimize", instead of the file\'s.')
@click.option("--seed", type=click.IntRange(min=0), help="Of all random choices, instead of the file's.")
@json_option
@in_sentences
def create(storage: str, study: str, file: Path, goal: str | None, seed: int | None, *, as_json: bool) -> None:
    """Make STUDY in STORAGE as FILE describes it; where it is there already, check that it is the same.

    FILE is TOML, like that of `noregret tune` without its objective, or the JSON of a policy.
    """
    from ..study.goal import check_goal
    from ..study.study import Study
    from ..tuning.studies import load

    described = load(file)
    made = Study(
        described.policy, goal=described.goal if goal is None else check_goal(goal),
        seed=described.seed if seed is None else seed, storage=url_of(storage), name=study,
    )  # fmt: skip
    click.get_current_context().call_on_close(made.close)
    said = {"name": made.name, "algorithm": made.policy.algorithm, "goal": made.goal, "seed": made.seed}
    said["trials"] = len(made.trials)
    if as_json:
        _print(said)
    else:
        say(f"Study {made.name!r} in {storage}: {made.policy.algorithm}, goal: {made.goal}, {said['trials']} trials.")


COMMANDS: list[click.Command] = [
    studies,
    show,
    trials,
    explain,
    create,
    ask,
    tell,
    fail,
    abandon,
    export,
    import_,
    rename,
    delete,
]
