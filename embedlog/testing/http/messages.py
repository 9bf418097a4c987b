"""Requests, responses and errors of the HTTP server, as values."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from embedlog.errors import EmbedlogError

JSON = "application/json"


class HttpError(EmbedlogError):
    """An error with a status and a JSON body."""

    def __init__(self, status: int, body: Mapping[str, Any], **headers: str) -> None:
        super().__init__(f"{status}: {body.get('message', body)}")
        self.status = status
        self.body = body
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request, read as a whole."""

    method: str
    path: tuple[str, ...]
    """The segments of the path, each decoded: an encoded slash stays inside its segment."""
    query: Mapping[str, Sequence[str]]
    headers: Mapping[str, str]
    """By name in lower case."""
    body: bytes
    client: str
    """The client's address, without its port."""

    @property
    def target(self) -> str:
        """The path as text, its segments decoded."""
        return "/" + "/".join(self.path)

    def last(self, name: str, default: str = "") -> str:
        """Return the last value of a parameter of the query."""
        values = self.query.get(name)
        return values[-1] if values else default

    def flag(self, name: str) -> bool:
        """Return whether a parameter of the query is "true"."""
        return self.last(name).lower() == "true"

    def json(self) -> Any:
        """Return the decoded body; None if it is empty.

        Raises:
            ValueError: the body is not JSON.
        """
        try:
            return json.loads(self.body) if self.body.strip() else None
        except RecursionError:
            raise ValueError("the JSON is nested too deeply") from None

    @property
    def user_and_password(self) -> tuple[str, str] | None:
        """The credentials of basic authentication; None without any."""
        scheme, _, coded = self.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "basic":
            return None
        try:
            user, _, password = base64.b64decode(coded, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return None
        return user, password

    @property
    def bearer(self) -> str | None:
        """The bearer token; None without one."""
        scheme, _, token = self.headers.get("authorization", "").partition(" ")
        return token.strip() if scheme.lower() == "bearer" else None


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """One response. A body of bytes is sent as it is; any other body is encoded as JSON."""

    body: Any = None
    status: int = 200
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)

    def encoded(self) -> bytes:
        """Return the bytes of the body."""
        if isinstance(self.body, bytes):
            return self.body
        return json.dumps(self.body, ensure_ascii=False, separators=(",", ":")).encode()
