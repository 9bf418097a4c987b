"""`RemoteKafka`: the calls of `Kafka` over HTTP, with the same names and parameters.

Functions cannot travel: `where=`, `answer=`, `until=`, `make=`, `wait.until` and `clock.run_until`
need a test in the process of the cluster. Files are on the machine of the door.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from embedlog import errors
from embedlog.errors import EmbedlogError
from embedlog.testing.control.client import ControlClient, ControlError
from embedlog.testing.control.tags import tagged
from embedlog.testing.control.typed import typed
from embedlog.testing.control.verbs import INNER
from embedlog.testing.names import hint
from embedlog.testing.timed_out import WaitTimedOut
from embedlog.testing.topics.comparing import Comparable
from embedlog.testing.topics.record import LogRecord
from embedlog.testing.unfired import UnfiredFault

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

    The door lists its calls, so a client fits every version of it. Answers are the values that
    `Kafka` returns. Producers, consumers and admin clients are clients over sockets.
    """

    def __init__(self, url: str, token: str | None = None) -> None:
        """`url` is the address of the control door: see `Kafka.listen_control`.

        Raises:
            CannotReach: nothing answers there.
        """
        self._remote = _Remote(ControlClient(url, token))
        self._ends = ExitStack()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._remote.attribute("", {}, name)

    def __dir__(self) -> list[str]:
        return self._remote.names("")

    # Calls that the door names otherwise

    def topic(self, name: str, *, key: Any = None, value: Any = None) -> Any:
        """Return a topic: see `Kafka.topic`. Formats are given by name."""
        bound = {"topic": name, "key_format": key, "value_format": value}
        return self._remote.object(
            "topic", {each: given for each, given in bound.items() if given is not None}
        )

    # Clients over sockets

    def producer(self, **settings: Any) -> Any:
        """Return a producer, which `close` closes."""
        from embedlog.client.producer.producer import Producer

        return self._ends.enter_context(Producer(self.bootstrap_servers, **settings))

    def consumer(self, **settings: Any) -> Any:
        """Return a consumer, which `close` closes."""
        from embedlog.client.consumer.consumer import Consumer

        return self._ends.enter_context(Consumer(self.bootstrap_servers, **settings))

    def admin(self, **settings: Any) -> Any:
        """Return an admin client, which `close` closes."""
        from embedlog.client.admin.admin import Admin

        return self._ends.enter_context(Admin(self.bootstrap_servers, **settings))

    def closing(self, client: Any) -> Any:
        """Return a foreign client, which `close` ends: see `Kafka.closing`."""
        from embedlog.testing.clients.endings import ending

        self._ends.callback(ending(client))
        return client

    # Life

    def close(self) -> None:
        """Close the clients of the test. The process of the door ends its cluster itself."""
        self._ends.close()

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
        if name == "aio" and self._noun == "wait":
            return _Aio(self)
        if name == "wait_async":
            return partial(_in_thread, self.wait)
        return self._remote.attribute(self._noun, self._bound, name)

    def __dir__(self) -> list[str]:
        return self._remote.names(self._noun)

    def __call__(self, *given: Any, **named: Any) -> Any:
        return self._remote.call(self._noun, self._bound, given, named)

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the records, events or rules of the object."""
        return iter(self._items())

    def _items(self) -> list[Any]:
        names = self._remote.names(self._noun)
        for each in ("records", "events", "list"):
            if each in names:
                found = getattr(self, each)
                return list(found if isinstance(found, list) else found())
        raise TypeError(f"{self._noun} has no items")

    def __len__(self) -> int:
        return len(self._items())

    def __getitem__(self, index: Any) -> Any:
        return self._items()[index]

    def __bool__(self) -> bool:
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """End a fault or another rule, as the same object in its process does."""
        __tracebackhide__ = True
        verb = self._remote.verb(f"{self._noun} end")
        if verb is None:
            return
        takes_failed = any(each["name"] == "failed" for each in verb["parameters"])
        self.end(**({"failed": True} if kind is not None and takes_failed else {}))

    def __str__(self) -> str:
        for each in ("text", "value"):
            if each in self._remote.names(self._noun):
                found = getattr(self, each)
                return str(found() if callable(found) else found)
        return repr(self)

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self._bound.items())
        return f"<RemoteObject {self._noun}({given})>"


class RemoteRecords(Comparable, RemoteObject):
    """A topic or an assertion at the door, which `==` compares with a list of `rec`."""

    @property
    def title(self) -> str:
        return str(self._bound.get("topic") or self._bound.get("id"))

    def _records(self) -> list[LogRecord]:
        return self._items()


class _Aio:
    """The calls of an object as coroutines. Each waits in a thread of its own."""

    def __init__(self, owner: RemoteObject) -> None:
        self._owner = owner

    def __getattr__(self, name: str) -> Any:
        return partial(_in_thread, getattr(self._owner, name))


async def _in_thread(call: Callable[..., Any], *given: Any, **named: Any) -> Any:
    from embedlog.aio.threads import in_thread
    from embedlog.runtime import real_runtime

    scheduler = real_runtime().scheduler
    return await in_thread(scheduler, "embedlog-remote-call", lambda: call(*given, **named))


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
            raise AttributeError(f"there is no field {name!r}; {hint(name, self)}") from None


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
        below = self._nouns.get(full)
        is_object = below is not None and not below["is_kept"]
        if verb is not None and not is_object:
            if verb["method"] == "GET":
                return self._call(verb, bound, (), {})
            return self._method(verb, bound)
        if below is None or not is_object:
            if name in self._nouns[noun]["inner"]:
                raise AttributeError(f"{full}: {INNER}")
            known = self.names(noun)
            raise AttributeError(f"{noun or 'kafka'} has no {name!r}; {hint(name, known)}")
        free = [each for each in below["parameters"] if each["name"] not in bound]
        is_chosen = not free or (bound and not any(each["required"] for each in free))
        if is_chosen:
            return self.object(full, bound)
        return lambda *given, **named: self.object(
            full, {**bound, **_arguments(full, free, False, given, named)}
        )

    def object(self, noun: str, bound: Mapping[str, Any]) -> RemoteObject:
        """Return an object at the door."""
        is_records = self.verb(f"{noun} records") is not None and noun != "wait"
        return (RemoteRecords if is_records else RemoteObject)(self, noun, bound)

    def verb(self, name: str) -> Mapping[str, Any] | None:
        """Return a verb; None if there is none of this name."""
        return self._verbs.get(name)

    def call(
        self, name: str, bound: Mapping[str, Any], given: tuple[Any, ...], named: Mapping[str, Any]
    ) -> Any:
        """Call an object that is a verb as well."""
        verb = self.verb(name)
        if verb is None:
            raise TypeError(f"{name} is no call")
        return self._call(verb, bound, given, named)

    def _method(self, verb: Mapping[str, Any], bound: Mapping[str, Any]) -> Callable[..., Any]:
        return lambda *given, **named: self._call(verb, bound, given, named)

    def _call(
        self,
        verb: Mapping[str, Any],
        bound: Mapping[str, Any],
        given: tuple[Any, ...],
        named: Mapping[str, Any],
    ) -> Any:
        if verb["free"]:
            bound = {}
        free = [each for each in verb["parameters"] if each["name"] not in bound]
        arguments = {**bound, **_arguments(verb["name"], free, verb["open"], given, named)}
        sent = {name: tagged(name, value, _reference) for name, value in arguments.items()}
        try:
            found = self.client.call(verb["path"], sent)
        except ControlError as error:
            raise _as_at_the_door(error) from None
        return typed(verb["returns"], self._value(found))

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
            return self.object(found["@noun"], {"id": found["@kept"]})
        if "@noun" in found:
            return self.object(found["@noun"], found["arguments"])
        return RemoteValue({name: self._value(each) for name, each in found.items()})


def _reference(value: Any) -> dict[str, Any] | None:
    """Return the JSON of an object that the door keeps; None for others."""
    if isinstance(value, RemoteObject) and "id" in value._bound:
        return {"@kept": value._bound["id"]}
    return None


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
        raise TypeError(f"{name}() has no parameter {unknown!r}; {hint(unknown, known)}")
    return made


def _as_at_the_door(error: ControlError) -> Exception:
    """Return the error as its own class if that is one of embedlog's, else the given one."""
    if error.wait:
        return WaitTimedOut(**error.wait)
    if error.error == UnfiredFault.__name__:
        return UnfiredFault(str(error))
    try:
        kind = getattr(errors, error.error)
    except AttributeError:
        return error
    is_plain = isinstance(kind, type) and issubclass(kind, EmbedlogError)
    if not is_plain or kind is errors.CorruptRecord or kind is errors.LogTruncation:
        return error
    made: Exception = kind(str(error))
    return made
