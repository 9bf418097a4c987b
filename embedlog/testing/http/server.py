"""`HttpServer`: serves one application over HTTP/1.1 until `close`."""

from __future__ import annotations

import select
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs, unquote

from embedlog.runtime import real_runtime
from embedlog.testing.http.extras import load
from embedlog.testing.http.messages import HttpError, HttpRequest, HttpResponse
from embedlog.testing.http.workers import Workers

Application = Callable[[HttpRequest], HttpResponse]

_THREADS_MAX = 64
_CONNECTIONS_MAX = 512
_HEADER_SIZE_MAX = 64 << 10
_BODY_SIZE_MAX = 16 << 20
_IDLE_SECONDS = 120
_JOIN_MS = 10_000


class HttpServer:
    """Serves from its construction on, on its own threads.

    >>> from embedlog.testing.http.messages import HttpResponse
    >>> server = HttpServer(lambda request: HttpResponse({"path": request.target}), "example")
    >>> server.url.startswith("http://127.0.0.1:")
    True
    >>> server.close()
    """

    def __init__(
        self, application: Application, name: str, host: str = "127.0.0.1", port: int = 0
    ) -> None:
        """`port` 0 takes any free port. `name` is part of the threads' names.

        Raises:
            MissingExtra: waitress is not installed.
            OSError: the address cannot be used.
        """
        waitress = load("waitress.server", "http", "a server over HTTP")
        self._application = application
        self._workers = Workers(_THREADS_MAX, name)
        self._server = waitress.TcpWSGIServer(
            self._answer,
            dispatcher=self._workers,
            host=host,
            port=port,
            ident="embedlog",
            connection_limit=_CONNECTIONS_MAX,
            max_request_header_size=_HEADER_SIZE_MAX,
            max_request_body_size=_BODY_SIZE_MAX,
            channel_timeout=_IDLE_SECONDS,
            clear_untrusted_proxy_headers=True,
            # select() knows only the first 1024 descriptors of a process.
            asyncore_use_poll=hasattr(select, "poll"),
        )
        self.host: str = self._server.effective_host
        self.port = int(self._server.effective_port)
        self._is_closed = False
        self._loop = real_runtime().scheduler.start_thread(self._server.run, f"{name}-http")

    @property
    def url(self) -> str:
        """The address as `http://host:port`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    def close(self) -> None:
        """Close all connections and end the threads. Idempotent."""
        if self._is_closed:
            return
        self._is_closed = True
        # A thread that answers, and this one, write to the trigger's descriptor. It is closed after
        # all of them, because the system may give its number to another file at once.
        self._server.trigger.pull_trigger(self._close_connections)
        has_ended = self._workers.shutdown()
        self._server.trigger.pull_trigger(self._server._map.clear)  # which ends the loop
        if self._loop.join(_JOIN_MS) and has_ended:
            self._server.close()

    def _close_connections(self) -> None:
        self._server.accepting = False
        for each in list(self._server.active_channels.values()):
            each.handle_close()

    def _answer(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Answer as the WSGI application of waitress."""
        request = _request(environ)
        try:
            response = self._application(request)
        except HttpError as error:
            response = HttpResponse(dict(error.body), error.status, headers=error.headers)
        content = b"" if response.status == HTTPStatus.NO_CONTENT else response.encoded()
        headers = [
            ("Content-Type", response.content_type),
            ("Content-Length", str(len(content))),
            *response.headers.items(),
        ]
        start_response(f"{response.status} {_phrase(response.status)}", headers)
        return [b"" if request.method == "HEAD" else content]


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Status"


def _request(environ: dict[str, Any]) -> HttpRequest:
    # PATH_INFO is decoded as a whole, so an encoded slash in a name would end the segment.
    path, _, query = str(environ["REQUEST_URI"]).partition("?")
    if "://" in path:  # the absolute form of a proxy's client
        path = "/" + path.partition("://")[2].partition("/")[2]
    return HttpRequest(
        method=environ["REQUEST_METHOD"],
        path=tuple(unquote(each) for each in path.split("/") if each),
        query=parse_qs(query, keep_blank_values=True),
        headers={
            name.removeprefix("HTTP_").replace("_", "-").lower(): value
            for name, value in environ.items()
            if name.startswith("HTTP_") or name == "CONTENT_TYPE"
        },
        body=environ["wsgi.input"].read(),
        client=environ.get("REMOTE_ADDR", ""),
    )
