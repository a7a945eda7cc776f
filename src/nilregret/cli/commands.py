"""The commands on studies, in the order of `--help`."""

from __future__ import annotations

import click

from .arm_commands import add_arm, arms, describe_arm, restore_arm, retire_arm
from .evaluate_command import evaluate
from .read_commands import explain, show, studies, trials
from .study_commands import create, delete, export, import_, rename
from .trial_commands import abandon, add, ask, fail, tell

COMMANDS: list[click.Command] = [
    studies,
    show,
    trials,
    explain,
    evaluate,
    create,
    ask,
    tell,
    add,
    fail,
    abandon,
    arms,
    add_arm,
    retire_arm,
    restore_arm,
    describe_arm,
    export,
    import_,
    rename,
    delete,
]
