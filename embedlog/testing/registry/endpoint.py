"""`Endpoint`: answers HTTP requests to the registry, with its faults and credentials."""

from __future__ import annotations

import hmac
from _thread import LockType
from typing import Any

from embedlog.testing.http.messages import HttpError, HttpRequest, HttpResponse
from embedlog.testing.registry.api import ROUTES, Exchange, Verb
from embedlog.testing.registry.catalog import Catalog
from embedlog.testing.registry.errors import RegistryError
from embedlog.testing.registry.faults import RegistryFault, RegistryRequest

_TYPES = (
    "application/vnd.schemaregistry.v1+json",
    "application/vnd.schemaregistry+json",
    "application/json",
)
"""The content types, the preferred one first."""
_BODY_TYPES = {*_TYPES, "application/octet-stream", "*/*", ""}
_REQUESTS_MAX = 10_000


class Endpoint:
    """Any thread may call `answer`, and replace `faults` and `user`."""

    def __init__(self, catalog: Catalog, lock: LockType) -> None:
        """`lock` guards the catalog."""
        self._catalog = catalog
        self._lock = lock
        self.faults: list[RegistryFault] = []
        """The rules in force. A change replaces the list."""
        self.requests: list[RegistryRequest] = []
        """The requests that were answered, at least the last 10,000."""
        self.user: tuple[str, str] | None = None
        """User and password that requests need; None for nobody."""

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Answer a request of a client."""
        verb = ""
        content_type = _TYPES[0]
        try:
            content_type = _accepted(request.headers.get("accept", ""))
            self._expect_user(request)
            path, context = _without_context(request.path)
            route, parameters = ROUTES.find(request.method, path)
            verb = route.handle.__name__
            _expect_body_type(request)
            if context is not None:
                parameters["context"] = context
            answer = self._perform(request, route.handle, parameters)
            response = HttpResponse(answer, 200, content_type)
        except HttpError as error:
            response = HttpResponse(
                dict(error.body), error.status, content_type, headers=error.headers
            )
        self._note(_seen(request, verb, response.status))
        return response

    def _perform(self, request: HttpRequest, verb: Verb, parameters: dict[str, str]) -> Any:
        acting = self._acting(request, verb.__name__)
        for fault in acting:
            if not fault.after:
                fault.act()
        with self._lock:
            answer = verb(Exchange(self._catalog, request, parameters))
        for fault in acting:
            if fault.after:
                fault.act()
        return answer

    def _acting(self, request: HttpRequest, verb: str) -> list[RegistryFault]:
        if not self.faults:
            return []
        seen = _seen(request, verb, 0)
        return [each for each in self.faults if each.take(seen)]

    def _note(self, seen: RegistryRequest) -> None:
        self.requests.append(seen)
        if len(self.requests) > 2 * _REQUESTS_MAX:
            self.requests = self.requests[-_REQUESTS_MAX:]

    def _expect_user(self, request: HttpRequest) -> None:
        if self.user is None:
            return
        given = ":".join(request.user_and_password or ())
        if not hmac.compare_digest(given.encode(), ":".join(self.user).encode()):
            body = {"error_code": 401, "message": "Unauthorized"}
            raise HttpError(401, body, WWW_Authenticate='Basic realm="SchemaRegistry"')


def _seen(request: HttpRequest, verb: str, status: int) -> RegistryRequest:
    try:
        body = request.json()
    except ValueError:
        body = request.body
    query = {name: values[-1] for name, values in request.query.items()}
    return RegistryRequest(request.method, request.target, verb, query, body, status)


def _without_context(path: tuple[str, ...]) -> tuple[tuple[str, ...], str | None]:
    """Split `/contexts/.name/...`, the address of a context, into the rest and the name."""
    if len(path) > 2 and path[0] == "contexts":
        return path[2:], path[1].strip(":")
    return path, None


def _accepted(accept: str) -> str:
    """Return the content type of the answer.

    Raises:
        RegistryError: the client accepts none that the registry has.
    """
    wanted = [each.partition(";")[0].strip().lower() for each in accept.split(",")]
    if not accept or "*/*" in wanted or "application/*" in wanted:
        return _TYPES[0]
    for each in _TYPES:
        if each in wanted:
            return each
    raise RegistryError(406, "HTTP 406 Not Acceptable")


def _expect_body_type(request: HttpRequest) -> None:
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if request.body and given not in _BODY_TYPES:
        raise RegistryError(415, "HTTP 415 Unsupported Media Type")
