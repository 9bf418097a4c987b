"""`AdminValue`: base of the values that the admin client takes and returns."""

from __future__ import annotations

from embedlog.common import Value


class AdminValue(Value):
    """A `Value` whose repr lists the fields by name."""

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in sorted(self._names))
        return f"{type(self).__name__}({shown})"
