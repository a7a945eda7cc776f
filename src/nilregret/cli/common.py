"""Shared parts of the commands: arguments, opening of studies, and printing."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import click
from click.shell_completion import CompletionItem

from .._utils.checks import url_of
from .._utils.public import nearest
from ..errors import InvalidInput, NoRegretError
from .errors import with_error_sentences

if TYPE_CHECKING:
    from ..storage import SqlStorage
    from ..storage.record import Trial
    from ..study.study import Study

NEGATIVE_NUMBERS = {"ignore_unknown_options": True}  # lets a reward begin with a minus

context_option = click.option(
    "--context", metavar="JSON", help="What is known before, such as '[0.5]' or '{\"day\": 3}'."
)
constraint_option = click.option(
    "--constraint", "constraints", type=float, multiple=True, metavar="G", help="A constraint value; repeat."
)


def _metrics(_: click.Context, option: click.Parameter, said: tuple[str, ...]) -> dict[str, float] | None:
    """Returns numbers by name from texts such as "accuracy=0.93"."""
    found = dict[str, float]()
    for text in said:
        name, _equals, value = text.rpartition("=")
        try:
            found[name] = float(value)
        except ValueError:
            raise click.BadParameter(f"{text!r} is not NAME=NUMBER, such as accuracy=0.93.", param=option) from None
        if not name:
            raise click.BadParameter(f"{text!r} has no name: write NAME=NUMBER, such as accuracy=0.93.", param=option)
    return found or None


metric_option = click.option(
    "--metric", "metrics", multiple=True, metavar="NAME=NUMBER", callback=_metrics,
    help="A further number to keep; repeat.",
)  # fmt: skip
plays_option = click.option(
    "--plays", type=click.IntRange(min=1), metavar="N", help="How many plays REWARD is the average of."
)
scatter_option = click.option(
    "--scatter", type=click.FloatRange(min=0.0), metavar="S", help="Sum of squared deviations of their rewards from it."
)
std_option = click.option(
    "--std", type=float, metavar="S", help="Standard deviation of the noise of REWARD, in its units, where it is known."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
wide_option = click.option("--wide", is_flag=True, help="Show all columns, also empty ones.")


def study_command(
    short_help: str, *, name: str | None = None, study: Literal["required", "optional", "none"] = "required",
    negative_numbers: bool = False,
) -> Callable[[Callable[..., None]], click.Command]:  # fmt: skip
    """Returns a decorator for a command with the arguments STORAGE and STUDY, whose errors are sentences.

    Args:
        short_help: line in the list of commands.
        name: name of the command. The default is the name of the function.
        study: "optional" if STUDY may be left out, "none" for commands without STUDY.
        negative_numbers: True if arguments may begin with a minus.
    """

    def decorate(function: Callable[..., None]) -> click.Command:
        command = with_error_sentences(function)
        if study != "none":
            required = study == "required"
            command = click.argument("study", required=required, shell_complete=complete_study)(command)
        settings = NEGATIVE_NUMBERS if negative_numbers else None
        make = click.command(name, short_help=short_help, context_settings=settings)
        return make(click.argument("storage")(command))

    return decorate


def complete_study(context: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem]:
    """Returns the names of the studies in the storage that the command line names."""
    storage = context.params.get("storage")
    if not storage:
        return []
    try:
        with context:
            names = storage_at(storage).names()
    except NoRegretError:  # There is nothing to offer.
        return []
    return [CompletionItem(name) for name in names if name.startswith(begun)]


def echo(text: str) -> None:
    """Prints text from any source, with control characters escaped."""
    from ..study.terminal import show

    show(text)


def hint(*words: object) -> None:
    """Prints in a terminal the command of `nilregret` to go on with. Words in capitals are left to fill in."""
    from ..study.terminal import hint as shown

    shown(shlex.join(map(str, ["nilregret", *words])))


def print_json(value: Any) -> None:
    """Prints a value as JSON."""
    from ..study.formatting import as_json

    click.echo(as_json(value))


def storage_at(storage: str, *, make: bool = False) -> SqlStorage:
    """Returns the storage of a URL or path, which is closed at the end of the command."""
    from ..storage import SqlStorage

    place = SqlStorage(url_of(storage), make=make, private=True)
    click.get_current_context().call_on_close(place.close)
    return place


def opened_study(storage: str, name: str | None) -> Study:
    """Returns the study of this name, or the only study, without its warnings (`show` prints them)."""
    from ..study.study import Study

    place = storage_at(storage)
    if name is None:
        names = place.names()
        if not names:
            raise InvalidInput(f"{storage} has no studies. `nilregret create` makes one.")
        if len(names) > 1:
            listed = ", ".join(map(repr, names))
            raise InvalidInput(f"{storage} has {len(names)} studies: say which one. There is: {listed}.")
        (name,) = names
    with suggestions(place, name):
        study = Study.open(storage=place, name=name)
    study.quiet = True
    return study


@contextmanager
def suggestions(place: SqlStorage, name: str) -> Iterator[None]:
    """Adds to an error about a study that is not there the name that is most like it."""
    try:
        yield
    except InvalidInput as error:
        hint = nearest(name, [] if place.find(name) else place.names())
        if not hint:
            raise
        raise InvalidInput(f"{error.what}{hint}", advice=error.advice, topic=error.topic) from error


def from_json(option: str, text: str | None) -> Any:
    """Returns the value of an option in JSON."""
    if text is None:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            f"`{option}` is {text[:60]!r}, which is no JSON: {error}. Write a list of numbers such as '[0.5, 2]', or "
            """an object of parameters such as '{"day": 3}'; in a shell in single quotes."""
        ) from error


def print_trial(trial: Trial, *, as_json: bool, text: str) -> None:
    """Prints a trial as JSON, or a text."""
    from ..study.trial_json import with_history

    if as_json:
        print_json(with_history(trial))
    else:
        echo(text)
