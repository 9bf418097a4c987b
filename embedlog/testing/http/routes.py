"""`Routes`: a table from method and path to a handler."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from embedlog.testing.http.messages import HttpError

H = TypeVar("H", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Route(Generic[H]):
    """One row: a method, a pattern as `/subjects/{subject}/versions`, and the handler."""

    method: str
    pattern: str
    handle: H

    def match(self, path: tuple[str, ...]) -> dict[str, str] | None:
        """Return the parameters of a path; None if it has another pattern."""
        parts = self.pattern.strip("/").split("/") if self.pattern != "/" else []
        if len(parts) != len(path):
            return None
        found = {}
        for part, given in zip(parts, path, strict=True):
            if part.startswith("{"):
                found[part[1:-1]] = given
            elif part != given:
                return None
        return found


class Routes(Generic[H]):
    """Rows in order: the first row that matches answers."""

    def __init__(self, *rows: Route[H]) -> None:
        self._rows = rows

    def __iter__(self) -> Iterator[Route[H]]:
        return iter(self._rows)

    def find(self, method: str, path: tuple[str, ...]) -> tuple[Route[H], dict[str, str]]:
        """Return the row of a request and the parameters in its path.

        Raises:
            HttpError: no row has the path (404), or none has the method (405).
        """
        methods = []
        for row in self._rows:
            found = row.match(path)
            if found is not None:
                if row.method == method:
                    return row, found
                methods.append(row.method)
        if methods:
            told = {"error_code": 405, "message": "HTTP 405 Method Not Allowed"}
            raise HttpError(405, told, Allow=", ".join(sorted(methods)))
        raise HttpError(404, {"error_code": 404, "message": "HTTP 404 Not Found"})
