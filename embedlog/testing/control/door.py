"""`ControlDoor`: serves the calls of one `Kafka` as JSON over HTTP.

    POST /v1/broker/kill         {"node_id": 1}          -> {"value": null}
    GET  /v1/broker/is_running?node_id=1                 -> {"value": false}
    GET  /verbs, /openapi.json                           the table, and its OpenAPI page

An error is {"error": "ConfigError", "message": "...", "near": ["kill"]}. On loopback the door needs
no token, but it refuses pages of browsers: other names of hosts, other origins, and bodies that are
not JSON. At other addresses each request needs the token.
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Mapping
from typing import Any, Self
from urllib.parse import urlsplit

from embedlog.errors import ConfigError, EmbedlogError
from embedlog.testing.control.kept import KeptObjects
from embedlog.testing.control.openapi import page
from embedlog.testing.control.table import table
from embedlog.testing.control.tags import WrongValue
from embedlog.testing.control.values import as_json
from embedlog.testing.control.verbs import UnknownVerb, Verb, WrongCall
from embedlog.testing.http.messages import HttpError, HttpRequest, HttpResponse
from embedlog.testing.http.server import HttpServer
from embedlog.testing.timed_out import WaitTimedOut

_LOOPBACK = {"localhost", "::1"}
_NEAR = re.compile(r"did you mean '([^']+)'")
"""The nearest name in the text of an error."""


class ControlDoor:
    """Serves from its construction on, until `close` or the end of its `Kafka`.

    >>> from embedlog.testing import Kafka
    >>> with Kafka() as kafka:
    ...     kafka.control().url.startswith("http://127.0.0.1:")
    True
    """

    def __init__(
        self, kafka: Any, host: str = "127.0.0.1", port: int = 0, token: str | None = None
    ) -> None:
        """Serve the calls of a `Kafka`. `port` 0 takes any free port.

        With a token, each request needs it.

        Raises:
            ConfigError: other machines can reach the address, and there is no token.
            MissingExtra: the extra `http` is not installed.
        """
        if token is None and not is_loopback(host):
            raise ConfigError(
                f"control at {host}: other machines can reach it, so it needs a token"
            )
        self._kafka = kafka
        self._token = token
        root: Any = type(kafka)
        self._table = table(root)
        self._kept = KeptObjects()
        self._server = HttpServer(self._answer, "embedlog-control", host, port)

    @property
    def url(self) -> str:
        """The address as `http://host:port`."""
        return self._server.url

    def close(self) -> None:
        """End the server. Idempotent."""
        self._server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<ControlDoor {self.url}>"

    # Requests

    def _answer(self, request: HttpRequest) -> HttpResponse:
        self._expect_friend(request)
        path = request.path
        if request.method == "GET" and path in {(), ("verbs",)}:
            return HttpResponse(self._table.described())
        if request.method == "GET" and path == ("openapi.json",):
            return HttpResponse(page(self._table, self.url, with_token=self._token is not None))
        try:
            verb = self._verb(path)
            value = verb.call(self._kafka, self._arguments(request, verb), self._kept)
            return HttpResponse({"value": as_json(value, self._handle)})
        except HttpError:
            raise
        except UnknownVerb as error:
            raise _failure(404, error) from None
        except (WrongCall, WrongValue) as error:
            raise _failure(400, error) from None
        except (TypeError, ValueError, LookupError) as error:
            if isinstance(error, EmbedlogError):
                raise _failure(409, error) from None
            raise _failure(400, error) from None  # of a method that checks its arguments itself
        except (EmbedlogError, AssertionError, OSError) as error:
            raise _failure(409, error) from None

    def _verb(self, path: tuple[str, ...]) -> Verb:
        if path[:1] != ("v1",):
            shown = "/" + "/".join(path)
            raise UnknownVerb(f"{shown}: expected /v1/..., /verbs or /openapi.json")
        return self._table.verb(" ".join(path[1:]))

    def _arguments(self, request: HttpRequest, verb: Verb) -> Mapping[str, Any]:
        if request.method == "GET" and verb.is_value:
            return {name: _of_query(values[-1]) for name, values in request.query.items()}
        if request.method != "POST":
            method = "GET or POST" if verb.is_value else "POST"
            text = f"{verb.name}: expected {method}, found {request.method}"
            raise HttpError(405, {"error": "WrongMethod", "message": text})
        if not request.headers.get("content-type", "").startswith("application/json"):
            text = "expected Content-Type: application/json"
            raise HttpError(415, {"error": "WrongCall", "message": text})
        try:
            found = request.json()
        except ValueError as error:
            raise WrongCall(f"the body is not JSON: {error}") from None
        if found is None:
            return {}
        if not isinstance(found, dict):
            raise WrongCall(f"expected an object with the parameters, found {found!r:.200}")
        return found

    # Access

    def _expect_friend(self, request: HttpRequest) -> None:
        if self._token is not None:
            given = (request.bearer or "").encode()
            if not hmac.compare_digest(given, self._token.encode()):
                body = {"error": "Unauthorized", "message": "the token is missing or wrong"}
                raise HttpError(401, body, WWW_Authenticate="Bearer")
            return
        for name in ("host", "origin"):
            given_host = _host(request.headers.get(name, ""), name)
            if given_host is not None and not is_loopback(given_host):
                text = f"{name} {given_host}: only this machine may call"
                raise HttpError(403, {"error": "Forbidden", "message": text})

    # Kept objects

    def _handle(self, value: object) -> dict[str, Any] | None:
        noun = self._table.noun_of(value)
        if noun is None:
            return None
        if noun.key is not None:
            return {"@noun": noun.name, "arguments": dict(noun.key(value))}
        id, is_new = self._kept.id_of(value, noun.name)
        if is_new and noun.begin is not None:
            noun.begin(value)
        return {"@noun": noun.name, "@kept": id, "@repr": f"{value!r:.200}"}


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a host."""
    return host in _LOOPBACK or host.startswith("127.")


def _host(text: str, header: str) -> str | None:
    """Return the host that a header names; None without one."""
    if not text:
        return None
    found = urlsplit(text if header == "origin" else f"//{text}").hostname
    return text if found is None else found


def _of_query(text: str) -> Any:
    """Return the JSON that a text of a query stands for, or the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _failure(status: int, error: Exception) -> HttpError:
    body: dict[str, Any] = {"error": type(error).__name__, "message": str(error)}
    near = (error.near if isinstance(error, WrongCall) else []) or _NEAR.findall(str(error))
    if near or isinstance(error, WrongCall):
        body["near"] = near
    if isinstance(error, WaitTimedOut):
        body["wait"] = {
            name: getattr(error, name) for name in ("wanted", "timeout", "seen", "near")
        }
    if isinstance(error, AssertionError):
        body["is_assertion"] = True
    return HttpError(status, body)
