"""The commands that ask for trials and record their results."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .._utils.checks import many, shown
from .._utils.process_setting import handled, interrupt
from ..errors import InvalidInput
from ..serialize import to_plain
from . import common

if TYPE_CHECKING:
    from ..storage.trial import Trial
    from ..study.study import Study


TOGETHER = "Tell --plays and --scatter together, with the average REWARD."


def _told(found: Study, reward: Sequence[str], plays: int | None, scatter: float | None) -> Any:
    """Returns a reward, the values of several objectives, or the rewards of several plays by their average."""
    from ..study.play_rewards import Rewards

    value = common.told_values(found, "reward", reward)
    if plays is None or scatter is None or value is None:
        return value
    if not isinstance(value, float):
        raise click.UsageError("--plays and --scatter are of one reward, and this study has several objectives.")
    return Rewards(count=plays, sum=0.0, squares=scatter, about=value)


def _print_told(found: Study, trial: Trial, *, as_json: bool) -> None:
    """Prints an answered trial, and a note if its constraint values are missing and may be told later."""
    from ..study.direction import has_channels

    common.print_trial(trial, as_json=as_json, text=f"Recorded: {trial!r}")
    unknown = trial.reward is not None and trial.constraints is None
    if unknown and has_channels(found.policy) and found.policy.constraint_count:
        note = f"Note: trial {trial.number} is not the best before its constraint values are told (--constraint)."
        click.echo(note, err=True)


@common.study_command("Ask for the next trial.", study="optional")
@click.option("--count", type=click.IntRange(min=1), help="Ask for several at once; with --json a list.")
@common.context_option
@click.option("--among", metavar="JSON", help="What may be played this time: numbers of arms, points or parameters.")
@click.option("--exclude", metavar="JSON", help="Arms that may not be.")
@click.option("--lease", type=float, metavar="SECONDS", help="After which the trial is abandoned, if no answer came.")
@common.unit_option
@common.event_option
@common.fact_option
@common.json_option
def ask(
    storage: str, study: str | None, count: int | None, context: str | None, among: str | None, exclude: str | None,
    lease: float | None, unit: str | None, event: str | None, facts: dict[str, Any] | None, *, as_json: bool,
) -> None:  # fmt: skip
    """Ask STUDY for the next trial, which is recorded as pending before you see it.

    Then tell what came of it: nilregret tell STORAGE STUDY NUMBER REWARD. With --event the same EVENT gives the same
    trial again, and stands for NUMBER.
    """
    from .._utils.numerals import MOST_DIGITS
    from ..study.formatting import where
    from ..study.trial_json import with_history

    found = common.opened_study(storage, study)
    known: dict[str, Any] = {"context": common.from_json("--context", context)} if context is not None else {}
    known |= {} if count is None else {"count": count}
    given: Any = found.ask(
        **known,
        among=common.from_json("--among", among),
        exclude=common.from_json("--exclude", exclude),
        lease=lease,
        unit=unit,
        event=event,
        facts=facts,
    )
    asked = given if isinstance(given, list) else [given]
    if as_json:
        common.print_json([with_history(trial) for trial in asked] if count is not None else with_history(asked[0]))
    else:
        common.echo("\n".join(f"trial {trial.number}: {where(trial, MOST_DIGITS)}" for trial in asked))
        common.hint("tell", storage, found.name, asked[0].number, common.to_fill_in(found))


@common.study_command("Ask for trials to run by hand, as a table to print or fill in.")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), required=False)
@click.option("--count", type=click.IntRange(min=0), default=0, help="Trials to ask for; 0 lists the pending ones.")
@click.option("--html", is_flag=True, help="A page to print, where FILE is missing.")
@click.option("--digits", type=int, default=3, show_default=True, help="To round to, before a trial is recorded.")
@click.option("--decimal", type=click.Choice([".", ","]), default=".", help="With a comma, semicolons separate cells.")
@common.context_option
@click.option("--lease", type=float, metavar="SECONDS", help="After which a trial is abandoned, if no answer came.")
def sheet(
    storage: str, study: str, file: Path | None, count: int, digits: int, decimal: str, context: str | None,
    lease: float | None, *, html: bool,
) -> None:  # fmt: skip
    """Ask STUDY for trials to run by hand, and write them to a new FILE: .csv, or .html for a page to print.

    Fill in the value of each, or the word failed or abandoned. Then read the table: nilregret import STORAGE STUDY
    FILE. Rows without a value stay pending.
    """
    known = {"context": common.from_json("--context", context)} if context is not None else {}
    found = common.opened_study(storage, study)
    made = found.sheet(count, file, digits=digits, decimal=decimal if file else ".", lease=lease, **known)
    if file is None:
        click.echo(made.to_html(decimal=decimal) if html else made.to_csv(decimal=decimal), nl=False)
        return
    common.echo(f"Wrote {many(len(made.trials), 'trial')} to {file}.")
    common.hint("import", storage, found.name, str(file))


@common.study_command("Name points to try first.")
@click.argument("what", metavar="[JSON]", required=False)
@click.option("--withdraw", type=int, metavar="NUMBER", help="Take a point that waits out.")
@common.json_option
@common.noted()
def enqueue(storage: str, study: str, what: str | None, withdraw: int | None, *, as_json: bool) -> None:
    """Name points that the next trials of STUDY are of, once, in order. Without JSON, list what waits.

    JSON is a point '[0.5, 2]', parameters '{"day": 3}', the number of an arm, or a list of them. Of parameters some may
    be named alone, and the policy chooses the others.
    """
    from ..study.formatting import settings

    found = common.opened_study(storage, study)
    if withdraw is not None:
        found.withdraw(withdraw)
    entries = found.enqueued if what is None else found.enqueue(common.from_json("JSON", what))
    if as_json:
        common.print_json([entry._asdict() for entry in entries])
        return
    words = [settings(each.named, (), None) if isinstance(each.named, dict) else str(each.named) for each in entries]
    listed = [f"{each.number}: {text}{'' if each.whole else ', and the policy chooses the rest'}"
              for each, text in zip(entries, words, strict=True)]  # fmt: skip
    common.echo("\n".join(listed) or "No point waits to be tried.")


@common.study_command("Change the space of a study.")
@click.argument("what", metavar="JSON")
@click.option("--was", metavar="JSON", help="The value that each new parameter had so far.")
@click.option("--context", "of_context", is_flag=True, help="The parameters are of contexts.")
@common.json_option
def widen(storage: str, study: str, what: str, was: str | None, *, of_context: bool, as_json: bool) -> None:
    """Change parameters of STUDY, or add some. Every trial so far still teaches.

    JSON has the new parameters by name, such as '{"heat": {"type": "float", "low": 100, "high": 300}}'.
    """
    from ..algorithms.schema import parameter, within

    tables = common.from_json("JSON", what)
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        raise InvalidInput(f"`JSON` is {shown(tables)}: it must have a table for each parameter, by name.")
    read = {name: within(name, parameter, table) for name, table in tables.items()}
    given = {"context": read} if of_context else read
    space = common.opened_study(storage, study).widen(was=common.from_json("--was", was), **given)
    if as_json:
        common.print_json(to_plain(space))
    else:
        common.echo("\n".join(f"{name}: {each!r}" for name, each in space.declared.items()))


@common.study_command("Tell what came of a trial.", negative_numbers=True)
@common.trial_argument
@common.reward_argument(required=False)
@common.constraint_option
@common.plays_option
@common.scatter_option
@common.std_option
@common.metric_option
@click.option("--revise", is_flag=True, help="Correct an answer; the one before is kept.")
@common.json_option
def tell(
    storage: str, study: str, number: int | str, reward: Sequence[str], constraints: Sequence[float], plays: int | None,
    scatter: float | None, std: str | None, metrics: dict[str, float] | None, *, revise: bool, as_json: bool,
) -> None:  # fmt: skip
    """Tell the REWARD of trial NUMBER of STUDY: the loss, where it minimises.

    Of several objectives it is a value for each, as in 0.3,12 or loss=0.3 recall=12.

    Constraint values, satisfied when <= 0, go with it, or by themselves where the reward is not known yet. Of a trial
    that is to be played several times REWARD is the average, with --plays and --scatter. To tell the same again changes
    nothing.
    """
    if not reward and not constraints:
        missing = f" Or STUDY is missing: nilregret tell {storage} STUDY {study} {number}." * study.isdecimal()
        raise click.UsageError(f"Tell a REWARD, or --constraint values, or both.{missing}")
    if (plays is None) != (scatter is None) or (plays is not None and not reward):
        raise click.UsageError(TOGETHER)
    found = common.opened_study(storage, study)
    noise: Any = common.told_values(found, "std", std)
    trial = found.tell(
        number, _told(found, reward, plays, scatter), constraints=list(constraints) or None,
        std=noise, metrics=metrics, revise=revise,
    )  # fmt: skip
    _print_told(found, trial, as_json=as_json)


@common.study_command("Tell the reward of a point that was not asked for.", negative_numbers=True)
@click.argument("where", metavar="JSON")
@common.reward_argument(required=True)
@common.context_option
@common.constraint_option
@common.plays_option
@common.scatter_option
@common.std_option
@common.metric_option
@common.json_option
@common.noted()
def add(
    storage: str, study: str, where: str, reward: Sequence[str], context: str | None, constraints: Sequence[float],
    plays: int | None, scatter: float | None, std: str | None, metrics: dict[str, float] | None, *, as_json: bool,
) -> None:  # fmt: skip
    """Add the REWARD of a point to STUDY that was not asked for. JSON says which: '{"day": 3}' or '[0.5, 2]'.

    Many at once are in a file that `nilregret import` takes.
    """
    if (plays is None) != (scatter is None):
        raise click.UsageError(TOGETHER)
    found = common.opened_study(storage, study)
    known = {"context": common.from_json("--context", context)} if context is not None else {}
    noise: Any = common.told_values(found, "std", std)
    trial = found.add(
        common.from_json("JSON", where), _told(found, reward, plays, scatter), constraints=list(constraints) or None,
        std=noise, metrics=metrics, **known,
    )  # fmt: skip
    _print_told(found, trial, as_json=as_json)


@common.study_command("Tell that a trial will never have a reward.")
@common.trial_argument
@click.argument("reason")
@click.option("--revise", is_flag=True, help="Take back an answer; it is kept.")
@common.json_option
def fail(storage: str, study: str, number: int | str, reason: str, *, revise: bool, as_json: bool) -> None:
    """Tell that trial NUMBER of STUDY failed, and why, in words."""
    trial = common.opened_study(storage, study).fail(number, reason, revise=revise)
    common.print_trial(trial, as_json=as_json, text=f"Recorded: {trial!r}")


@common.study_command("Tell that nobody works on a trial any more.")
@common.trial_argument
@click.argument("reason")
@common.json_option
def abandon(storage: str, study: str, number: int | str, reason: str, *, as_json: bool) -> None:
    """Tell that nobody works on trial NUMBER of STUDY any more, and why, in words.

    It no longer counts as pending, and says nothing of its point. Its answer is taken all the same if it comes.
    """
    trial = common.opened_study(storage, study).abandon(number, reason)
    common.print_trial(trial, as_json=as_json, text=f"Recorded: {trial!r}")


@common.study_command("Forget who a unit is.")
@click.argument("unit")
@common.json_option
def forget(storage: str, study: str, unit: str, *, as_json: bool) -> None:
    """Remove the link from UNIT to its trials of STUDY, which stay on record and still belong together."""
    known = common.opened_study(storage, study).forget(unit)
    if as_json:
        common.print_json({"forgotten": known})
    else:
        common.echo(
            "Forgotten: nothing says any more whose the trials are."
            if known
            else "No trial is known to be of this unit."
        )


@common.study_command("Tell a value of a trial that runs, and hear whether to go on.", negative_numbers=True)
@common.trial_argument
@click.argument("step", type=int)
@click.argument("value", type=float)
@common.json_option
def report(storage: str, study: str, number: int | str, step: int, value: float, *, as_json: bool) -> None:
    """Tell the VALUE of trial NUMBER of STUDY after a STEP of its evaluation. Prints "go on" or "stop".

    The rule of the study judges (`pruning` in [policy]). Without one every trial goes on. A rule that pauses trials
    says "wait". To tell the same again records nothing, and is judged anew.
    """
    from ..storage.trial import GOING
    from ..study.transaction import Failed

    found = common.opened_study(storage, study)
    told = found.inputs.report(step, value)
    (done,) = found.group_commit([lambda transaction: transaction.report(number, *told)[1]], seconds=1.0)
    if isinstance(done, Failed):
        raise done.error
    go_on = done in GOING
    if as_json:
        common.print_json({"go_on": go_on, "verdict": done})
    else:
        common.echo("go on" if go_on else str(done))


@common.study_command("Stop a trial that is not worth going on with.")
@common.trial_argument
@click.argument("reason", required=False)
@common.json_option
def stop(storage: str, study: str, number: int | str, reason: str | None, *, as_json: bool) -> None:
    """Stop trial NUMBER of STUDY. Its reports stay, and it is never the best.

    REASON is in words. If it is left out, it is that of the study's rule.
    """
    trial = common.opened_study(storage, study).stop(number, reason)
    common.print_trial(trial, as_json=as_json, text=f"Recorded: {trial!r}")


LEASE = 3600.0  # seconds until other workers take a trial for abandoned


@click.command(short_help="Join a study as a worker: ask, evaluate, tell.", context_settings=common.NEGATIVE_NUMBERS)
@click.argument("storage")
@click.argument("study", shell_complete=common.complete_study)
@click.argument("objective")
@click.option("--trials", type=click.IntRange(min=1), required=True, help="Trials wanted in all, of all workers.")
@click.option(
    "--lease",
    type=click.FloatRange(min=0.0, min_open=True),
    default=LEASE,
    show_default=True,
    metavar="SECONDS",
    help="After which others take a trial of this worker for abandoned; longer than an evaluation.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.0, min_open=True),
    metavar="SECONDS",
    help="That an evaluation may take; then its trial fails.",
)
@common.with_error_sentences
@handled(interrupt)
def work(storage: str, study: str, objective: str, trials: int, lease: float, timeout: float | None) -> None:
    """Evaluate trials of STUDY until it has enough of them. Any number of workers may do so at once.

    OBJECTIVE is module:function, called with the parameters as keyword arguments, or a tuning file (TOML), whose
    [objective] it is. SIGTERM and Ctrl-C give up the trial that is under way, at once.
    """
    from ..tuning.loop import Lease, Loop
    from ..tuning.objective import TimeLimited
    from ..tuning.toml.evaluation import task_of

    found = common.opened_study(storage, study)
    task = task_of(found, objective, timeout=timeout)
    with ExitStack() as during:
        if isinstance(task, TimeLimited):
            during.enter_context(closing(task))
            task.start()
        loop = Loop(
            found, task, trials=trials, ended=lambda trial: common.echo(repr(trial)), lease=Lease(lease, common.echo)
        )
        loop.run()
    pending = sum(trial.state == "pending" for trial in found.trials)
    said = f", {pending} pending with other workers or until the lease ends" * (pending > 0)
    common.echo(
        f"Study {found.name!r} has {many(len(found.trials), 'trial')}, {loop.evaluated} of them evaluated here{said}."
    )
    if loop.refusal is not None:
        raise loop.refusal
