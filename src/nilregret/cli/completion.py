"""The command that teaches a shell to complete the commands, options and studies of `nilregret`."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import NamedTuple

import click
from click.shell_completion import get_completion_class

from ..errors import InvalidInput
from .common import echo
from .errors import with_error_sentences

NAME = "nilregret"
SHELLS = ("bash", "zsh", "fish")
MARK = "# completion of nilregret"


class Places(NamedTuple):
    """The files of a shell.

    Attributes:
        script: the completion itself, which is ours alone.
        startup: file of the user that needs a line to load it, or None.
        line: that line.
    """

    script: Path
    startup: Path | None
    line: str


def places(shell: str) -> Places:
    """Returns where the completion of a shell belongs."""
    home = Path.home()
    if shell == "fish":
        config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
        return Places(config / "fish" / "completions" / f"{NAME}.fish", None, "")
    data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    script = data / NAME / f"complete.{shell}"
    if shell == "bash":
        return Places(script, home / ".bashrc", f". {shlex.quote(str(script))}  {MARK}")
    startup = Path(os.environ.get("ZDOTDIR") or home) / ".zshrc"
    return Places(script, startup, f"autoload -Uz compinit && compinit && . {shlex.quote(str(script))}  {MARK}")


@click.command("install-completion", short_help="Teach the shell to complete commands and studies.")
@click.argument("shell", type=click.Choice(SHELLS), required=False)
@click.option("--yes", is_flag=True, help="Do not ask before a line is added to a file of yours.")
@with_error_sentences
def install_completion(shell: str | None, *, yes: bool) -> None:
    """Complete commands, options and names of studies with the Tab key in SHELL, that of the environment unless given.

    It writes a file of its own. For bash and zsh it also adds one line to ~/.bashrc or ~/.zshrc, after it has asked.
    """
    shell = shell or Path(os.environ.get("SHELL", "")).name
    if shell not in SHELLS:
        raise InvalidInput(f"The shell {shell!r} is none of {', '.join(SHELLS)}. Name one of them.")
    found = places(shell)
    try:
        _write(found, _script(shell), ask=not yes)
    except OSError as error:
        raise InvalidInput(f"{error.filename} could not be written: {error.strerror}.") from error
    echo(f"A new {shell} completes `{NAME}`.")


def _script(shell: str) -> str:
    """Returns Click's completion script of a shell."""
    made = get_completion_class(shell)
    if made is None:
        raise InvalidInput(f"Click has no completion for {shell}.")
    return made(click.Command(NAME), {}, NAME, f"_{NAME.upper()}_COMPLETE").source()


def _write(found: Places, script: str, *, ask: bool) -> None:
    if found.script.exists() and found.script.read_text(encoding="utf-8", errors="replace") == script:
        echo(f"{found.script} is up to date.")
    else:
        found.script.parent.mkdir(parents=True, exist_ok=True)
        found.script.write_text(script, encoding="utf-8")
        echo(f"Wrote {found.script}.")
    if found.startup is None:
        return
    text = found.startup.read_bytes() if found.startup.exists() else b""  # In whatever encoding.
    if found.line.encode() in text.splitlines():
        echo(f"{found.startup} loads it already.")
        return
    if ask:
        click.confirm(f"Add this line to {found.startup}?\n  {found.line}\n", abort=True, err=True)
    with found.startup.open("a", encoding="utf-8") as file:
        file.write("\n" * (bool(text) and not text.endswith(b"\n")) + found.line + "\n")
    echo(f"Added a line to {found.startup}.")
