"""The HTTP server of the test kit: start, limits, end."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.client import HTTPConnection

import pytest

from embedlog.testing.http.messages import HttpError, HttpRequest, HttpResponse
from embedlog.testing.http.routes import Route, Routes
from embedlog.testing.http.server import HttpServer

Serve = Callable[[Callable[[HttpRequest], HttpResponse]], HttpServer]


@pytest.fixture
def serve() -> Iterator[Serve]:
    made: list[HttpServer] = []

    def start(application: Callable[[HttpRequest], HttpResponse]) -> HttpServer:
        made.append(HttpServer(application, "test"))
        return made[-1]

    yield start
    for each in made:
        each.close()


def _shown(request: HttpRequest) -> HttpResponse:
    return HttpResponse(
        {
            "path": request.path,
            "query": request.query,
            "body": request.body.decode(),
            "user": request.user_and_password,
        }
    )


def _get(server: HttpServer, path: str, **headers: str) -> tuple[int, str]:
    connection = HTTPConnection(server.host, server.port, timeout=30)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    found = answer.status, answer.read().decode()
    connection.close()
    return found


def test_a_path_is_split_before_its_segments_are_decoded(serve: Serve) -> None:
    _, text = _get(serve(_shown), "/subjects/a%2Fb/%3A.ctx%3As?x=1&x=2&y=")
    assert '"path":["subjects","a/b",":.ctx:s"]' in text
    assert '"query":{"x":["1","2"],"y":[""]}' in text


def test_the_credentials_of_basic_authentication_are_read(serve: Serve) -> None:
    server = serve(_shown)
    assert '"user":["me","a:b"]' in _get(server, "/", Authorization="Basic bWU6YTpi")[1]
    assert '"user":null' in _get(server, "/", Authorization="Basic ?")[1]
    assert '"user":null' in _get(server, "/", Authorization="Bearer bWU6YTpi")[1]


def test_an_error_of_the_application_is_json(serve: Serve) -> None:
    def refuse(_request: HttpRequest) -> HttpResponse:
        raise HttpError(418, {"message": "no"}, X_Why="because")

    server = serve(refuse)
    assert _get(server, "/") == (418, '{"message":"no"}')


def test_a_defect_of_the_application_ends_no_thread(serve: Serve) -> None:
    def fail(request: HttpRequest) -> HttpResponse:
        if request.path:
            raise RuntimeError("a defect")
        return HttpResponse("fine")

    server = serve(fail)
    assert _get(server, "/x")[0] == 500
    assert _get(server, "/") == (200, '"fine"')


def test_a_body_beyond_the_limit_is_refused(serve: Serve) -> None:
    server = serve(_shown)
    with socket.create_connection((server.host, server.port), timeout=30) as client:
        client.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n")
        assert b" 413 " in client.recv(1000)


def test_headers_beyond_the_limit_are_refused(serve: Serve) -> None:
    server = serve(_shown)
    assert _get(server, "/", Long="x" * 70_000)[0] == 431


def test_slow_clients_keep_no_thread(serve: Serve) -> None:
    server = serve(_shown)
    slow = [socket.create_connection((server.host, server.port)) for _ in range(80)]
    try:
        for each in slow:
            each.sendall(b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nhalf")
        assert _get(server, "/")[0] == 200
        workers = [t for t in threading.enumerate() if t.name == "test-worker"]
        assert len(workers) <= 2
    finally:
        for each in slow:
            each.close()


def test_requests_that_wait_do_not_keep_others_waiting(serve: Serve) -> None:
    go = threading.Event()

    def answer(request: HttpRequest) -> HttpResponse:
        if request.path:
            assert go.wait(30)
        return HttpResponse("done")

    server = serve(answer)
    waiting = [threading.Thread(target=_get, args=(server, "/wait")) for _ in range(20)]
    for each in waiting:
        each.start()
    assert _get(server, "/") == (200, '"done"')
    go.set()
    for each in waiting:
        each.join(30)
        assert not each.is_alive()


def test_close_ends_the_threads_also_with_open_connections(serve: Serve) -> None:
    before = set(threading.enumerate())
    server = serve(_shown)
    client = HTTPConnection(server.host, server.port, timeout=30)
    client.request("GET", "/")
    client.getresponse().read()  # the connection stays open
    server.close()
    server.close()
    assert set(threading.enumerate()) <= before
    with pytest.raises(OSError):
        client.request("GET", "/")
        client.getresponse().read()
    client.close()


def test_routes_tell_a_wrong_path_from_a_wrong_method() -> None:
    routes = Routes(Route("GET", "/a/{name}", len), Route("PUT", "/a/{name}", len))
    assert routes.find("PUT", ("a", "x"))[1] == {"name": "x"}
    with pytest.raises(HttpError, match="404"):
        routes.find("GET", ("a",))
    with pytest.raises(HttpError, match="405") as caught:
        routes.find("POST", ("a", "x"))
    assert caught.value.headers == {"Allow": "GET, PUT"}


def test_a_missing_package_is_an_error_that_names_the_extra() -> None:
    code = (
        "import sys; sys.modules['waitress'] = None\n"
        "from embedlog.testing.http.server import HttpServer\n"
        "HttpServer(None, 'x')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "MissingExtra: a server over HTTP needs the package 'waitress'" in done.stderr
    assert "pip install 'embedlog[http]'" in done.stderr
