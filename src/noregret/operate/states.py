"""The command for the cached state of a study."""

from __future__ import annotations

import click

from .common import json_option, named_argument, opened_study, print_json, say, storage_argument
from .refusals import in_sentences


@click.command(short_help="Say what is kept of a study to open it fast, check it, or throw it away.")
@storage_argument
@named_argument
@click.option("--check", is_flag=True, help="Replay the record and compare: it takes as long as opening without it.")
@click.option("--drop", is_flag=True, help="Throw it away; the next one who opens STUDY replays its record.")
@json_option
@in_sentences
def state(storage: str, study: str, *, check: bool, drop: bool, as_json: bool) -> None:
    """Say how much of the record of STUDY is in its cached state, which spares those who open it a replay.

    With --check the exit code is 1 where the state is not what a replay gives, to the bit; it is then thrown away.
    """
    from ..study.standing import standing

    kept = opened_study(storage, study)._kept
    found = standing(kept, check=check)
    wrong = found.equal is False
    dropped = (drop or wrong) and kept.cache is not None and kept.cache.drop()
    if as_json:
        print_json(found._asdict() | {"dropped": dropped})
    elif not found.events:
        why = found.why or "none was kept, or by another version, on another machine, or with other settings of threads"
        say(f"No state of study {study!r} is kept that could be used here: {why}.")
    else:
        says = {None: "", True: " It is what a replay gives, to the bit.", False: " It is NOT what a replay gives."}
        say(f"Of study {study!r} {found.events} of {found.of} events are in the state that is kept.{says[found.equal]}")
    if dropped and not as_json:
        say("It has been thrown away.")
    if wrong:
        click.get_current_context().exit(1)
