"""The command line's help: commands by what they are for, and examples. And its answer to a crash."""

from __future__ import annotations

import errno
import os
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, final

import click

from ..errors import exception_text
from .common import STORAGE_FAILED, echo, from_json, json_option, opened_study, print_json, study_command, wide_option

if TYPE_CHECKING:
    from ..study.spaces import Arm


name_option = click.option("--name", metavar="TEXT", help="Its name.")
about_option = click.option("--about", metavar="JSON", help="Facts about it: an object.")


def arm_json(arm: Arm) -> dict[str, Any]:
    """Returns an arm as plain values."""
    return arm._asdict() | {"point": arm.point.tolist()}


def _print(arms: Sequence[Arm], text: str, *, as_json: bool) -> None:
    if as_json:
        print_json([arm_json(arm) for arm in arms])
        return
    at = [f"arm {arm.number}" + (f" ({arm.name})" if arm.name else "") for arm in arms]
    echo("\n".join(f"{each}: {text}." for each in at))


@study_command("List the arms of a study.", study="optional")
@wide_option
@json_option
def arms(storage: str, study: str | None, *, wide: bool, as_json: bool) -> None:
    """List the arms of STUDY by number, the retired ones included."""
    from ..study.formatting import moment
    from ..study.terminal import show, table

    found = opened_study(storage, study).arms
    if as_json:
        print_json([arm_json(arm) for arm in found])
        return
    rows = [
        [
            arm.number, arm.name, arm.parameters or arm.point.tolist(), "retired" if arm.retired else "in use",
            moment(arm.since), arm.about or None,
        ]
        for arm in found
    ]  # fmt: skip
    headings = ["arm", "name", "at", "state", "since (UTC)", "about"]
    show(table(rows, headings, dispensable=["since (UTC)", "about"], wide=wide), wide=wide)


@study_command("Add an arm to a running study.", name="add-arm")
@click.argument("where", metavar="JSON")
@name_option
@about_option
@json_option
def add_arm(storage: str, study: str, where: str, name: str | None, about: str | None, *, as_json: bool) -> None:
    """Add an arm to STUDY. JSON says where: '[0.5, 2]' or '{"day": 3}'. It gets the next number.

    What is known of similar arms is known of it at once, and the next trial may be of it.
    """
    facts = from_json("--about", about)
    added = opened_study(storage, study).add_arms([from_json("JSON", where)], names=[name], about=[facts])
    _print(added, "added", as_json=as_json)


@study_command("Retire an arm: no later trial is of it.", name="retire-arm")
@click.argument("arm", type=int)
@json_option
def retire_arm(storage: str, study: str, arm: int, *, as_json: bool) -> None:
    """Retire ARM of STUDY. What was learned of it still teaches about similar arms."""
    _print([opened_study(storage, study).retire_arm(arm)], "retired", as_json=as_json)


@study_command("Bring a retired arm back.", name="restore-arm")
@click.argument("arm", type=int)
@json_option
def restore_arm(storage: str, study: str, arm: int, *, as_json: bool) -> None:
    """Bring the retired ARM of STUDY back. Nothing of it was forgotten."""
    _print([opened_study(storage, study).restore_arm(arm)], "in use", as_json=as_json)


@study_command("Describe an arm.", name="describe-arm")
@click.argument("arm", type=int)
@name_option
@about_option
@json_option
def describe_arm(storage: str, study: str, arm: int, name: str | None, about: str | None, *, as_json: bool) -> None:
    """Give ARM of STUDY a name, facts, or both. Trials do not depend on them."""
    described = opened_study(storage, study).describe_arm(arm, name=name, about=from_json("--about", about))
    _print([described], "described", as_json=as_json)


GROUPS: Mapping[str, Sequence[str]] = {
    "Tune": ["tune", "work"],
    "Look at studies": ["studies", "show", "trials", "front", "explain", "evaluate"],
    "Decide one by one": ["create", "ask", "sheet", "tell", "add", "enqueue", "fail", "abandon", "widen", "forget"],
    "Stop early": ["report", "stop"],
    "Change arms": ["arms", "add-arm", "retire-arm", "restore-arm", "describe-arm"],
    "Keep studies": ["export", "import", "rename", "delete"],
    "Serve": ["serve", "token"],
    "More": ["papers"],
}

EXAMPLES: Mapping[str, Sequence[str]] = {
    "tune": ["tune svm.toml", "tune svm.toml --trials 100 --workers 4"],
    "work": ["work studies.db oven bake:loss --trials 50", "work studies.db svm svm.toml --trials 100 --lease 600"],
    "studies": ["studies studies.db", "studies postgresql://host/database --json"],
    "show": ["show studies.db", "show studies.db oven --picture oven.png"],
    "trials": ["trials studies.db oven --last 20", "trials studies.db oven --state failed"],
    "front": ["front studies.db oven", "front studies.db oven --weights loss=1,recall=2"],
    "explain": ["explain studies.db oven 4"],
    "evaluate": ["evaluate log.csv --policy uniform", "evaluate studies.db oven --policy best --estimator dr"],
    "create": ["create studies.db oven oven.toml"],
    "ask": [
        "ask studies.db oven",
        "ask studies.db oven --context '{\"day\": 3}' --json",
        "ask studies.db banners --unit user-17 --event visit-1 --fact page=/shoes",
    ],
    "tell": [
        "tell studies.db oven 0 0.92",
        "tell studies.db oven 0 0.79 --revise",
        "tell studies.db kiln 0 loss=0.3 recall=12",
        "tell studies.db banners visit-1 1",
    ],
    "add": ['add studies.db oven \'{"heat": 200, "minutes": 30}\' 0.92'],
    "enqueue": ["enqueue studies.db oven '{\"heat\": 180}'", "enqueue studies.db oven --withdraw 0"],
    "widen": ['widen studies.db oven \'{"heat": {"type": "float", "low": 100, "high": 300}}\''],
    "fail": ['fail studies.db oven 1 "burned to coal"'],
    "abandon": ['abandon studies.db oven 5 "the machine was switched off"'],
    "forget": ["forget studies.db banners user-17"],
    "report": ["report studies.db svm 7 10 0.31"],
    "stop": ["stop studies.db svm 7", 'stop studies.db svm 7 "it diverges"'],
    "arms": ["arms studies.db oven"],
    "add-arm": ["add-arm studies.db banners '[0.5, 2]' --name autumn"],
    "retire-arm": ["retire-arm studies.db banners 3"],
    "restore-arm": ["restore-arm studies.db banners 3"],
    "describe-arm": ['describe-arm studies.db banners 3 --about \'{"colour": "red"}\''],
    "sheet": ["sheet studies.db oven batch.csv --count 4", "sheet studies.db oven batch.html --count 4"],
    "export": ["export studies.db oven trials.csv", "export studies.db oven > trials.jsonl"],
    "import": ["import studies.db oven trials.csv", "import studies.db new sqlite:///optuna.db --optuna old"],
    "rename": ["rename studies.db oven kiln"],
    "delete": ["delete studies.db oven"],
    "serve": ["serve --storage sqlite:///studies.db", "serve --host 0.0.0.0 --port 8000"],
    "token": ["token new --role decider --about shop", "token list"],
    "papers": ["papers", "papers srinivas-3 --quick"],
}


# What people type, and the command that does it.
MEANT: Mapping[str, str] = {
    **dict.fromkeys(("list", "ls"), "studies"), **dict.fromkeys(("best", "status", "info"), "show"), "pareto": "front",
    **dict.fromkeys(("optimize", "optimise", "minimize", "maximize", "run"), "tune"), "plot": "show --picture",
    **dict.fromkeys(("dashboard", "ui", "server"), "serve"), "version": "--version", "new": "create", "rm": "delete",
}  # fmt: skip


TRACEBACK = "NILREGRET_TRACEBACK"  # The environment variable with which a crash prints its traceback.


@final
class Crash(click.ClickException):
    """An error that is not of the library, in two lines. Something may have been recorded before."""

    exit_code = STORAGE_FAILED

    def __init__(self, command: str, error: Exception, *, traced: bool) -> None:
        what = "could not read or write" if isinstance(error, OSError) else "crashed"
        how = "" if traced else f" Run the command again with {TRACEBACK}=1 set to see the traceback."
        super().__init__(
            f"`{f'nilregret {command}'.strip()}` {what}: {exception_text(error)}\nWhat was recorded is not lost.{how}"
        )


@contextmanager
def _crashing(command: Callable[[], str | None]) -> Iterator[None]:
    """Ends crashes, interrupts and full disks within a block without a traceback.

    Args:
        command: returns the name of the command, if it is known by then.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except (click.ClickException, click.Abort, click.exceptions.Exit):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.EPIPE:  # Click ends in silence.
            raise
        traced = bool(os.environ.get(TRACEBACK))
        if traced:
            traceback.print_exception(error)
        raise Crash(command() or "", error, traced=traced) from error


@final
class Commands(click.Group):
    """A group whose help lists commands by what they are for, each with examples."""

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Returns the context of the command line. Options such as --help print here."""
        with _crashing(lambda: None):
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command."""
        with _crashing(lambda: ctx.invoked_subcommand):
            return super().invoke(ctx)

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Adds a command, and its examples to its help."""
        examples = EXAMPLES.get(name or cmd.name or "", ())
        if examples:
            cmd.epilog = "\n".join(["\b", "Examples:", *(f"  nilregret {example}" for example in examples)])
        super().add_command(cmd, name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:  # fmt: skip
        """Returns the command that was named. The error about an unknown one names the right one."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            meant = MEANT.get(args[0])
            if meant is None:
                raise
            raise click.UsageError(f"No such command {args[0]!r}. That is `nilregret {meant}`.", ctx) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - Click's.
        """Writes a section of commands for each group."""
        for title, names in GROUPS.items():
            commands = [(name, self.commands[name]) for name in names if name in self.commands]
            with formatter.section(title):
                formatter.write_dl([(name, command.get_short_help_str(limit=80)) for name, command in commands])
