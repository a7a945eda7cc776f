"""What the server does with requests as they come over a socket, whichever code parses them."""

import json
import socket

import pytest

from .serving import Served
from .waiting import LONG, until

STUDY = {"space": {"price": {"type": "float", "low": 0.0, "high": 1.0}}, "grid": 12}
HOST = "Host: 127.0.0.1\r\n"
EVENTS = f"/v1/studies/a/events HTTP/1.1\r\n{HOST}Accept: text/event-stream\r\n\r\n"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with Served(tmp_path_factory.mktemp("sockets")) as server:
        assert server.ask("PUT", "/v1/studies/a", STUDY)[0] == 201
        assert server.ask("POST", "/v1/studies/a/decisions", {})[0] == 201
        yield server


def half_closed(served, text):
    """What comes back to a client that ends its side after these bytes."""
    with socket.create_connection(("127.0.0.1", served.port), timeout=LONG) as connection:
        connection.sendall(text.encode())
        connection.shutdown(socket.SHUT_WR)
        return served.rest(connection)


@pytest.mark.parametrize("coding", ["gzip, chunked", "gzip,chunked", "chunked, chunked", "identity, chunked", "gzip",
                                    "xchunked", "gzip\r\nTransfer-Encoding: chunked"])  # fmt: skip
@pytest.mark.parametrize("path", ["/v1/studies/a/decisions", "/healthz", "/login", "/nowhere"])
def test_a_body_in_another_encoding_is_refused_and_ends_the_connection(served, coding, path):
    head = f"POST {path} HTTP/1.1\r\n{HOST}Content-Type: application/json\r\nTransfer-Encoding: {coding}\r\n\r\n"
    said = served.send(f"{head}2\r\n{{}}\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\n{HOST}\r\n".encode())
    assert said.startswith(b"HTTP/1.1 400 ")
    assert said.count(b"HTTP/1.1 ") == 1


def test_a_body_in_chunks_is_taken(served):
    head = f"POST /v1/studies/a/decisions HTTP/1.1\r\n{HOST}Content-Type: application/json\r\nConnection: close\r\n"
    for coding in ("chunked", "Chunked"):
        said = served.send(f"{head}Transfer-Encoding: {coding}\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n".encode())
        assert said.startswith(b"HTTP/1.1 201 ")


def test_a_client_that_ends_its_side_gets_its_answers(served):
    get, ask = f"GET /healthz HTTP/1.1\r\n{HOST}\r\n", f"POST /v1/studies/a/decisions HTTP/1.1\r\n{HOST}"
    body = "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    assert half_closed(served, get).startswith(b"HTTP/1.1 200 ")
    assert b'"decisions"' in half_closed(served, ask + body)
    assert half_closed(served, get + ask + body + get).count(b"HTTP/1.1 20") == 3
    assert half_closed(served, f"GET /v1/studies/a/export?format=csv HTTP/1.1\r\n{HOST}\r\n").endswith(b"0\r\n\r\n")
    cut = half_closed(served, get + ask + body[:-1])  # the last request never comes to its end
    assert cut.startswith(b"HTTP/1.1 200 ")
    assert b"201" not in cut
    assert half_closed(served, "") == b""


def test_a_listener_that_ends_its_side_is_gone(served):
    before = served.ask("GET", "/v1/studies/a")[2]
    with socket.create_connection(("127.0.0.1", served.port), timeout=LONG) as connection:
        connection.sendall(f"GET {EVENTS}".encode())
        heard = b""
        while b"event: asked" not in heard:
            heard += connection.recv(65_536)
        connection.shutdown(socket.SHUT_WR)
        until(lambda: connection.recv(65_536) == b"")
    assert json.loads(before)["name"] == "a"


def test_head_of_a_stream_ends_and_the_connection_goes_on(served):
    with socket.create_connection(("127.0.0.1", served.port), timeout=LONG) as connection:
        connection.sendall(f"HEAD {EVENTS}GET /healthz HTTP/1.1\r\n{HOST}Connection: close\r\n\r\n".encode())
        first, second = served.rest(connection).split(b"\r\n\r\n", 1)
    assert first.startswith(b"HTTP/1.1 200 ")
    assert b"text/event-stream" in first
    assert second.startswith(b"HTTP/1.1 200 ")
    for path in (
        "/studies",
        "/studies/a",
        "/v1/studies/a/export?format=csv",
        "/v1/studies/a",
        "/metrics",
        "/openapi.json",
    ):
        status, _, body = served.ask("HEAD", path)
        assert (status, body) == (200, b"")


@pytest.mark.parametrize(("path", "methods"), [
    ("/v1/studies/a", "GET, HEAD, PATCH, PUT"), ("/v1/studies/a/arms", "GET, HEAD, POST"),
    ("/v1/studies/a/decisions", "POST"), ("/v1/studies/a/arms/1", "DELETE, PUT"), ("/v1/studies/a/rewards", "POST"),
    ("/studies/a/actions/tell", "GET, HEAD, POST"), ("/new", "GET, HEAD, POST"), ("/healthz", "GET, HEAD"),
    ("/openapi.json", "GET, HEAD"), ("/static/dashboard.css", "GET, HEAD"),
])  # fmt: skip
def test_a_method_that_an_address_does_not_take(served, path, methods):
    for method in ("OPTIONS", "TRACE"):
        status, headers, _ = served.ask(method, path)
        assert (status, headers["allow"].upper()) == (405, methods)
    refused = served.ask("GET", "/v1/studies/a/decisions", Accept="text/html")
    assert refused[0] == 405
    assert refused[1]["allow"] == "post"


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_health_is_told_without_a_host(served, path):
    last = "Connection: close\r\n"
    for head in ("GET / HTTP/1.0\r\n", f"HEAD / HTTP/1.0\r\n{last}", f"GET / HTTP/1.1\r\n{last}",
                 f"GET / HTTP/1.1\r\nHost:\r\n{last}"):  # fmt: skip
        assert b" 200 " in served.send(f"{head.replace('/', path, 1)}\r\n".encode())[:16], head
    foreign = f"GET {path} HTTP/1.1\r\nConnection: close\r\n"
    assert b" 421 " in served.send(f"{foreign}Host: evil.example\r\n\r\n".encode())[:16]
    assert b" 403 " in served.send(f"{foreign}Origin: http://evil.example\r\n\r\n".encode())[:16]
    assert b" 421 " in served.send(b"GET /v1/studies HTTP/1.0\r\n\r\n")[:16]
    assert b" 421 " in served.send(f"POST {path} HTTP/1.0\r\n\r\n".encode())[:16]
