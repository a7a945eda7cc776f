"""What the pages on deployment and on threats tell to write is what the commands, the gate and the package know."""

import configparser
import json
import re
import shlex
import tomllib
from pathlib import Path

import click
from click.testing import CliRunner

from noregret.cli import main
from noregret.operate import serving
from noregret.serve.caller import ROLES
from noregret.serve.gate import Gate
from noregret.serve.limits import Limits
from noregret.serve.origins import bound_to
from noregret.serve.tokens import SESSION_SECONDS, Tokens
from noregret.storage import MemoryStorage

from .asgi import ask

HOME = Path(__file__).parent.parent
PAGE = (HOME / "docs" / "deployment.md").read_text(encoding="utf-8")
THREATS = (HOME / "docs" / "threats.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)


def blocks(kind):
    return [text for found, text in BLOCK.findall(PAGE) if found == kind]


def parsed(arguments):
    """A command with its options read, and not run."""
    command, (name, *rest) = main, arguments
    while name in getattr(command, "commands", {}):
        command = command.commands[name]
        if isinstance(command, click.Group):
            name, *rest = rest
    inner = command.make_context(name, list(rest))
    return command, inner.params


def test_every_command_has_the_options_that_the_page_gives_it():
    seen = []
    for line in "".join(blocks("sh")).splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["noregret"] or words[:2] == ["podman", "run"]:
            after = 1 if words[0] == "noregret" else words.index("decisions") + 1
            seen.append(parsed(words[after:]))
    (unit,) = blocks("ini")
    settings = configparser.ConfigParser(strict=True, interpolation=None)
    settings.optionxform = str
    settings.read_string(unit)
    program, *words = shlex.split(settings["Service"]["ExecStart"])
    assert program.endswith("/noregret")
    seen.append(parsed(words))
    (container,) = blocks("dockerfile")
    entry, default = (json.loads(re.search(rf"^{word} (.*)$", container, re.M)[1]) for word in ("ENTRYPOINT", "CMD"))
    assert entry == ["noregret"]
    seen.append(parsed(default))
    assert [command for command, _ in seen].count(serving.serve) == 6
    assert {command.name for command, _ in seen} == {"serve", "new", "list", "revoke"}
    assert settings["Service"]["Environment"].split("=")[0] == "NOREGRET_STORAGE"
    assert "--workers" not in settings["Service"]["ExecStart"]  # with SQLite


def test_what_is_installed_are_extras_that_there_are():
    extras = tomllib.loads((HOME / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = re.findall(r"noregret\[([\w,]+)\]", PAGE)
    assert named
    assert {name for some in named for name in some.split(",")} <= extras.keys()


def test_the_commands_for_tokens_work_as_they_stand(tmp_path, monkeypatch):
    monkeypatch.setenv("NOREGRET_STORAGE", f"sqlite:///{tmp_path}/studies.db")
    made = ""
    for line in blocks("sh")[1].splitlines():
        words = shlex.split(line)
        if words[:2] != ["noregret", "token"]:
            continue
        result = CliRunner().invoke(main, [made if word == "TOKEN" else word for word in words[1:]])
        assert result.exit_code == 0, result.output
        if "list" in words:
            made = result.output.splitlines()[-1].split()[0]
    assert "opens nothing any more" in result.output


def test_what_the_proxy_sends_passes_the_gate():
    (site,) = blocks("nginx")
    assert site.count("{") == site.count("}") == 2
    (name,) = re.findall(r"server_name (\S+);", site)
    variables = {"$host": name, "$remote_addr": "198.51.100.7", "$scheme": "https"}
    given = dict(re.findall(r"proxy_set_header (\S+) (\S+);", site))
    headers = [(key, variables[value]) for key, value in given.items() if value in variables and key != "Host"]
    served = next(params for _, params in [parsed(shlex.split(line)[1:]) for line in PAGE.splitlines()
                                           if line.startswith("noregret serve --public-host")])  # fmt: skip
    tokens = Tokens(MemoryStorage())

    async def fine(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    app = Gate(fine, tokens, names=bound_to(served["host"], *served["public"]), local=True)
    pages = [("Origin", f"https://{name}")]
    assert ask(app, host=variables[given["Host"]], headers=headers).status == 403  # through a proxy, and no token yet
    secret = [("Authorization", f"Bearer {tokens.new('reader', 'default')}")]
    assert ask(app, host=variables[given["Host"]], headers=headers + secret + pages).status == 200
    assert ask(app, host="127.0.0.1:8000", headers=headers + secret + pages).status == 403  # without `Host` of the page


def test_the_numbers_of_the_page_on_threats_are_those_of_the_limits():
    limits = Limits()
    said = (
        f"{limits.body_bytes / 2**20:.0f} MiB, announced",
        f"{limits.header_bytes / 2**10:.0f} KiB, {limits.header_count} of them, within {limits.header_seconds:.0f} s",
        f"come within {limits.body_seconds:.0f} s, be taken within {limits.send_seconds:.0f} s",
        f"begins within {limits.request_seconds:.0f} s",
        f"{limits.per_second:,.0f} a second, {limits.burst:,.0f} at once after a silence, {limits.at_once} being",
        f"{limits.strangers_per_second:.0f} a second of one address",
        f"| {limits.connections:,}; where",
        f"{limits.count:,} and {limits.pending:,}",
    )
    for each in said:
        assert each in THREATS
    assert SESSION_SECONDS == 12 * 3600
    assert "for twelve hours" in THREATS
    assert all(f"| `{role}` |" in THREATS for role in ROLES)
    assert {option.name: option.default for option in serving.new.params}["expires"] == "365d"
    assert "after a year unless told" in THREATS
