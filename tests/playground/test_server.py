"""What the server lets in: its own page, at its own address, within limits."""

import http.client
import re
import socket

import pytest
from playground.visitor import eventually
from websockets.exceptions import ConnectionClosed, InvalidStatus

from planvec.errors import InputError
from planvec.playground import server, visits


def get(playground, path="/", method="GET", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", playground.port, timeout=10)
    connection.request(method, path, headers={"Host": f"127.0.0.1:{playground.port}"} | headers)
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer, body


def test_the_page_comes_with_strict_headers(playground):
    answer, body = get(playground)
    assert answer.status == 200 and "Plan arithmetic" in body and "{{" not in body
    policy = dict(part.strip().partition(" ")[::2] for part in answer.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'" and policy["script-src"] == policy["style-src"] == "'self'"
    assert policy["connect-src"] == f"'self' ws://127.0.0.1:{playground.port}"
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert answer.headers["x-content-type-options"] == "nosniff" and answer.headers["x-frame-options"] == "DENY"
    assert "server" not in answer.headers


def test_everything_the_page_needs_is_there_and_nothing_comes_from_elsewhere(playground):
    pages = server.read_pages("crafting", ["crafting"])
    for path, (text, kind) in pages.items():
        answer, body = get(playground, path)
        assert answer.status == 200 and answer.headers["content-type"].startswith(kind)
        assert set(re.findall(r"https?://[\w./]+", text)) <= {"http://www.w3.org/2000/svg"}
        for needed in re.findall(r'(?:src|href)="(/[^"]+)"|from "\.(/[^"]+)"', body):
            assert "".join(needed) in pages


@pytest.mark.parametrize(
    "path",
    [
        "/server.py",
        "/page/app.js",
        "/../server.py",
        "/%2e%2e/server.py",
        "/etc/passwd",
        "//etc/passwd",
        "/socket",
        "/docs",
    ],
)
def test_there_are_no_other_routes(playground, path):
    assert get(playground, path)[0].status in (403, 404)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_nothing_can_be_sent(playground, method):
    assert get(playground, method=method)[0].status == 405


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost", "[::1]", "evil.example:{port}", ""]
)
def test_other_hosts_are_refused(playground, host):
    """A name that somebody made point here (DNS rebinding) is not ours."""
    answer, body = get(playground, Host=host.format(port=playground.port))
    assert answer.status in (400, 403) and "Plan arithmetic" not in body


def test_localhost_is_ours(playground):
    assert get(playground, Host=f"LocalHost:{playground.port}")[0].status == 200


def test_two_hosts_are_refused(playground):
    with socket.create_connection(("127.0.0.1", playground.port), timeout=10) as connection:
        host = f"Host: 127.0.0.1:{playground.port}\r\n"
        connection.sendall(f"GET / HTTP/1.1\r\n{host}{host}\r\n".encode())
        assert connection.recv(100).split()[1] in (b"400", b"403")


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "https://127.0.0.1:{port}", "http://127.0.0.1", "null", None]
)
def test_sockets_of_other_pages_are_refused(playground, visit, origin):
    with pytest.raises(InvalidStatus) as refused, visit(origin=origin and origin.format(port=playground.port)):
        pass
    assert refused.value.response.status_code == 403
    if origin:
        assert get(playground, Origin=origin.format(port=playground.port))[0].status == 403


def closed(visitor):
    """Why the server has closed the connection."""
    with pytest.raises(ConnectionClosed) as end:
        while True:
            visitor.hear(timeout=10)
    return end.value.rcvd.code


def test_what_is_no_message_ends_a_session(visit):
    for sent, code in (("{", 1003), ("[" * 10_000, 1003), (b"{}", 1003), ("x" * (server.LARGEST + 1), 1009)):
        with visit() as visitor:
            visitor.socket.send(sent)
            assert closed(visitor) == code, sent[:20]


def test_too_many_messages_end_a_session(visit):
    with visit() as visitor:
        for _ in range(2 * visits.BURST):
            visitor.tell(do="nothing")
        assert closed(visitor) == 1008


def test_too_many_visitors(visit, monkeypatch, playground):
    assert eventually(lambda: not playground.state.visitors)
    monkeypatch.setattr(server, "VISITORS", 1)
    with visit() as first:
        assert first.ask(do="stop")["reason"] == "open a world first"
        with visit() as second:
            assert closed(second) == 1013
        assert first.ask(do="stop")["is"] == "mistake"
    assert eventually(lambda: not playground.state.visitors)
    with visit() as third:
        assert third.ask(do="stop")["is"] == "mistake"


def test_who_does_nothing_is_sent_away(visit, monkeypatch):
    monkeypatch.setattr(server, "IDLE", 0.1)
    with visit() as visitor:
        assert closed(visitor) == 1008


def test_a_port_that_is_taken():
    with server.listen(0) as taken, pytest.raises(InputError, match="--port"):
        server.listen(taken.getsockname()[1])
    with pytest.raises(InputError, match="--port"):
        server.listen(70_000)
