"""The command that says what another policy would have earned on a log."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from .._utils.errors import InvalidInput
from .common import echo, json_option, opened_study, print_json
from .errors import with_error_sentences

DATABASE = (b"SQLite format 3\0", 16)


@click.command("evaluate", short_help="Say what another policy would have earned on a log.")
@click.argument("log")
@click.argument("study", required=False)
@click.option(
    "--policy", required=True, metavar="POLICY",
    help='"uniform", "best" of a study, an action, JSON of probabilities such as \'{"a": 0.9, "b": 0.1}\', or a file: '
    "choices or probabilities, a line for each decision (.csv), or a policy (.json).",
)  # fmt: skip
@click.option("--estimator", type=click.Choice(["snips", "dr", "ips", "switch"]), default="snips", show_default=True)
@click.option("--delta", type=float, default=0.05, show_default=True, help="How often the interval may miss.")
@click.option("--reward-range", type=(float, float), default=(0.0, 1.0), show_default=True, metavar="LOW HIGH")
@click.option("--floor", type=float, help="The lowest probability that an action can have by design.")
@click.option("--default-reward", type=float, help="What stands in for a reward that did not come.")
@click.option("--action", "actions", multiple=True, help="An action that there is; repeat for all, in order.")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Of a policy that learns.")
@click.option("--picture", type=click.Path(path_type=Path, dir_okay=False), help="Save a picture too.")
@json_option
@with_error_sentences
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
    from .._utils.errors import NoRegretWarning
    from ..evaluation import evaluate as evaluated

    found: Any = log
    if study is not None or _is_storage(log):
        found = opened_study(log, study)
    named = [_value(action) for action in actions] or None
    with warnings.catch_warnings():  # The cautions are printed.
        warnings.simplefilter("ignore", NoRegretWarning)
        result = evaluated(found, _policy(policy), actions=named, **given)
    if as_json:
        print_json(result.to_dict())
    else:
        echo(str(result))
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
