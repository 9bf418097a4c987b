"""`ControlClient`: calls the control door over HTTP, without a package."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

from embedlog.errors import ConfigError, EmbedlogError

_TIMEOUT_SECONDS = 600.0
"""The longest answer is the one of a wait, which has a time-out of its own."""


class CannotReach(EmbedlogError, OSError):
    """Nothing answers at the address of the control door."""


class ControlError(EmbedlogError):
    """The control door refused a call. `status` 409 means that the call was right."""

    def __init__(self, status: int, body: Mapping[str, Any]) -> None:
        super().__init__(str(body.get("message", body)))
        self.status = status
        self.error = str(body.get("error"))
        """The name of the error's class at the door."""
        self.near: list[str] = list(body.get("near", ()))
        """The nearest names, if a name was misspelt."""
        self.wait: Mapping[str, Any] = body.get("wait", {})
        """The parts of a `WaitTimedOut`."""


class FailedAssertion(ControlError, AssertionError):
    """An assertion of the test kit failed at the door."""


class ControlClient:
    """Any thread may call it: each call has a connection of its own."""

    def __init__(self, url: str, token: str | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ConfigError(f"{url!r}: expected http://host:port")
        self.url = url.rstrip("/")
        self._kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._host = parts.hostname
        self._port = parts.port
        self._headers = {"Content-Type": "application/json"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"

    def get(self, path: str) -> Any:
        """Return the JSON at a path."""
        return self._send("GET", path, None)

    def call(self, path: str, arguments: Any) -> Any:
        """Make the call of a verb, and return its value as JSON.

        Raises:
            ControlError: the door refuses it.
            CannotReach: nothing answers.
        """
        return self._send("POST", path, json.dumps(arguments))["value"]

    def _send(self, method: str, path: str, body: str | None) -> Any:
        connection = self._kind(self._host, self._port, timeout=_TIMEOUT_SECONDS)
        try:
            connection.request(method, path, body, self._headers)
            answer = connection.getresponse()
            found = json.loads(answer.read())
        except (OSError, HTTPException, ValueError) as error:
            raise CannotReach(f"no control door answers at {self.url}: {error}") from None
        finally:
            connection.close()
        if answer.status != 200:
            kind = FailedAssertion if found.get("is_assertion") else ControlError
            raise kind(answer.status, found)
        return found
