"""A server under attack: what becomes of hostile requests, of who is honest meanwhile, and of what is on record."""

import contextlib
import json
import os
import resource
import signal
import socket
import threading
import time
from collections import Counter
from pathlib import Path

from nilregret.serve.auth.tokens import Tokens
from nilregret.storage import SqlStorage

from ..serving import Served
from ..waiting import LONG
from .shots import KINDS, Target, shots

SPACE = {
    "space": {"x": {"type": "float", "low": 0.0, "high": 1.0}}, "grid": 12, "about": {"note": "secret-figures"},
}  # fmt: skip
MARKS = (b"root:", b"Traceback", b"sqlite:", b"site-packages", b"secret-figures")  # in no answer
MORE = 0.02
LATE = 0.2  # seconds after which a request that is broken is taken for one that will not be answered
# A server that does not turn strangers away for being many, so that all that they send is looked at.
SERVER = """
import sys
from nilregret.serve.http import server as running
from nilregret.serve.wire.settings import Limits
from nilregret.serve.wire.settings import Settings
limits = Limits(per_second=1e9, burst=1e9, strangers_per_second=1e9, strangers_burst=1e9, header_seconds=5.0,
                body_seconds=5.0, body_bytes=1 << 20)
listener = running.listening("127.0.0.1", 0)
print('{"dashboard": "x:%d/"\\n}' % listener.getsockname()[1], flush=True)
running.run(running.Service(sys.argv[1], "127.0.0.1", Settings(limits=limits)), listener)
"""


class Report:
    """What happened: statuses by kind of attack, and what must not happen."""

    def __init__(self):
        self.lock = threading.Lock()
        self.statuses = {kind.__name__: Counter() for kind in KINDS}
        self.faults = Counter()
        self.examples = {}
        self.honest = []  # seconds that each honest request took
        self.sent = 0

    def fault(self, what, shot=None, answer=b""):
        with self.lock:
            self.faults[what] += 1
            if shot is not None:
                self.examples.setdefault(what, (shot.kind, shot.data[:300], answer[:300]))

    def seen(self, shot, statuses, answer):
        with self.lock:
            self.sent += 1
            self.statuses[shot.kind].update(statuses or ["nothing"])
        for status in statuses:
            if status >= 500:
                self.fault(f"{shot.kind}: answered {status}", shot, answer)
            elif status not in shot.may:
                self.fault(
                    f"{shot.kind}: let in with {status}" if status < 400 else f"{shot.kind}: {status}", shot, answer
                )
        if shot.whole and not statuses:
            self.fault(f"{shot.kind}: no answer", shot)
        for mark in MARKS:
            if mark in answer:
                self.fault(f"{shot.kind}: {mark!r} in an answer", shot, answer)


class Line:
    """A connection that is kept for as long as the server keeps it."""

    def __init__(self, port):
        self.port, self.socket = port, None

    def send(self, shot):
        """Statuses of what came back, and all of it."""
        if not shot.whole:
            return self._broken(shot)
        for again in (True, False):
            fresh = self.socket is None
            if fresh:
                self.socket = socket.create_connection(("127.0.0.1", self.port), timeout=LONG)
                self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with contextlib.suppress(ConnectionError):
                self.socket.sendall(shot.data)
            try:
                answer, keep = self._one(shot.head)
            except (ConnectionError, TimeoutError):
                answer, keep = b"", False
            if not keep:
                self.close()
            if answer or fresh or not again:  # a kept connection may have been closed before this request came
                return _statuses(answer), answer
        return [], b""

    def _one(self, head):
        answer = b""
        while True:
            while b"\r\n\r\n" not in answer:
                answer += self._part()
            start, _, body = answer.partition(b"\r\n\r\n")
            lines = start.lower().split(b"\r\n")
            if b" 100 " not in lines[0]:
                break
            answer = body
        lengths = [int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:")]
        while not head and lengths and len(body) < lengths[0]:
            part = self._part()
            answer, body = answer + part, body + part
        return answer, bool(lengths) and b"connection: close" not in lines

    def _part(self):
        part = self.socket.recv(65_536)
        if not part:
            raise ConnectionResetError
        return part

    def _broken(self, shot):
        answer = b""
        with socket.create_connection(("127.0.0.1", self.port), timeout=LONG) as connection:
            connection.settimeout(LATE)
            with contextlib.suppress(ConnectionError, TimeoutError):
                connection.sendall(shot.data)
            with contextlib.suppress(ConnectionError, TimeoutError):
                while part := connection.recv(65_536):
                    answer += part
                    connection.settimeout(MORE)  # an answer that begins comes at once
        return _statuses(answer), answer

    def close(self):
        if self.socket is not None:
            self.socket.close()
            self.socket = None


def _statuses(answer):
    """Of all answers in it: there are several where there was more than one request."""
    return [int(part[:3]) for part in answer.split(b"HTTP/1.1 ")[1:] if part[:3].isdigit()]


def prepared(served, place):
    """A study of somebody's, one of the attacker's, and the attacker's tokens."""
    tokens = Tokens(SqlStorage(place))
    victim = tokens.new("admin", "victim")
    decider, admin = tokens.new("decider", "mallory"), tokens.new("admin", "mallory")
    expired, revoked = tokens.new("admin", "victim", expires=0.01), tokens.new("admin", "victim")
    tokens.revoke(tokens.list()[-1].id)
    served.wait()
    time.sleep(1.2)  # until the server has heard of the last one
    ids = []
    for token, name in ((victim, "secret-prices"), (admin, "own")):
        assert served.ask("PUT", f"/v1/studies/{name}", SPACE, token=token)[0] == 201
        ids.append(
            json.loads(served.ask("POST", f"/v1/studies/{name}/decisions", {}, token=token)[2])["decisions"][0]["id"]
        )
    known = Target(
        f"127.0.0.1:{served.port}", "secret-prices", ids[0], "own", decider, admin,
        (expired, revoked, ids[0], "nr_" + "A" * 43),
    )  # fmt: skip
    return known, victim


def honest(served, token, report, stop):
    """Somebody who goes on deciding meanwhile; every decision that was acknowledged must be on record afterwards."""
    done = 0
    while not stop.is_set():
        began = time.monotonic()
        try:
            status, _, said = served.ask("POST", "/v1/studies/secret-prices/decisions", {}, token=token)
            assert status == 201, said
            id = json.loads(said)["decisions"][0]["id"]  # noqa: A001
            path = f"/v1/studies/secret-prices/decisions/{id}/reward"
            assert served.ask("PUT", path, {"reward": 0.5}, token=token)[0] == 200
        except (OSError, AssertionError, IndexError) as error:
            report.fault(f"an honest caller was not served: {error!r}"[:200])
        else:
            done += 1
            report.honest.append((time.monotonic() - began) / 2)
        stop.wait(0.25)
    return done


def slow(served, count, seconds):
    """So many connections that send a byte now and then; how many of them the server has let go of."""
    lines = []
    for i in range(count):
        with contextlib.suppress(OSError):
            line = socket.create_connection(("127.0.0.1", served.port), timeout=5)
            line.sendall(b"POST /login HTTP/1.1\r\n" if i % 2 else b"")
            lines.append(line)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(0.5)
        for line in lines:
            with contextlib.suppress(OSError):
                line.send(b"X")
    gone = 0
    for line in lines:
        line.settimeout(0.01)
        try:
            while line.recv(1000):  # a refusal
                pass
            gone += 1
        except ConnectionError:
            gone += 1
        except TimeoutError:
            pass
        line.close()
    return gone, len(lines)


def _memory(pid):
    """Megabytes, where the system says so."""
    status = Path(f"/proc/{pid}/status")
    lines = status.read_text().split("\n") if status.exists() else []
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS")), 0.0)


def attack(count, folder, *, seed=0, threads=24, slow_lines=200, slow_seconds=8.0):
    """So many shots at a server of one's own; the report.

    Args:
        count: of requests.
        folder: for its database.
        seed: of what is sent.
        threads: that send.
        slow_lines: connections that send a byte now and then, afterwards.
        slow_seconds: for so long.
    """
    import sys

    report = Report()
    place = f"sqlite:///{folder}/attacked.db"
    with Served(folder, command=[sys.executable, "-c", SERVER, place]) as served:
        target, victim = prepared(served, place)
        before = served.ask("GET", "/v1/studies/own/export?format=jsonl", token=target.admin)[2]
        report.memory = [_memory(served.process.pid)]
        stop, done = threading.Event(), []
        caller = threading.Thread(target=lambda: done.append(honest(served, victim, report, stop)))
        caller.start()
        began = time.monotonic()
        firing = [
            threading.Thread(target=_fire, args=(served, target, report, count // threads, seed * 1000 + i))
            for i in range(threads)
        ]
        for each in firing:
            each.start()
        for each in firing:
            each.join()
        report.seconds = time.monotonic() - began
        report.slow = slow(served, slow_lines, slow_seconds) if slow_lines else (0, 0)
        stop.set()
        caller.join()
        report.memory.append(_memory(served.process.pid))
        _reckoned(served, target, victim, before, done[0], report)
        used = _children()
        code, report.log = served.stop()
        report.cpu = _children() - used
        if code not in (0, -signal.SIGTERM):  # uvicorn ends itself by the signal that stopped it
            report.fault(f"the server ended with {code}")
    report.decided = done[0]
    return report


def _children():
    """Seconds of processor that processes of ours which have ended used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _fire(served, target, report, count, seed):
    line = Line(served.port)
    for shot in shots(count, target, seed):
        try:
            statuses, answer = line.send(shot)
        except OSError as error:
            line.close()
            report.fault(f"{shot.kind}: {error!r}", shot)
            continue
        report.seen(shot, statuses, answer)
    line.close()


def _reckoned(served, target, victim, before, done, report):
    """What is on record is what honest callers were told, and nothing else."""
    if served.process.poll() is not None:
        report.fault("the server is gone")
        return
    whole = json.loads(served.ask("GET", "/v1/studies/secret-prices", token=victim)[2])["trials"]
    if (whole["observed"], whole["all"]) != (done, done + 1):
        report.fault(f"of the victim's study {done} answers were acknowledged, and it has {whole}")
    if served.ask("GET", "/v1/studies/own/export?format=jsonl", token=target.admin)[2] != before:
        report.fault("the attacker's own study has changed by requests that were refused")
    found = json.loads(served.ask("GET", "/v1/studies", token=target.admin)[2])["studies"]
    if [study["name"] for study in found] != ["own"]:
        report.fault(f"studies that nobody should have made: {[study['name'] for study in found]}"[:300])
    if os.path.exists("/tmp/nilregret-was-here"):  # noqa: PTH110
        report.fault("a command was run")


def summary(report):
    """For people."""
    each = 1e3 * report.cpu / report.sent
    lines = [f"{report.sent} hostile requests in {report.seconds:.0f} s, {each:.2f} ms of processor each"]
    for kind, statuses in report.statuses.items():
        said = ", ".join(f"{status}: {count}" for status, count in sorted(statuses.items(), key=str))
        lines.append(f"  {kind:<9} {said}")
    took = sorted(report.honest) or [0.0]
    lines.append(
        f"honest caller meanwhile: {report.decided} decisions with rewards, median {1e3 * took[len(took) // 2]:.0f} ms "
        f"and at most {1e3 * took[-1]:.0f} ms a request"
    )
    lines.append(f"slow connections: {report.slow[0]} of {report.slow[1]} cut off")
    lines.append(f"memory of the server: {report.memory[0]:.0f} MB before, {report.memory[1]:.0f} MB after")
    for fault, number in report.faults.items():
        lines.append(f"FAULT {number} times: {fault}")
        if fault in report.examples:
            lines.append(f"  {report.examples[fault]}")
    let_in = sum(number for fault, number in report.faults.items() if "let in" in fault)
    lines.append(f"{let_in} let in, {sum(report.faults.values())} faults in all")
    return "\n".join(lines)
