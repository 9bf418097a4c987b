"""`RemoteKafka`: the calls of `Kafka` over HTTP, with the same names and parameters."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Self

from embedlog import errors
from embedlog.errors import EmbedlogError
from embedlog.testing.control.client import ControlClient, ControlError

if TYPE_CHECKING:
    from embedlog.testing.kafka import Kafka as _Base
else:
    _Base = object


class RemoteKafka(_Base):
    """A `Kafka` in another process, behind its control door.

    >>> from embedlog.testing import Kafka
    >>> with Kafka(brokers=3) as kafka:
    ...     remote = RemoteKafka(kafka.control().url)
    ...     remote.broker(1).kill()
    ...     remote.broker(1).is_running, kafka.broker(1).is_running
    (False, False)

    The door lists its calls, so a client fits every version of it. Answers that are objects
    have their fields as attributes and as keys.
    """

    def __init__(self, url: str, token: str | None = None) -> None:
        """`url` is the address of the control door: see `Kafka.listen_control`.

        Raises:
            CannotReach: nothing answers there.
        """
        self._remote = _Remote(ControlClient(url, token))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._remote.attribute("", {}, name)

    def __dir__(self) -> list[str]:
        return self._remote.names("")

    def close(self) -> None:
        """Do nothing: the process of the door ends its cluster itself."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<RemoteKafka {self._remote.client.url}>"


class RemoteObject:
    """An object at the door: a broker, a partition, a fault."""

    def __init__(self, remote: _Remote, noun: str, bound: Mapping[str, Any]) -> None:
        self._remote = remote
        self._noun = noun
        self._bound = bound

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._remote.attribute(self._noun, self._bound, name)

    def __dir__(self) -> list[str]:
        return self._remote.names(self._noun)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """End a fault or another rule, as the same object in its process does."""
        names = self._remote.names(self._noun)
        if "remove" in names:
            self.remove()
        if kind is None and "check" in names:
            self.check()

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self._bound.items())
        return f"<RemoteObject {self._noun}({given})>"


class RemoteValue(dict[str, Any]):
    """A value with fields, as attributes and as keys. Its keys are texts; numbers find them too."""

    def __missing__(self, key: object) -> Any:
        text = "-".join(map(str, key)) if isinstance(key, tuple) else str(key)
        if text is key or text not in self:
            raise KeyError(key)
        return self[text]

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            near = get_close_matches(name, self, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise AttributeError(f"no field {name!r} in {', '.join(self)}{hint}") from None


class _Remote:
    """The table of a door, and its calls."""

    def __init__(self, client: ControlClient) -> None:
        self.client = client
        found = client.get("/verbs")
        self._verbs = {each["name"]: each for each in found["verbs"]}
        self._nouns = {each["name"]: each for each in found["nouns"]}

    def names(self, noun: str) -> list[str]:
        """Return the attributes of a noun."""
        known = [*self._verbs, *(n for n in self._nouns if n and not self._nouns[n]["is_kept"])]
        start = f"{noun} " if noun else ""
        rest = [each.removeprefix(start) for each in known if each.startswith(start)]
        return sorted({each for each in rest if " " not in each})

    def attribute(self, noun: str, bound: Mapping[str, Any], name: str) -> Any:
        """Return a value, a method, or an object below another."""
        full = f"{noun} {name}".strip()
        verb = self._verbs.get(full)
        if verb is not None:
            if verb["method"] == "GET":
                return self._call(verb, bound, (), {})
            return self._method(verb, bound)
        below = self._nouns.get(full)
        if below is None or below["is_kept"]:
            near = get_close_matches(name, self.names(noun), 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise AttributeError(f"{noun or 'kafka'} has no {name!r}{hint}")
        free = [each for each in below["parameters"] if each["name"] not in bound]
        is_chosen = not free or (bound and not any(each["required"] for each in free))
        if is_chosen:
            return RemoteObject(self, full, bound)
        return lambda *given, **named: RemoteObject(
            self, full, {**bound, **_arguments(full, free, False, given, named)}
        )

    def _method(self, verb: Mapping[str, Any], bound: Mapping[str, Any]) -> Callable[..., Any]:
        return lambda *given, **named: self._call(verb, bound, given, named)

    def _call(
        self,
        verb: Mapping[str, Any],
        bound: Mapping[str, Any],
        given: tuple[Any, ...],
        named: Mapping[str, Any],
    ) -> Any:
        free = [each for each in verb["parameters"] if each["name"] not in bound]
        arguments = {**bound, **_arguments(verb["name"], free, verb["open"], given, named)}
        sent = {name: self._sent(value) for name, value in arguments.items()}
        try:
            return self._value(self.client.call(verb["path"], sent))
        except ControlError as error:
            raise _as_at_the_door(error) from None

    def _sent(self, value: Any) -> Any:
        if isinstance(value, bytes):
            return {"@base64": base64.b64encode(value).decode()}
        if isinstance(value, RemoteObject):
            return {"@kept": value._bound.get("id")}
        if isinstance(value, Mapping):
            return {str(name): self._sent(each) for name, each in value.items()}
        if is_dataclass(value) and not isinstance(value, type):
            return {each.name: self._sent(getattr(value, each.name)) for each in fields(value)}
        if isinstance(value, list | tuple | set | frozenset):
            return [self._sent(each) for each in value]
        return value

    def _value(self, found: Any) -> Any:
        if isinstance(found, list):
            return [self._value(each) for each in found]
        if not isinstance(found, dict):
            return found
        if found.keys() == {"@text"}:
            return found["@text"].encode()
        if found.keys() == {"@base64"}:
            return base64.b64decode(found["@base64"])
        if "@kept" in found:
            return RemoteObject(self, found["@noun"], {"id": found["@kept"]})
        if "@noun" in found:
            return RemoteObject(self, found["@noun"], found["arguments"])
        return RemoteValue({name: self._value(each) for name, each in found.items()})


def _arguments(
    name: str,
    parameters: list[Mapping[str, Any]],
    is_open: bool,
    given: tuple[Any, ...],
    named: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the arguments by name. Raises TypeError as Python does for a wrong call."""
    made = dict(named)
    rest = list(given)
    for each in parameters:
        if each["many"]:
            made[each["name"]], rest = rest, []
        elif rest and not each["keyword"]:
            if each["name"] in made:
                raise TypeError(f"{name}() got two values for {each['name']!r}")
            made[each["name"]] = rest.pop(0)
    if rest:
        raise TypeError(f"{name}() takes {len(given) - len(rest)} arguments, {len(given)} given")
    known = {each["name"] for each in parameters}
    for unknown in made.keys() - known if not is_open else ():
        near = get_close_matches(unknown, known, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise TypeError(f"{name}() has no parameter {unknown!r}{hint}")
    return made


def _as_at_the_door(error: ControlError) -> Exception:
    """Return the error as its own class if that is one of embedlog's, else the given one."""
    try:
        kind = getattr(errors, error.error)
    except AttributeError:
        return error
    is_plain = isinstance(kind, type) and issubclass(kind, EmbedlogError)
    if not is_plain or kind is errors.CorruptRecord or kind is errors.LogTruncation:
        return error
    made: Exception = kind(str(error))
    return made
