"""HTTP calls to a registry, as a client without a library makes them."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

from embedlog.testing import Registry

RECORD = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
WIDER = (
    '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},'
    '{"name":"b","type":"int","default":0}]}'
)
"""Compatible with RECORD in both directions."""
BROKEN = '{"type":"record","name":"R","fields":[{"name":"c","type":"int"}]}'
"""Cannot read data of RECORD."""


class Calls:
    """Calls to one registry."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        parts = urlsplit(registry.url)
        self._connection = HTTPConnection(str(parts.hostname), parts.port, timeout=30)
        self.headers: dict[str, str] = {}

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Return the decoded answer of a call that succeeds, or the error code."""
        status, _, text = self.raw(method, path, body, **headers)
        answer = json.loads(text)
        return answer if status == 200 else answer["error_code"]

    def raw(
        self, method: str, path: str, body: Any = None, **headers: str
    ) -> tuple[int, dict[str, str], str]:
        """Return status, headers and text of an answer."""
        content = body if isinstance(body, bytes) or body is None else json.dumps(body)
        given = {"Content-Type": "application/vnd.schemaregistry.v1+json", **self.headers}
        given.update({name.replace("_", "-"): value for name, value in headers.items()})
        self._connection.request(method, path, content, given)
        answer = self._connection.getresponse()
        found = {name.lower(): value for name, value in answer.getheaders()}
        return answer.status, found, answer.read().decode()

    def register(self, subject: str, schema: str, **more: Any) -> Any:
        """Register a schema and return the id or the error code."""
        answer = self("POST", f"/subjects/{subject}/versions", {"schema": schema, **more})
        return answer["id"] if isinstance(answer, dict) else answer

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
