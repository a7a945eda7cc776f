"""nginx as docs/deployment.md sets it up, before a service of one's own: what passes it, and as what."""

import json
import os
import re
import shutil
import socket
import ssl
import subprocess
from contextlib import contextmanager

from benchmarks.service_parts.servers import Server, await_port, free_port

from nilregret.serve.auth.tokens import Tokens
from nilregret.storage import SqlStorage

NAME = "decide.example.org"
PROGRAM = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}{os.pathsep}/usr/sbin")  # not in everybody's path
STUDY = {"space": {"price": {"type": "float", "low": 0.0, "high": 1.0}}, "grid": 12}


def began(blocks, port, folder):
    """A process of nginx with these blocks, once it listens at a port."""
    places = "".join(
        f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    config, log = folder / "nginx.conf", folder / "error.log"
    config.write_text(
        f"daemon off; worker_processes 1; pid {folder}/pid; error_log {log}; events {{}}\n"
        f"http {{ access_log off; {places}\n{blocks}\n}}\n"
    )
    process = subprocess.Popen([PROGRAM or "nginx", "-c", config], stderr=subprocess.DEVNULL)
    await_port(process, port, lambda: f"nginx did not begin: {log.read_text()}", 30)
    return process


class Site:
    """`with Site(page, folder) as site:` a service behind nginx, both on 127.0.0.1."""

    def __init__(self, page, folder):
        self.folder, self.port = folder, free_port()
        storage = SqlStorage(f"sqlite:///{folder}/studies.db")
        self.token = Tokens(storage).new("admin", "default")
        storage.close()
        (served,) = re.findall(r"^nilregret (serve --public-host \S+ --proxy \S+)$", page, re.M)
        self.server = Server("-m", "nilregret", *served.split(), "--storage", f"sqlite:///{folder}/studies.db",
                             "--port", None)  # fmt: skip
        self.block = re.findall(r"^```nginx\n(.*?)^```$", page, re.M | re.S)[0]

    def __enter__(self):
        self.server.begin()
        here, key = self.folder / "cert.pem", self.folder / "key.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", here, "-days", "2",
             "-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}"],
            check=True, capture_output=True,
        )  # fmt: skip
        block = self.block.replace("listen 443 ssl", f"listen 127.0.0.1:{self.port} ssl")
        block = block.replace("http://127.0.0.1:8000", f"http://127.0.0.1:{self.server.port}")
        block = re.sub(r"(ssl_certificate +)\S+;", rf"\1{here};", block)
        block = re.sub(r"(ssl_certificate_key +)\S+;", rf"\1{key};", block)
        self.nginx = began(block, self.port, self.folder)
        self.context = ssl.create_default_context(cafile=here)
        return self

    def __exit__(self, *_):
        self.nginx.terminate()
        self.nginx.wait(30)
        self.server.end()

    @contextmanager
    def connected(self):
        """A connection to nginx, over TLS."""
        with (
            socket.create_connection(("127.0.0.1", self.port), timeout=20) as plain,
            self.context.wrap_socket(plain, server_hostname=NAME) as connection,
        ):
            yield connection

    def ask(self, method="GET", path="/v1/studies", *, headers=(), body=b"", host=None, token=True, version="1.1"):
        """Status, headers and body of an answer."""
        lines = [f"{method} {path} HTTP/{version}", f"Host: {host or f'{NAME}:{self.port}'}", "Connection: close"]
        lines += [f"Authorization: Bearer {self.token}"] * token + [f"{name}: {value}" for name, value in headers]
        named = {name.lower() for name, _ in headers}
        if body and not named & {"content-length", "transfer-encoding"}:
            lines.append(f"Content-Length: {len(body)}")
        data = b""
        with self.connected() as connection:
            connection.sendall("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
            try:
                while part := connection.recv(65_536):
                    data += part
            except (ConnectionError, ssl.SSLError):  # it has been answered before it was sent as a whole
                pass
        head, _, rest = data.partition(b"\r\n\r\n")
        return int(head.split()[1]) if head else 0, head.decode("latin-1"), rest


def checks(site):
    """Each line: what was tried, what came, and what should have come."""
    own, there = f"https://{NAME}:{site.port}", f"{NAME}:{site.port}"
    form = ("Content-Type", "application/x-www-form-urlencoded")
    yield "a study is put", site.ask("PUT", "/v1/studies/a", body=json.dumps(STUDY).encode())[0], 201
    yield "a decision", site.ask("POST", "/v1/studies/a/decisions", body=b"{}")[0], 201
    yield "HTTP/1.0", site.ask(version="1.0")[0], 200
    yield "without a token", site.ask(token=False)[0], 401
    yield "another name", site.ask(host="evil.example")[0], 421
    yield "a page of ours", site.ask(headers=[("Origin", own)])[0], 200
    yield "a page of others", site.ask(headers=[("Origin", "https://evil.example")])[0], 403
    yield "our page without TLS", site.ask(headers=[("Origin", f"http://{there}")])[0], 403
    yield "an upgrade", site.ask(headers=[("Upgrade", "websocket")])[0], 200
    yield "2 MiB", site.ask("POST", "/v1/studies/a/decisions", body=b" " * (2 << 20))[0], 413
    both = [("Content-Length", "5"), ("Transfer-Encoding", "chunked")]
    yield "two lengths", site.ask("POST", "/v1/studies", headers=both, body=b"0\r\n\r\n")[0], 400
    for path, status in (
        ("/v1%2fstudies", 404), ("/v1/..%2f", 404), ("//v1/studies", 404), ("/v1/studies/../../metrics", 400),
        ("/v1/%00", 400), ("/%5cv1", 404),
    ):  # fmt: skip
        yield path, site.ask(path=path)[0], status
    status, head, _ = site.ask("POST", "/login", headers=[form, ("Origin", own)], body=f"token={site.token}".encode())
    cookie = re.search(r"(?im)^set-cookie: (__Host-[^;]*);.*; Secure\s*$", head)
    yield "logging in", status, 303
    yield "a cookie for TLS alone", cookie is not None, True
    yield "sent to", re.search(r"(?i)location: (\S*)", head)[1], "/"
    known = [("Cookie", cookie[1])] if cookie else []
    yield "a page", site.ask(path="/studies", headers=known, token=False)[0], 200
    planted = [("Cookie", cookie[1].replace("__Host-", ""))] if cookie else []
    yield "a planted cookie", site.ask(path="/studies", headers=planted, token=False)[0], 401
    yield "events at once", _events(site), True
    yield "strangers who say to be others", _strangers(site), True


def _events(site):
    """Whether a stream says at once what happens."""
    with site.connected() as stream:
        stream.sendall(
            f"GET /v1/studies/a/events HTTP/1.1\r\nHost: {NAME}:{site.port}\r\nAuthorization: Bearer {site.token}\r\n"
            "Accept: text/event-stream\r\n\r\n".encode()
        )
        heard = b""
        while b"event: asked" not in heard:
            heard += stream.recv(65_536)
        site.ask("POST", "/v1/studies/a/decisions", body=b"{}")
        while heard.count(b"event: asked") < 2:  # or the connection times out
            heard += stream.recv(65_536)
    return True


def _strangers(site):
    """Whether those of one address are held back together, whatever they claim."""
    with site.connected() as connection:
        request = "GET /v1/studies HTTP/1.1\r\nHost: {}\r\nX-Forwarded-For: 198.51.100.{}\r\n\r\n"
        heard = b""
        for i in range(600):
            connection.sendall(request.format(f"{NAME}:{site.port}", i % 250).encode())
            heard += connection.recv(65_536)
            if b" 429 " in heard:
                break
    return b" 429 " in heard
