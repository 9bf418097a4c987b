"""`Value`: an immutable object that consists of its fields.

It does the work of `dataclasses`. To load that module and its imports (`inspect`, `ast`) took 11 ms
of the first request of a group, for which an embedded queue waits at each start.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self, dataclass_transform
else:

    def dataclass_transform(**_options):
        return lambda decorated: decorated


@dataclass_transform(frozen_default=True)
class Value:
    """Subclasses declare fields as annotations, fields with defaults last; see `dataclasses`."""

    _names: tuple[str, ...]

    def __init_subclass__(cls) -> None:
        cls._names = tuple(cls.__annotations__)

    def __init__(self, *values: Any, **named: Any) -> None:
        names, state = self._names, self.__dict__
        if len(values) > len(names):
            raise TypeError(f"{type(self).__name__} takes {len(names)} fields, got {len(values)}")
        state.update(zip(names, values, strict=False))
        for name, value in named.items():
            if name not in names or name in state:
                raise TypeError(f"{type(self).__name__}: {name!r} is unknown, or given twice")
            state[name] = value
        for name in names:
            if name not in state:
                if not hasattr(type(self), name):
                    raise TypeError(f"{type(self).__name__} needs {name!r}")
                state[name] = getattr(type(self), name)

    def replace(self, **changes: Any) -> Self:
        """Return the value with some fields replaced."""
        return type(self)(**{**self.__dict__, **changes})

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} cannot be changed: {name}")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash(tuple(self.__dict__.values()))

    def __repr__(self) -> str:
        fields = ", ".join([f"{name}={self.__dict__[name]!r}" for name in self._names])
        return f"{type(self).__name__}({fields})"
