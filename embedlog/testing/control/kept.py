"""`KeptObjects`: objects that the door keeps for later calls: rules, snapshots, recordings."""

from __future__ import annotations

from typing import Any

from embedlog.runtime.locks import Rank, ranked_lock
from embedlog.testing.control.tags import WrongValue

_KEPT_MAX = 10_000


class KeptObjects:
    """Objects by id, the newest 10,000. Every method may be called from any thread."""

    def __init__(self) -> None:
        self._lock = ranked_lock(Rank.KEPT)
        self._by_id: dict[str, object] = {}
        self._ids: dict[int, str] = {}
        """Identity of an object -> its id. A kept object stays alive, so its identity is unique."""
        self._counts: dict[str, int] = {}

    def __call__(self, id: str) -> Any:
        """Return an object.

        Raises:
            WrongValue: no object has that id.
        """
        with self._lock:
            if id not in self._by_id:
                raise WrongValue(f"nothing is kept under the id {id!r}")
            return self._by_id[id]

    def of(self, kind: type) -> list[Any]:
        """Return the objects of a class, the oldest first."""
        with self._lock:
            return [each for each in self._by_id.values() if isinstance(each, kind)]

    def id_of(self, value: object, name: str) -> tuple[str, bool]:
        """Keep an object; return its id, and whether it is new. Ids begin with `name`."""
        with self._lock:
            known = self._ids.get(id(value))
            if known is not None:
                return known, False
            if len(self._by_id) >= _KEPT_MAX:
                oldest = self._by_id.pop(next(iter(self._by_id)))
                del self._ids[id(oldest)]
            number = self._counts[name] = self._counts.get(name, 0) + 1
            made = f"{name}-{number}"
            self._by_id[made] = value
            self._ids[id(value)] = made
            return made, True

    def forget(self, id_: str) -> None:
        """Keep an object no more.

        Raises:
            WrongValue: no object has that id.
        """
        value = self(id_)
        with self._lock:
            self._by_id.pop(id_, None)
            self._ids.pop(id(value), None)
