"""What the commands share: arguments, the study that is meant, and how things are printed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from .._utils.errors import InvalidInput

if TYPE_CHECKING:
    from ..storage import SqlStorage
    from ..storage.record import Trial
    from ..study.study import Study

SEVERAL = {"ignore_unknown_options": True}  # a reward may begin with a minus

storage_argument = click.argument("storage")
study_argument = click.argument("study", required=False)
named_argument = click.argument("study")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


def say(text: str) -> None:
    """Print what may come from anywhere: characters that a terminal would obey are shown and not sent."""
    from ..study.formatting import printable

    click.echo(printable(text))


def print_json(value: Any) -> None:
    """Print a value for programs."""
    from ..study.formatting import as_json

    click.echo(as_json(value))


def url_of(storage: str) -> str:
    """The URL of a storage, which may be given as the path of an SQLite file."""
    return storage if "://" in storage or storage.startswith("sqlite:") else f"sqlite:///{storage}"


def storage_at(storage: str, *, make: bool = False) -> SqlStorage:
    """The storage of this URL or path; let go of when the command is over."""
    from ..storage import SqlStorage

    place = SqlStorage(url_of(storage), make=make, private=True)
    click.get_current_context().call_on_close(place.close)
    return place


def opened_study(storage: str, name: str | None) -> Study:
    """The study of this name, or the only one; it keeps its warnings to itself (`show` has them)."""
    from ..study.study import Study

    place = storage_at(storage)
    if name is None:
        names = place.names()
        if len(names) != 1:
            listed = ", ".join(map(repr, names)) or "none"
            raise InvalidInput(f"{storage} has {len(names)} studies: say which one. There is: {listed}.")
        (name,) = names
    study = Study.open(storage=place, name=name)
    study.quiet = True
    return study


def from_json(option: str, text: str | None) -> Any:
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


def say_of(trial: Trial, *, as_json: bool, text: str) -> None:
    """Print a trial for programs, or a text for people."""
    from ..study.trial_json import with_history

    if as_json:
        print_json(with_history(trial))
    else:
        say(text)
