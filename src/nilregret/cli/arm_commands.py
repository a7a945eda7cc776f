"""The commands that list, add, retire, restore and describe the arms of a study."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from .common import echo, from_json, json_option, opened_study, print_json, study_command, wide_option

if TYPE_CHECKING:
    from ..study.arms import Arm

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
