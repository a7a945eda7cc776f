"""The commands for people who operate studies, and for programs that drive them, in the order of `--help`."""

from __future__ import annotations

import click

from .driving import abandon, add, ask, fail, tell
from .keeping import create, delete, export, import_, rename
from .looking import explain, show, studies, trials

COMMANDS: list[click.Command] = [
    studies,
    show,
    trials,
    explain,
    create,
    ask,
    tell,
    add,
    fail,
    abandon,
    export,
    import_,
    rename,
    delete,
]
