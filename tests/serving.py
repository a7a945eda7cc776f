"""A server of one's own, as users start it, and requests to it that no client would send."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys

from .waiting import LONG, until


class Served:
    """`with Served(folder, "--storage", ...) as served:` a process of `nilregret serve`, at a port that was free."""

    def __init__(self, folder, *arguments, command=None):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            command or [sys.executable, "-m", "nilregret", "serve", "--port", "0", "--json", *arguments],
            cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        lines = []
        while not lines or lines[-1] not in ("}\n", ""):
            lines.append(self.process.stdout.readline())
        if lines[-1] == "":
            raise RuntimeError(self.process.stderr.read())
        self.said = json.loads("".join(lines))
        self.port = int(self.said["dashboard"].rpartition(":")[2].strip("/"))

    def ask(self, method, path, body=None, token=None, host=None, **headers):
        """Status, headers and body of an answer."""
        given = {"Host": host or f"127.0.0.1:{self.port}", "Connection": "close"}
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        if body is not None:
            given |= {"Content-Type": "application/json", "Content-Length": str(len(data))}
        if token:
            given["Authorization"] = f"Bearer {token}"
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items()), "", ""]
        answer = self.send("\r\n".join(lines).encode("latin-1") + data)
        if not answer:
            raise ConnectionResetError("The server cut the connection.")
        head, _, said = answer.partition(b"\r\n\r\n")
        first, *rest = head.decode("latin-1").split("\r\n")
        return int(first.split()[1]), dict(line.lower().split(": ", 1) for line in rest), said

    def send(self, data, *, seconds=LONG):
        """What comes back for these bytes until the other side ends."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as connection:
            with contextlib.suppress(ConnectionError):
                connection.sendall(data)
            return self.rest(connection)

    @staticmethod
    def rest(connection):
        parts = []
        with contextlib.suppress(ConnectionError):
            while part := connection.recv(65_536):
                parts.append(part)
        return b"".join(parts)

    def wait(self, status=200, path="/healthz", **how):
        """Until it answers with this."""

        def answers():
            with contextlib.suppress(ConnectionError):
                return self.ask("GET", path, **how)[0] == status

        until(answers)

    def stop(self, how=signal.SIGTERM):
        """Its exit code, and what it said on stderr."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        _, said = self.process.communicate(timeout=LONG)
        return self.process.returncode, said

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate(timeout=LONG)
