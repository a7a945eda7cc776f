"""Server processes, and a client that costs little beside them."""

import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

START_SECONDS = 600.0  # a busy machine has other things to do


_HELD = []  # sockets that nobody listens at: servers may bind to their ports, and nobody is given these as free ones


def free_port():
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    _HELD.append(held)
    return held.getsockname()[1]


def await_port(process, port, sentence, seconds):
    """Wait until a process listens; `sentence()` says that it does not."""
    until = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
        except OSError:
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(sentence()) from None
            time.sleep(0.02)
        else:
            return


class Server:
    """One process; `begin`, `kill` and `begin` again at the same port."""

    def __init__(self, *command):
        self.port = free_port()
        self._command = [sys.executable, *(str(self.port) if part is None else part for part in command)]

    @classmethod
    def of_studies(cls, url):
        return cls("-m", "nilregret", "serve", "--storage", url, "--port", None)

    def begin(self):
        self.process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL)
        await_port(self.process, self.port, lambda: f"A server did not begin: {self._command}", START_SECONDS)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def end(self):
        self.process.terminate()
        self.process.wait(30)

    @property
    def memory(self):
        """MB of memory, at most so far."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))

    @property
    def cpu(self):
        """Seconds of processor that it has used."""
        return time.clock_gettime(~self.process.pid << 3 | 2)  # clock_getcpuclockid(3), to the nanosecond


class Connection:
    """HTTP/1.1 by hand: `http.client` would take as long as the server."""

    def __init__(self, port, token=None):
        self.port, self._socket = port, None
        self._token = "" if token is None else f"Authorization: Bearer {token}\r\n"

    def send(self, method, path, body, key=None):
        """(status, JSON); an `OSError` where there is no answer."""
        said = b"" if body is None else json.dumps(body).encode()
        named = self._token + ("" if key is None else f"Idempotency-Key: {key}\r\n")
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n{named}Content-Length: {len(said)}\r\n\r\n"
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self.port), timeout=300)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self._socket.sendall(head.encode() + said)
            return self._heard()
        except OSError:
            self.close()
            raise

    def _heard(self):
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._part()
        head, _, rest = data.partition(b"\r\n\r\n")
        status, lines = int(head.split(b" ", 2)[1]), head.lower().split(b"\r\n")
        (length,) = (int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:"))
        while len(rest) < length:
            rest += self._part()
        if b"connection: close" in lines:
            self.close()
        return status, json.loads(rest)

    def _part(self):
        part = self._socket.recv(65536)
        if not part:
            raise ConnectionResetError("the server is gone")
        return part

    def close(self):
        if self._socket is not None:
            self._socket.close()
            self._socket = None


class Persistent:
    """Connections to several servers, to any of which a request is sent again until it is answered.

    Args:
        ports: of the servers, a list that may change.
        rng: chooses the server.
        token: of the caller, if the servers ask for one.
        heard: called with the operation and the seconds of each request that was answered at once.
    """

    def __init__(self, ports, rng, token=None, *, heard=None):
        self.retries, self._rng, self._heard = 0, rng, heard
        self._connections = [Connection(port, token) for port in ports]

    def until(self, method, path, body, wanted, key=None):
        """Returns the JSON of the answer, whose status is `wanted` or among several.

        Raises:
            AssertionError: the answer is an error of the caller.
        """
        retries, began = self.retries, time.monotonic()
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        while True:
            try:
                status, said = self._rng.choice(self._connections).send(method, path, body, key)
            except (OSError, ValueError):  # a proxy's error is no JSON
                status = 500
            if status in wanted:
                if self._heard is not None and self.retries == retries:
                    self._heard(path.rpartition("/")[2], time.monotonic() - began)
                return said
            if status < 500:
                raise AssertionError(f"{method} {path} {key}: {status} {said}")
            self.retries += 1
            time.sleep(0.01)

    def close(self):
        for connection in self._connections:
            connection.close()
