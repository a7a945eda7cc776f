"""Shared parts of the commands: arguments, opening of studies, printing, and errors as sentences."""

from __future__ import annotations

import json
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar

import click
from click.shell_completion import CompletionItem

from .._utils.checks import nearest, url_of
from ..errors import InvalidInput, NoRegretError, NoRegretWarning, StorageError, TrialError, printable

if TYPE_CHECKING:
    from ..storage import SqlStorage
    from ..storage.record import Trial
    from ..study.study import Study


P = ParamSpec("P")
R = TypeVar("R")

FAILED, TRIAL_FAILED, STORAGE_FAILED = 1, 3, 4  # Click exits with 2 for unknown options and arguments.

# Advice by the topic of an error. It names commands and options in place of calls of Python.
ADVICE = {
    "answered": (
        "`--revise` of `nilregret tell` and `nilregret fail` corrects what was told, and keeps the first "
        "answer. Another reward of the same point is told by `nilregret add`."
    ),
    "failed": "`nilregret tell --constraint` comes before `nilregret fail`; `--revise` corrects what was told.",
    "together": "A study of a file with `constraints`, and without [policy], takes them in any order.",
    "unusable": (
        "If the point does not work, `nilregret fail` says so. After an accident that says nothing of the point, "
        "`nilregret abandon` gives it up. Both stay on record."
    ),
    "plays": "Give their average, with --plays and --scatter.",
    "std": "Leave --std out. Studies of `auto`, `gp_ucb` and `expected_improvement` take it.",
    "more_plays": "More plays of it are told by `nilregret add`.",
    "context": "Give it with --context.",
    "no_context": "Leave out --context.",
    "among": "--among takes a list of points, or of objects of parameters.",
    "all_failed": "`nilregret trials --state failed` has the reasons.",
    "added": "That was `nilregret add` or `nilregret import`. Ask about another trial.",
    "retired": "`nilregret add-arm` adds one, and `nilregret restore-arm` brings one back.",
    "no_arm": "`nilregret arms` lists them.",
    "channels": "A file of a study with `constraints` makes one that has.",
    "minimum": "`nilregret import` takes over to another study what was told to this one.",
    "bounded": 'They are reward = {type = "bounded", low = ..., high = ...} in [policy].',
    "kernel": 'Such as kernel = {type = "matern", nu = 2.5, lengthscale = 0.2}.',
    "policy": 'Such as algorithm = "gp_ucb" in [policy].',
    "no_trial": (
        "`nilregret trials` lists those there are. A point that was never asked for is told by `nilregret add`."
    ),
    "over": "`nilregret report` and `nilregret stop` come before `nilregret tell`.",
    "reported": "Steps grow. A trial that begins again goes on with the steps after the last one.",
    "no_report": "`nilregret abandon` gives it up.",
    "reward_range": "Give it with --reward-range LOW HIGH.",
    "target": '--policy takes "uniform", "best", an action, JSON of probabilities, or a file.',
    "no_propensities": 'A study with `"propensities": true` among its facts records them.',
    "no_arms": "A file with a `grid` makes a study that has.",
    "logging": "Take `--estimator slate` or `cascade`, or evaluate it in Python.",
    "values": "Write a number for each in this order, such as 0.3,12, or by name, such as loss=0.3 recall=12.",
    "limits": "Tell them together: a --constraint for each.",
    "one": "`nilregret show` has its best trial.",
    "front": "`nilregret front` lists the trials that no other one beats; with --weights it picks one of them.",
    "refuted": "Make a new study with larger ones; `nilregret import` takes over what `nilregret export` wrote.",
    "lost": "If a point of `start` lost only its measurement, `nilregret tell --revise` tells it, or `nilregret "
    "enqueue` plays the point again. Another time `nilregret abandon` gives such a trial up.",
    "made": "`nilregret show` says what it is.",
    "event": "Give each decision an id of its own, and the same one to repeat the command.",
    "range": "`nilregret widen` changes the range.",
    "cost": "Tell it by `nilregret tell --metric NAME=COST`, and with `--revise` where the reward is on record.",
    "by_yourself": "That is `nilregret ask` and `nilregret tell`.",
    "named": "Parameters are named, as in an object of JSON.",
}


def sentence_of(error: NoRegretError) -> str:
    """Returns the message of an error with advice for the command line."""
    return str(error.advised(ADVICE.get(error.topic, ""), topic=error.topic))


class CommandError(click.ClickException):
    """An error of the library, with an exit code by its kind."""

    def __init__(self, error: NoRegretError) -> None:
        super().__init__(sentence_of(error))
        kinds = ((TrialError, TRIAL_FAILED), (StorageError, STORAGE_FAILED))
        self._code = next((code for kind, code in kinds if isinstance(error, kind)), FAILED)

    @property
    def exit_code(self) -> int:  # type: ignore[override]  # Click has an attribute of the class.
        """Exit code of the process."""
        return self._code


def with_error_sentences(command: Callable[P, R]) -> Callable[P, R]:
    """Returns a command that prints errors as sentences, and text in any encoding of the terminal."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        for stream in (sys.stdout, sys.stderr):
            reconfigure: Any = getattr(stream, "reconfigure", None)
            if reconfigure is not None:  # A command must not fail because the terminal lacks a letter.
                reconfigure(errors="backslashreplace")
        try:
            return command(*args, **kwargs)
        except NoRegretError as error:
            raise CommandError(error) from error

    return run


@contextmanager
def noted() -> Iterator[None]:
    """Prints warnings of the library within a block, or within a decorated function, as notes, each once."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", NoRegretWarning)
        yield
    for note in dict.fromkeys(str(each.message) for each in said if issubclass(each.category, NoRegretWarning)):
        click.echo(printable(f"Note: {note}"), err=True)


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


def _facts(_: click.Context, option: click.Parameter, said: tuple[str, ...]) -> dict[str, Any] | None:
    """Returns facts by name from texts such as "order=A-17". A value that is a number in JSON is one."""
    found = dict[str, Any]()
    for text in said:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise click.BadParameter(f"{text!r} is not NAME=VALUE, such as order=A-17.", param=option)
        try:
            found[name] = json.loads(value)
        except (ValueError, RecursionError):
            found[name] = value
    return found or None


def _which(_: click.Context, __: click.Parameter, text: str) -> int | str:
    """Returns the number of a trial, or its event."""
    return int(text) if text.isdecimal() else text.removeprefix("event:")


trial_argument = click.argument("number", metavar="NUMBER", callback=_which)
unit_option = click.option(
    "--unit", metavar="TEXT", help="Who visits. A study that is sticky plays the same arm again."
)
event_option = click.option("--event", metavar="TEXT", help="Your own id of the trial, in the place of its number.")
fact_option = click.option(
    "--fact", "facts", multiple=True, metavar="NAME=VALUE", callback=_facts,
    help="Something of your own to keep with the trial; repeat.",
)  # fmt: skip


def _number(context: click.Context, given: click.Parameter, text: str) -> float:
    """Returns the number of a word of an argument or option."""
    try:
        return float(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a valid float.", context, given) from None


def _numbers(context: click.Context, given: click.Parameter, words: Any) -> Any:
    """Returns words that may be numbers of objectives (see `told_values`). Any other word must be a number."""
    for word in (words,) if isinstance(words, str) else words or ():
        if not {",", "=", "?"} & set(word):
            _number(context, given, word)
    return words


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
    "--std", metavar="S", callback=_numbers,
    help="Standard deviation of the noise of REWARD, in its units, where it is known; of several objectives 0.1,2.",
)  # fmt: skip


def reward_argument(*, required: bool) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Returns the argument REWARD, in one word or several, which `told_values` reads."""
    metavar = "REWARD" if required else "[REWARD]"
    return click.argument("reward", nargs=-1, required=required, metavar=metavar, callback=_numbers)


def told_values(
    study: Study, name: str, words: str | Sequence[str] | None
) -> float | list[float | None] | dict[str, float] | None:
    """Returns the numbers of an argument or option: one, or one for each objective of the study.

    Several are "0.3,12", or "loss=0.3,recall=12" in one word or more. "?" is an unknown one.

    Args:
        study: to tell.
        name: of the argument or option.
        words: as they were typed.
    """
    words = [] if words is None else [words] if isinstance(words, str) else words
    context = click.get_current_context()
    (given,) = (each for each in context.command.params if each.name == name)
    if study.policy.objective_count == 1:
        if len(words) > 1:
            more = "arguments" if len(words) > 2 else "argument"
            raise click.UsageError(f"Got unexpected extra {more} ({' '.join(words[1:])})", context)
        return _number(context, given, words[0]) if words else None
    if not words:
        return None
    parts = [part.strip() for word in words for part in word.split(",")]
    if not any("=" in part for part in parts):
        found = [None if part == "?" else _number(context, given, part) for part in parts]
        return found if len(found) != 1 else found[0]
    named = dict[str, float]()
    for part in parts:
        key, _equals, text = part.rpartition("=")
        if not key or key in named:
            why = f"{key!r} is there twice" if key else f"{part!r} has no name"
            raise click.BadParameter(f"{why}: write NAME=NUMBER once for each objective.", context, given)
        named[key] = _number(context, given, text)
    return named


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
wide_option = click.option("--wide", is_flag=True, help="Show all columns, also empty ones.")


COMMANDS: list[click.Command] = []  # Commands of `study_command`, from all modules that are imported.


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
        COMMANDS.append(make(click.argument("storage")(command)))
        return COMMANDS[-1]

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


def to_fill_in(study: Study) -> str:
    """Returns what stands for a reward in a command to fill in: a word for each objective."""
    count = study.policy.objective_count
    return "REWARD" if count == 1 else ",".join(["VALUE"] * count)


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
