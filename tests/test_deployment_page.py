"""What the pages on deployment and on threats tell to write is what the commands, the gate and the package know."""

import configparser
import json
import re
import shlex
import sqlite3
import tomllib
from contextlib import closing
from pathlib import Path

import click
from click.testing import CliRunner

from nilregret.__main__ import main
from nilregret.cli import service_commands
from nilregret.serve.api.app import OPERATIONS
from nilregret.serve.auth.middleware import AccessMiddleware
from nilregret.serve.auth.origin_checks import bound_to
from nilregret.serve.auth.tokens import ROLES, SESSION_SECONDS, Tokens
from nilregret.serve.dashboard.pages import ROUTES
from nilregret.serve.wire.settings import Limits
from nilregret.storage import MemoryStorage, SqlStorage

from .asgi import ask
from .service import AT, Client, asked, told

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
        words = [word for word in shlex.split(line, comments=True) if not word.startswith("NILREGRET_STORAGE=")]
        if words and words[0].rpartition("/")[2] == "nilregret":
            seen.append(parsed(words[1:]))
        elif words[:2] == ["podman", "run"]:
            seen.append(parsed(words[words.index("decisions") + 1 :]))
    (unit,) = blocks("ini")
    settings = configparser.ConfigParser(strict=False, interpolation=None)  # one entry may come twice
    settings.optionxform = str
    settings.read_string(unit)
    program, *words = shlex.split(settings["Service"]["ExecStart"])
    assert program.endswith("/nilregret")
    seen.append(parsed(words))
    (container,) = blocks("dockerfile")
    entry, default = (json.loads(re.search(rf"^{word} (.*)$", container, re.M)[1]) for word in ("ENTRYPOINT", "CMD"))
    assert entry == ["nilregret"]
    seen.append(parsed(default))
    assert [command for command, _ in seen].count(service_commands.serve) == 8
    assert {command.name for command, _ in seen} == {"serve", "new", "list", "revoke"}
    assert settings["Service"]["Environment"].split("=")[0] == "NILREGRET_STORAGE"
    assert "--workers" not in settings["Service"]["ExecStart"]  # with SQLite


def test_what_is_installed_are_extras_that_there_are():
    extras = tomllib.loads((HOME / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = re.findall(r"nilregret-\*\.whl\)\[([\w,]+)\]", PAGE)
    assert named
    assert {name for some in named for name in some.split(",")} <= extras.keys()


def test_an_image_runs_what_was_built_as_nobody_in_particular():
    (container,) = blocks("dockerfile")
    lines = [line.split(maxsplit=1) for line in container.replace("\\\n", "").splitlines() if line[:1].isupper()]
    said = dict(lines)
    assert lines.index(["USER", "nilregret"]) > [word for word, _ in lines].index("RUN")
    assert "useradd --system nilregret" in said["RUN"]
    folder = said["VOLUME"]
    assert f"install -d -o nilregret -m 700 {folder}" in said["RUN"]
    assert said["ENV"] == f"NILREGRET_STORAGE=sqlite:///{folder}/studies.db"
    assert f"-v decisions:{folder} " in PAGE
    assert said["COPY"].split()[0] == "dist/nilregret-*.whl"
    check = json.loads(said["HEALTHCHECK"].removeprefix("CMD "))
    compile(check[2], "HEALTHCHECK", "exec")
    assert f":{said['EXPOSE']}/healthz" in check[2]
    assert {option.name: option.default for option in service_commands.serve.params}["port"] == int(said["EXPOSE"])


def test_the_commands_for_tokens_work_as_they_stand(tmp_path, monkeypatch):
    monkeypatch.setenv("NILREGRET_STORAGE", f"sqlite:///{tmp_path}/studies.db")
    made = ""
    for line in blocks("sh")[1].splitlines():
        words = shlex.split(line)
        if words[:2] != ["nilregret", "token"]:
            continue
        result = CliRunner().invoke(main, [made if word == "TOKEN" else word for word in words[1:]])
        assert result.exit_code == 0, result.output
        if "list" in words:
            made = result.output.splitlines()[-1].split()[0]
    assert "opens nothing any more" in result.output


def test_what_the_proxy_sends_passes_the_gate():
    site, _ = blocks("nginx")
    assert site.count("{") == site.count("}") == 2
    (name,) = re.findall(r"server_name (\S+);", site)
    variables = {"$http_host": name, "$remote_addr": "198.51.100.7", "$scheme": "https"}
    given = dict(re.findall(r"proxy_set_header (\S+) (\S+);", site))
    headers = [(key, variables[value]) for key, value in given.items() if value in variables and key != "Host"]
    served = next(params for _, params in [parsed(shlex.split(line)[1:]) for line in PAGE.splitlines()
                                           if line.startswith("nilregret serve --public-host")])  # fmt: skip
    tokens = Tokens(MemoryStorage())

    async def fine(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    app = AccessMiddleware(fine, tokens, names=bound_to(served["host"], *served["public"]), local=True)
    pages = [("Origin", f"https://{name}")]
    assert ask(app, host=variables[given["Host"]], headers=headers).status == 403  # through a proxy, and no token yet
    secret = [("Authorization", f"Bearer {tokens.new('reader', 'default')}")]
    assert ask(app, host=variables[given["Host"]], headers=headers + secret + pages).status == 200
    there = [("Origin", f"https://{name}:8443")]  # another port: the variable has it, as the browser's `Origin` has
    assert ask(app, host=f"{name}:8443", headers=headers + secret + there).status == 200
    assert given["X-Forwarded-For"] == "$remote_addr"  # and not what the caller claims
    assert ask(app, host="127.0.0.1:8000", headers=headers + secret + pages).status == 403  # without `Host` of the page


def test_all_addresses_of_a_study_lead_to_one_process():
    """Which nginx chooses by what the map makes of an address."""
    _, several = blocks("nginx")
    (pattern,) = re.findall(r"^    ~(\S+) \$name;$", several, re.M)
    study = re.compile(pattern.replace("(?<", "(?P<"))
    of_studies = [
        path for path in [*(each.path for each in OPERATIONS), *(each.path for each in ROUTES)] if "{name}" in path
    ]
    assert len(of_studies) > 40
    for path in of_studies:
        assert study.match(path.replace("{name}", "a shop"))["name"] == "a shop", path
    assert study.match("/v1/studies") is None
    assert "hash $study consistent;" in several
    assert float(re.search(r"keepalive_timeout (\d+)s;", several)[1]) < Limits().header_seconds


def test_after_going_back_to_a_copy_an_id_is_of_nothing_or_of_what_the_page_says(tmp_path):
    now, copy = tmp_path / "now.db", tmp_path / "copy.db"
    with Client(SqlStorage(f"sqlite:///{now}")) as client:
        client.put(AT, {"arms": [[0.0], [1.0]]})
        kept = asked(client)
        with closing(sqlite3.connect(now)) as here, closing(sqlite3.connect(copy)) as there:
            here.backup(there)
        gone = asked(client)
    with Client(SqlStorage(f"sqlite:///{copy}")) as client:
        status, said = told(client, gone, 1.0)
        assert (status, said["error"]["kind"]) == (404, "no_decision")
        assert told(client, kept, 1.0)[0] == 200
        assert asked(client)["id"] == gone["id"]  # of another decision: hence the statement of the page
    (statement,) = [each for each in blocks("sql") if "DELETE FROM notes" in each]
    with closing(sqlite3.connect(copy)) as there, there:
        assert there.execute(statement).rowcount == 1
    with Client(SqlStorage(f"sqlite:///{copy}")) as client:
        assert {told(client, each, 0.5)[0] for each in (kept, gone)} == {404}
        assert told(client, asked(client), 1.0)[0] == 200


def test_the_numbers_of_the_page_on_threats_are_those_of_the_limits():
    limits = Limits()
    said = (
        f"{limits.body_bytes / 2**20:.0f} MiB, announced",
        f"{limits.header_bytes / 2**10:.0f} KiB, {limits.header_count} of them, within {limits.header_seconds:.0f} s",
        f"come within {limits.body_seconds:.0f} s, be taken within {limits.send_seconds:.0f} s",
        f"begins within {limits.request_seconds:.0f} s",
        f"{limits.per_second:,.0f} a second, {limits.burst:,.0f} at once after a silence, {limits.at_once} being",
        f"{limits.strangers_per_second:.0f} a second of one address",
        f"| {limits.connections:,}. Beyond",
        f"{limits.count:,} and {limits.pending:,}",
    )
    for each in said:
        assert each in THREATS
    assert SESSION_SECONDS == 12 * 3600
    assert "for twelve hours" in THREATS
    assert all(f"| `{role}` |" in THREATS for role in ROLES)
    assert {option.name: option.default for option in service_commands.new.params}["expires"] == "365d"
    assert "after a year unless told" in THREATS
