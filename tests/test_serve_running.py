"""`nilregret serve` as users start it: who may reach it, what it does with what is no request, and how it ends."""

import contextlib
import json
import logging
import os
import signal
import socket
import sys

import pytest
import uvicorn
from click.testing import CliRunner

import nilregret as nr
from nilregret.__main__ import main
from nilregret.serve.auth import origin_checks
from nilregret.serve.http import server as running

from .serving import Served
from .waiting import LONG, until

STUDY = {"space": {"price": {"type": "float", "low": 0.0, "high": 1.0}}, "grid": 12}


def run(*args, code=0):
    result = CliRunner().invoke(main, list(args))
    assert result.exit_code == code, result.output
    return result


def refused(port):
    """Whether nobody listens there."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=LONG).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        pass
    return False


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_one_command_serves_this_machine_and_sigterm_ends_it(folder):
    with Served(folder) as served:
        assert served.said["open"] is True
        assert served.ask("GET", "/healthz")[0] == 200
        assert served.ask("PUT", "/v1/studies/a", STUDY)[0] == 201
        assert served.ask("POST", "/v1/studies/a/decisions", {})[0] == 201
        assert served.ask("GET", "/v1/studies", host="evil.example")[0] == 421
        assert served.ask("GET", "/v1/studies", Origin="http://evil.example")[0] == 403
        assert served.ask("DELETE", "/v1/studies/a", Origin="http://evil.example")[0] == 403
        answered, headers, _ = served.ask("GET", "/v1/studies")
        assert (answered, headers["x-frame-options"], "server" in headers) == (200, "deny", False)
        made = run("token", "new", "--role", "reader").stdout.strip()  # while it runs
        served.wait(401, "/v1/studies")
        assert served.ask("GET", "/v1/studies", token=made)[0] == 200
        assert served.ask("POST", "/v1/studies/a/decisions", {}, token=made)[0] == 403
        assert served.stop() == (0, "")
    assert (folder / "nilregret.db").stat().st_mode & 0o777 == 0o600 or os.name != "posix"


@pytest.mark.nightly
def test_a_stream_that_somebody_listens_to_holds_up_nothing(folder):
    with Served(folder) as served:
        assert served.ask("PUT", "/v1/studies/a", STUDY)[0] == 201
        assert served.ask("POST", "/v1/studies/a/decisions", {})[0] == 201
        listener = socket.create_connection(("127.0.0.1", served.port), timeout=LONG)
        head = "GET /v1/studies/a/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n"
        listener.sendall(head.encode())
        heard = b""
        while b"event: asked" not in heard:  # in one piece or in two
            heard += listener.recv(65_536)
        assert served.stop() == (0, "")  # nothing was cut off, or it would say so
        assert served.rest(listener).endswith(b"0\r\n\r\n")  # the end of the stream
        listener.close()


def test_what_is_no_request_is_refused_and_who_is_silent_is_cut_off(folder):
    script = (
        "import sys; from nilregret.serve.http import server as running\n"
        "from nilregret.serve.wire.settings import Settings\n"
        "from nilregret.serve.wire.settings import Limits\n"
        "limits = Limits(header_seconds=1.0, body_seconds=1.0, connections=8)\n"
        "service = running.Service('sqlite:///a.db', '127.0.0.1', Settings(limits=limits))\n"
        "listener = running.listening('127.0.0.1', 0)\n"
        'print(\'{"dashboard": "x:%d/"\\n}\' % listener.getsockname()[1], flush=True)\n'
        "running.run(service, listener)\n"
    )
    with Served(folder, command=[sys.executable, "-c", script]) as served:
        served.wait()
        for data in (b"\0\1\2\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"A" * 50_000, b"\x16\x03\x01" * 99):
            assert served.send(data).startswith((b"HTTP/1.1 400", b"HTTP/1.1 4"))
        address = ("127.0.0.1", served.port)
        silent = [socket.create_connection(address, timeout=LONG) for _ in range(3)]
        silent[1].sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        silent[2].sendall(b"POST /v1/studies HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\n{")
        assert [served.rest(each)[:12] for each in silent] == [b"", b"", b"HTTP/1.1 408"]
        limit = []
        for _ in range(40):  # more than there is room for: whoever has been silent longest goes
            with contextlib.suppress(OSError):
                limit.append(socket.create_connection(address, timeout=LONG))
        served.wait()
        for each in [*silent, *limit]:
            each.close()


def test_what_others_can_reach_needs_a_token_first(folder):
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.org", "127.0.0.2"):
        said = run("serve", "--host", host, "--port", "0", code=1).stderr
        assert "token new" in said
        assert host in said
    token = json.loads(run("token", "new", "--json", "--expires", "1h").stdout)
    run("token", "revoke", token["id"])
    assert "none that is valid" in run("serve", "--host", "0.0.0.0", code=1).stderr
    token = run("token", "new").stdout.strip()
    with Served(folder, "--host", "0.0.0.0", "--public-host", "shop.example") as served:
        assert served.said["open"] is False
        assert served.ask("GET", "/v1/studies")[0] == 401
        assert served.ask("GET", "/v1/studies", host="shop.example", token=token)[0] == 200
        assert served.ask("GET", "/v1/studies", host="192.0.2.1:80", token=token)[0] == 200
        assert served.ask("GET", "/v1/studies", host="rebound.example", token=token)[0] == 421
        assert served.stop(signal.SIGINT)[0] == 0


def test_what_cannot_be_served(folder):
    assert "leave out --workers" in run("serve", "--workers", "2", code=1).stderr
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = run("serve", "--port", str(taken.getsockname()[1]), code=1).stderr
    assert "Another program may have that port" in said
    run("serve", "--port", "70000", code=2)
    assert "no folder" not in run("serve", "--storage", "sqlite:////nowhere/a.db", code=1).stderr
    assert "only SQLite and PostgreSQL" in run("serve", "--storage", "mysql://a", code=1).stderr


@pytest.mark.nightly
def test_several_processes_on_postgresql(folder, places):
    place = places("postgresql")()
    token = json.loads(run("token", "new", "--storage", place, "--role", "admin", "--json").stdout)
    with Served(folder, "--storage", place, "--workers", "2") as served:
        secret = token["token"]
        served.wait()
        assert served.ask("PUT", "/v1/studies/a", STUDY, token=secret)[0] == 201
        for number in range(6):
            status, _, said = served.ask("POST", "/v1/studies/a/decisions", {}, token=secret)
            assert (status, json.loads(said)["decisions"][0]["number"]) == (201, number)
        assert served.ask("PUT", "/v1/studies/b", STUDY, token=secret)[0] == 201
        assert served.ask("POST", "/v1/studies/b/decisions", {}, token=secret)[0] == 201

        def told():
            text = served.ask("GET", "/metrics", token=secret)[2].decode()
            return {
                line for line in text.splitlines() if line.startswith(("nilregret_decisions", "nilregret_process_d"))
            }

        of = {f'{name}_total{{study="{study}",tenant="default"}} {count}.0' for study, count in (("a", 6), ("b", 1))
              for name in ("nilregret_decisions", "nilregret_process_decisions")}  # fmt: skip
        until(lambda: all(told() == of for _ in range(8)))  # whichever process answers
        run("token", "revoke", "--storage", place, token["id"])
        until(lambda: {served.ask("GET", "/v1/studies", token=secret)[0] for _ in range(6)} == {401})
        code, said = served.stop()
        assert code == 0, said
    assert "Traceback" not in said
    with Served(folder, "--storage", place, "--workers", "2") as served:
        served.wait()
        served.process.kill()  # nobody tells its processes to stop
        until(lambda: refused(served.port))


def test_what_is_no_address_no_name_and_no_proxy_is_refused_before_anything_is_begun(folder):
    for host in ("", " ", "127.0.0.1:8000", "http://localhost", "unix:/tmp/x.sock", "/tmp/x.sock", "*", "a b", "a..b",
                 "127.0.0.1,::1", "[127.0.0.1", "-x-"):  # fmt: skip
        said = run("serve", "--port", "0", "--host", host, code=1).stderr
        assert "write an address of this machine" in said
    for name in ("https://decide.example.org", "decide.example.org:443", "", "*", "decide.example.org/", "a_b:"):
        assert "write the name as it stands" in run("serve", "--public-host", name, code=1).stderr
    for proxy in ("nginx", "*", "127.0.0.1:80", "127.0.0.1;::1", ""):
        assert "`--proxy` is" in run("serve", "--proxy", proxy, code=1).stderr
    assert not list(folder.iterdir())
    assert origin_checks.check_address("[::1]") == "::1"
    assert origin_checks.check_name("fd00::1") == "[fd00::1]"
    assert origin_checks.check_proxies("127.0.0.1, 10.0.0.0/8,::1") == "127.0.0.1, 10.0.0.0/8,::1"


def test_a_folder_that_cannot_be_written_to_is_said_to_be_that(folder):
    closed = folder / "closed"
    closed.mkdir(mode=0o500)
    place = "/proc" if os.geteuid() == 0 else closed  # root may write to the other one
    for command in (("serve", "--port", "0"), ("token", "new")):
        said = run(*command, "--storage", f"sqlite:///{place}/a.db", code=4).stderr
        assert "cannot be written to; check the permissions" in said
        assert "deleted" not in said


@pytest.mark.nightly
@pytest.mark.skipif(os.name != "posix", reason="files have no such modes there")
def test_a_file_that_the_service_makes_is_its_owner_s_alone(folder):
    made = run("token", "new", "--storage", f"sqlite:///{folder}/a.db").stdout.strip()
    assert made
    assert (folder / "a.db").stat().st_mode & 0o777 == 0o600
    with Served(folder, "--storage", f"sqlite:///{folder}/b.db") as served:
        served.ask("PUT", "/v1/studies/s", {"arms": [[0.0], [1.0]]})
        assert {path.name: path.stat().st_mode & 0o777 for path in folder.glob("b.db*")} == {
            "b.db": 0o600, "b.db-wal": 0o600, "b.db-shm": 0o600
        }  # fmt: skip
    nr.Study(
        nr.gp_ucb(nr.Arms.grid(0, 1, 3), nr.SquaredExponential(0.2), noise=0.1), storage=f"sqlite:///{folder}/c.db"
    )
    (folder / "c.db").chmod(0o644)
    with Served(folder, "--storage", f"sqlite:///{folder}/c.db", command=None) as served:
        served.wait()
    assert (folder / "c.db").stat().st_mode & 0o777 == 0o644  # whoever made it may want others to look


@pytest.mark.nightly
def test_who_may_only_read_and_write_tables_serves_once_they_are_there(folder, postgres):
    """The recipe of docs/deployment.md for a user of the database without further rights."""
    server = postgres
    server.execute("CREATE ROLE shop LOGIN")
    own = server.url()
    schema = own.rpartition("%3D")[2]
    server.execute(f"GRANT USAGE ON SCHEMA {schema} TO shop")
    place = own.replace("postgres@", "shop@")
    said = run("serve", "--port", "0", "--storage", place, code=4).output
    assert "permission denied" in said
    assert "Traceback" not in said
    token = run("token", "new", "--role", "admin", "--storage", own).stdout.strip()  # makes all tables there are
    said = run("serve", "--port", "0", "--storage", place, code=4).output
    assert "permission denied" in said
    server.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO shop")
    server.execute(f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO shop")
    with Served(folder, "--storage", place) as served:
        assert served.ask("PUT", "/v1/studies/a", STUDY, token=token)[0] == 201
        assert served.ask("POST", "/v1/studies/a/decisions", {}, token=token)[0] == 201
        assert served.stop()[0] == 0
    run("token", "new", "--storage", place)


def test_a_process_that_begins_while_the_database_is_away_says_so_in_a_sentence(caplog):
    with pytest.raises(SystemExit) as ended:
        running.Service("postgresql://u:hidden@127.0.0.1:1/x", "127.0.0.1")()
    assert ended.value.code == 4
    (record,) = caplog.records
    assert record.exc_info is None
    assert "cannot be reached" in record.getMessage()
    assert "hidden" not in record.getMessage()


def test_a_server_error_in_the_log_has_no_control_characters(folder, monkeypatch, capsys):
    def fail(*_, **__):
        try:
            raise ValueError("\x1b]0;taken\x07")
        except ValueError:
            logging.getLogger("uvicorn.error").exception("Exception in ASGI application")

    monkeypatch.setattr(uvicorn.Server, "run", fail)
    with socket.socket() as listener:
        running.run(running.Service(f"sqlite:///{folder}/a.db", "127.0.0.1"), listener)
    said = capsys.readouterr().err
    assert "\x1b" not in said
    assert "\\x1b]0;taken" in said


def test_the_password_of_the_storage_is_not_shown(folder):
    said = run("serve", "--storage", "postgresql://u:hidden@127.0.0.1:1/x", code=4).output
    assert "u:***@127.0.0.1" in said
    assert "hidden" not in said
