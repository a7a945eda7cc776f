"""The commands that create, export, import, rename and delete studies."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .._utils.checks import many, url_of
from .._utils.files import check_place
from ..errors import InvalidInput
from .common import echo, hint, json_option, noted, opened_study, print_json, storage_at, study_command, suggestions

if TYPE_CHECKING:
    from ..study.study import Study


@study_command("Write the trials of a study to a file.")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), required=False)
def export(storage: str, study: str, file: Path | None) -> None:
    """Write all trials of STUDY to FILE: .csv, .jsonl (a JSON object for each trial), .parquet or .arrow.

    Without FILE as JSON lines on the terminal.
    """
    from ..study.export import FORMATS
    from ..study.trial_json import with_fits

    if file is not None:
        check_place("file", file, FORMATS)
    found = opened_study(storage, study)
    if file is None:
        for trial in found.trials:
            click.echo(json.dumps(with_fits(trial)))
        return
    try:
        found.export(file)
    except OSError as error:
        raise InvalidInput(f"{file} could not be written: {error.strerror}.") from error
    echo(f"Wrote {many(len(found.trials), 'trial')} to {file}.")


@study_command("Add the trials of a file, or of a study of Optuna.", name="import")
@click.argument("file", metavar="FILE")
@click.option("--optuna", metavar="NAME", help="FILE is the URL of a storage of Optuna: make STUDY of its study NAME.")
@click.option("--decimal", type=click.Choice([".", ","]), help="Decimal mark of a CSV file, if numbers do not show it.")
@json_option
@noted()  # such as of a column that was not read
def import_(storage: str, study: str, file: str, optuna: str | None, decimal: str | None, *, as_json: bool) -> None:
    """Record the rewards of FILE in STUDY, all or none: what `export` wrote, a table like it, or a log of decisions.

    A row with the number or the event of a trial of STUDY is the answer to it. Other rows are new trials. A table has a
    column for each parameter, and one named reward. Logs are those of Vowpal Wabbit, Personalizer and gittins.
    """
    if optuna is not None:
        made = _from_optuna(url_of(storage), study, file, optuna)
        click.get_current_context().call_on_close(made.close)
        count, answers, known, total = len(made.trials), 0, 0, len(made.trials)
    else:
        found = opened_study(storage, study)
        before, open_ = len(found.trials), {trial.number for trial in found.trials if trial.open}
        taken = found.add_from(file, decimal=decimal)
        numbers, total = {trial.number for trial in taken}, len(found.trials)
        count = sum(number >= before for number in numbers)
        answers = len(numbers & open_)
        known = len(taken) - count - answers
    if as_json:
        print_json({"name": study, "added": count, "answers": answers, "known": known, "trials": total})
    else:
        also = f", read {many(answers, 'answer')} to trials that were there" if answers else ""
        there = f", {known:,} {'was' if known == 1 else 'were'} there already" if known else ""
        echo(f"Added {many(count, 'trial')}{also}{there}; study {study!r} has {total}.")


def _from_optuna(storage: str, study: str, url: str, name: str) -> Study:
    """Returns a new study with the trials of a study of Optuna."""
    from ..errors import needs

    with needs("The import", "Optuna", "optuna"):
        import optuna

        from ..integrations.optuna_import import import_study
    from sqlalchemy.exc import SQLAlchemyError

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    url = url_of(url)
    path = url.removeprefix("sqlite:///")
    if path != url and not Path(path).exists():  # Optuna would create the file.
        raise InvalidInput(f"There is no file {path!r}.")
    of_optuna = (SQLAlchemyError, optuna.exceptions.OptunaError)
    unreadable = (KeyError, ValueError, RuntimeError, ImportError, OSError, *of_optuna)
    with ExitStack() as opened:
        try:
            place = optuna.storages.RDBStorage(url)
            opened.callback(place.engine.dispose)
            opened.callback(place.remove_session)
            theirs = optuna.load_study(study_name=name, storage=place)
        except unreadable as error:
            raise InvalidInput(f"The study {name!r} of Optuna in {url} could not be read: {error!r}.") from error
        return import_study(theirs, storage=storage, name=study)


@study_command("Give a study another name.")
@click.argument("new")
def rename(storage: str, study: str, new: str) -> None:
    """Give STUDY the name NEW. Programs that have it open go on under that name."""
    place = storage_at(storage)
    with suggestions(place, study):
        place.rename(study, new)
    echo(f"Study {study!r} is now {new!r}.")


@study_command("Remove a study and all its trials.")
@click.option("--yes", is_flag=True, help="Do not ask whether you are sure.")
def delete(storage: str, study: str, *, yes: bool) -> None:
    """Remove STUDY and all its trials from STORAGE, for good. Whoever has it open is told at the next call."""
    place = storage_at(storage)
    if not yes and place.find(study) is not None:
        click.confirm(f"Remove study {study!r} and all its trials from {storage}, for good?", abort=True, err=True)
    with suggestions(place, study):
        place.delete(study)
    echo(f"Study {study!r} has been removed.")


@study_command("Make a study from a file.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--goal", help='"maximize" or "minimize", instead of the file\'s; of several objectives one for each.')
@click.option("--seed", type=click.IntRange(min=0), help="Of all random choices, instead of the file's.")
@json_option
def create(storage: str, study: str, file: Path, goal: str | None, seed: int | None, *, as_json: bool) -> None:
    """Make STUDY in STORAGE as FILE describes it. If STUDY exists already, check that it is the same.

    FILE is TOML, like that of `nilregret tune` without its objective, or the JSON of a policy.
    """
    from ..study.study import Study
    from ..tuning.toml.study_file import load
    from .overview import goal_in_words, objectives_json

    described = load(file)
    given: Any = goal if goal is None or "," not in goal else [each.strip() for each in goal.split(",")]
    made = Study(
        described.policy, goal=described.goal if goal is None else given,
        seed=described.seed if seed is None else seed, storage=url_of(storage), name=study,
    )  # fmt: skip
    click.get_current_context().call_on_close(made.close)
    said = {"name": made.name, "algorithm": made.policy.algorithm, "goal": made.goal, "seed": made.seed}
    said["trials"] = len(made.trials)
    if as_json:
        print_json(said)
    else:
        trials = many(len(made.trials), "trial")
        words = goal_in_words(objectives_json(made))
        echo(f"Study {made.name!r} in {storage}: {made.policy.algorithm}, goal: {words}, {trials}.")
        hint("ask", storage, made.name)
