"""`Matcher`: which requests belong to a rule, and why others do not."""

from __future__ import annotations

from operator import attrgetter
from re import Pattern

from embedlog.broker.dispatch import VERSIONS
from embedlog.errors import ConfigError
from embedlog.testing.faults.items import TOPIC_RESOURCE, has_field
from embedlog.testing.faults.names import API_KEYS, api_key_of
from embedlog.testing.faults.paths import (
    COORDINATOR,
    GROUP,
    PARTITION,
    RESOURCE,
    TOPIC,
    TRANSACTION,
    kinds_of,
    path_of,
)
from embedlog.testing.faults.refusals import all_groups, all_items, is_by_group
from embedlog.testing.faults.user_code import Guarded
from wire.api_keys import NAMES, ApiKey
from wire.registry import request_class

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from typing import Any

    from embedlog.testing.faults.items import Item
    from embedlog.testing.interception import Call

    Text = str | Pattern[str] | Collection[str]
    """A name, a compiled pattern that the whole name must match, or several names."""
    Numbers = int | Collection[int]

_TOPIC_LISTS = {
    ApiKey.PRODUCE: ("topic_data", "name"),
    ApiKey.FETCH: ("topics", "topic"),
    ApiKey.LIST_OFFSETS: ("topics", "name"),
    ApiKey.METADATA: ("topics", "name"),
    ApiKey.OFFSET_COMMIT: ("topics", "name"),
}
"""API -> its list of topics and the name in it: a short way for the APIs with the most requests."""

_TRANSACTION_FIELDS = ("transactional_id", "v3_and_below_transactional_id")
_FIRST_BETWEEN_BROKERS = 4
_SENT_BY_BROKERS = frozenset(
    {
        ApiKey.FETCH,
        ApiKey.LIST_OFFSETS,
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        ApiKey.ADD_PARTITIONS_TO_TXN,
        ApiKey.WRITE_TXN_MARKERS,
    }
)
"""APIs of requests between brokers: see `is_internal`."""
_GROUP_KEY = 0


def _has_group(api_key: int) -> bool:
    kinds = kinds_of(api_key)
    return has_field(request_class(api_key), "group_id") or bool(kinds & {GROUP, COORDINATOR})


def _has_transaction(api_key: int) -> bool:
    request = request_class(api_key)
    kinds = kinds_of(api_key)
    return any(has_field(request, each) for each in _TRANSACTION_FIELDS) or bool(
        kinds & {TRANSACTION, COORDINATOR}
    )


FIELDS: dict[str, Callable[[int], bool]] = {
    "topic": lambda api_key: bool(kinds_of(api_key) & {TOPIC, RESOURCE}),
    "partition": lambda api_key: PARTITION in kinds_of(api_key),
    "group": _has_group,
    "transactional_id": _has_transaction,
    "resource": lambda api_key: RESOURCE in kinds_of(api_key),
}
"""Matcher about the content of a request -> function that tells whether an API has the field."""


class Matcher:
    """The conditions of a rule; all of them must be true."""

    def __init__(
        self,
        apis: Sequence[str],
        *,
        texts: dict[str, Text],
        numbers: dict[str, Numbers],
        where: Callable[[Any], Any] | None = None,
        versions: int | tuple[int, int] | range | None = None,
        internal: bool = False,
    ) -> None:
        """`texts` has topic, group, transactional_id, client_id, principal and resource; `numbers`
        has node and partition.

        Raises:
            ConfigError: an API is unknown, or lacks a field; or nothing chooses the requests.
        """
        self.texts = {name: _TextTest(name, value) for name, value in texts.items()}
        self.numbers = {name: _number_set(name, value) for name, value in numbers.items()}
        self.where = None if where is None else Guarded(_callable("where", where))
        self.versions = None if versions is None else _version_range(versions)
        given = [name for name in FIELDS if name in texts or name in numbers]
        if not (apis or texts or numbers or where or versions):
            raise ConfigError(
                "a rule needs the name of an API, or a matcher: topic, partition, group, "
                "transactional_id, resource, client_id, principal, node, where or versions"
            )
        self.api_keys = _with_version(apis, _api_keys(apis, given), self.versions)
        self.internal = internal or self.api_keys == (ApiKey.WRITE_TXN_MARKERS,)
        if self.internal:
            self.api_keys = _between_brokers(apis, self.api_keys)
        """True: only requests between brokers; False: none of them."""
        self._is_by_item = bool(given)

    def exact(self, name: str) -> frozenset[str] | None:
        """Return the names that a matcher wants; None if it is not given or is a pattern."""
        test = self.texts.get(name)
        return None if test is None else test.names

    def match(self, call: Call) -> tuple[Sequence[Item] | None, str]:
        """Return (items, "") for a request of the rule, and otherwise (None, the reason).

        The items are also None if the rule is about the whole request.
        """
        why = self._why_not_sent_so(call)
        if why:
            return None, why
        items: Sequence[Item] | None = None
        if self._is_by_item:
            items, why = self._matching_items(call)
            if why:
                return None, why
        if self.where is not None and not self.where(False, call.request):
            return None, "where() is false"
        return items, ""

    def _why_not_sent_so(self, call: Call) -> str:
        context = call.context
        if self.internal is not is_internal(call):
            return "it comes from a broker" if not self.internal else "it comes from a client"
        nodes = self.numbers.get("node")
        if nodes is not None and call.broker.node_id not in nodes:
            return f"node is {call.broker.node_id}, not {_listed(nodes)}"
        for name in ("client_id", "principal"):
            test = self.texts.get(name)
            value = getattr(context, name) or ""
            if test is not None and not test(value):
                return f"{name} is {value!r}, not {test}"
        if self.versions is not None and context.api_version not in self.versions:
            first, last = self.versions[0], self.versions[-1]
            return f"version is {context.api_version}, not {first} to {last}"
        return ""

    def _matching_items(self, call: Call) -> tuple[Sequence[Item] | None, str]:
        """Return the items that match; None for the whole request; and the reason if none do."""
        context = call.context
        path = path_of(context.api_key, context.api_version)
        kinds = {level.kind for level in path}
        by_item: list[tuple[str, Callable[[Item], Any], Callable[[Any], bool]]] = []
        for name, owners in (("group", _group_owner), ("transactional_id", _transaction_owner)):
            test = self.texts.get(name)
            if test is None:
                continue
            if kinds & {GROUP if name == "group" else TRANSACTION, COORDINATOR}:
                by_item.append((name, owners(call), test))
                continue
            value = _single(call.request, name)
            if value is None or not test(value):
                return None, f"{name} is {value!r}, not {test}"
        if "resource" in self.texts:
            by_item.append(("resource", lambda item: item.owner[1], self.texts["resource"]))
        if "topic" in self.texts:
            by_item.append(("topic", _topic, self.texts["topic"]))
        partitions = self.numbers.get("partition")
        if partitions is not None and PARTITION in kinds:
            by_item.append(("partition", lambda item: item.partition, partitions.__contains__))
        if not by_item:
            return None, ""
        is_about_groups = is_by_group(path) and partitions is None and "topic" not in self.texts
        items = all_groups(call) if is_about_groups else all_items(call)
        if partitions is not None:
            items = _with_partitions(call, items, partitions)
        for name, value_of, accepts in by_item:
            found = [item for item in items if accepts(value_of(item))]
            if not found:
                values = {value_of(item) for item in items} - {None}
                shown = ", ".join(sorted(map(repr, values))) or "not named"
                wanted = self.texts.get(name) or _listed(partitions or ())
                return None, f"{name} is {shown}, not {wanted}"
            items = found
        return items, ""

    def why_not(self, seen: Seen) -> str:
        """Return why a request in the past was not one of the rule; "" if that is unknown."""
        node_id, client_id, is_internal_, topics, group, transaction = seen
        if is_internal_ is not self.internal:
            return "it comes from a broker" if is_internal_ else "it comes from a client"
        nodes = self.numbers.get("node")
        if nodes is not None and node_id not in nodes:
            return f"node is {node_id}, not {_listed(nodes)}"
        for name, values in (
            ("client_id", (client_id,)),
            ("topic", topics),
            ("group", group),
            ("transactional_id", transaction),
        ):
            test = self.texts.get(name)
            if test is not None and not any(test(value) for value in values):
                shown = ", ".join(sorted(map(repr, set(values)))) or "not named"
                return f"{name} is {shown}, not {test}"
        return ""

    def __str__(self) -> str:
        """Show the conditions in the form of arguments."""
        names = [NAMES[key] for key in self.api_keys]
        parts = [] if len(names) > 6 else [repr(name) for name in names]
        parts += [f"{name}={test}" for name, test in self.texts.items()]
        parts += [f"{name}={_listed(value)}" for name, value in self.numbers.items()]
        if self.where is not None:
            parts.append(f"where={self.where!r}")
        if self.versions is not None:
            parts.append(f"versions={self.versions[0]}-{self.versions[-1]}")
        return ", ".join(parts)


Seen = tuple[int, str, bool, "Sequence[str]", "Sequence[str]", "Sequence[str]"]
"""A request in the past: node, client id, whether it came from a broker, topics, groups,
transactional ids."""


def is_internal(call: Call) -> bool:
    """Return whether a broker sent the request: a replica's fetch, markers, a verification."""
    api_key = call.context.api_key
    request: Any = call.request
    if api_key == ApiKey.FETCH:
        return bool(request.replica_id >= 0 or request.replica_state.replica_id >= 0)
    if api_key in (ApiKey.LIST_OFFSETS, ApiKey.OFFSET_FOR_LEADER_EPOCH):
        return bool(request.replica_id >= 0)
    if api_key == ApiKey.ADD_PARTITIONS_TO_TXN:
        return call.context.api_version >= _FIRST_BETWEEN_BROKERS
    return api_key == ApiKey.WRITE_TXN_MARKERS


def groups_in(call: Call) -> Sequence[str]:
    """Return the groups that a request is about."""
    return _owners(call, "group", GROUP, _group_owner)


def transactions_in(call: Call) -> Sequence[str]:
    """Return the transactional ids that a request is about."""
    return _owners(call, "transactional_id", TRANSACTION, _transaction_owner)


def topics_in(call: Call) -> Sequence[str]:
    """Return the topics that a request is about."""
    if not kinds_of(call.context.api_key) & {TOPIC, RESOURCE}:
        return ()
    return [name for item in all_items(call) if (name := _topic(item)) is not None]


def reader_of(name: str, api_key: int) -> Callable[[Call], Sequence[str]]:
    """Return the function that reads the values of a matcher from requests of one API.

    The requests that clients send most have short ways.
    """
    if name == "client_id":
        return lambda call: (call.context.client_id or "",)
    if name == "topic":
        usual = _TOPIC_LISTS.get(api_key)
        return topics_in if usual is None else _usual_topics(*usual)
    is_group = name == "group"
    kind = GROUP if is_group else TRANSACTION
    field = "group_id" if is_group else "transactional_id"
    if not kinds_of(api_key) & {kind, COORDINATOR} and has_field(request_class(api_key), field):
        read = attrgetter(field)
        return lambda call: (read(call.request),)
    return groups_in if is_group else transactions_in


def _usual_topics(list_name: str, field: str) -> Callable[[Call], Sequence[str]]:
    elements_of, name_of = attrgetter(list_name), attrgetter(field)

    def read(call: Call) -> Sequence[str]:
        request = call.request
        elements = elements_of(request)
        if not elements or (call.context.api_key == ApiKey.FETCH and _has_session(request)):
            return topics_in(call)
        return [name_of(each) or call.broker.topic_name(each.topic_id) for each in elements]

    return read


def _has_session(request: Any) -> bool:
    return bool(request.session_id)


def _owners(
    call: Call, name: str, kind: str, owner_of: Callable[[Call], Callable[[Item], Any]]
) -> Sequence[str]:
    kinds = {each.kind for each in path_of(call.context.api_key, call.context.api_version)}
    if kinds & {kind, COORDINATOR}:
        path = path_of(call.context.api_key, call.context.api_version)
        items = all_groups(call) if is_by_group(path) else all_items(call)
        found = map(owner_of(call), items)
        return [each for each in found if each is not None]
    value = _single(call.request, name)
    return () if value is None else (value,)


def _topic(item: Item) -> str | None:
    owner = item.owner
    if item.topic is None and isinstance(owner, tuple):
        return str(owner[1]) if owner[0] == TOPIC_RESOURCE else None
    return item.topic


def _group_owner(call: Call) -> Callable[[Item], Any]:
    request: Any = call.request
    if call.context.api_key == ApiKey.FIND_COORDINATOR and request.key_type != _GROUP_KEY:
        return lambda _item: None
    return lambda item: item.owner


def _transaction_owner(call: Call) -> Callable[[Item], Any]:
    request: Any = call.request
    if call.context.api_key == ApiKey.FIND_COORDINATOR and request.key_type == _GROUP_KEY:
        return lambda _item: None
    return lambda item: item.owner


def _single(request: Any, name: str) -> str | None:
    """Return the group or the transactional id of a request that has one."""
    if has_field(type(request), "key_type"):
        is_group = request.key_type == _GROUP_KEY
        return request.key if is_group is (name == "group") else None
    names = ("group_id",) if name == "group" else _TRANSACTION_FIELDS
    for each in names:
        if has_field(type(request), each):
            value: str | None = getattr(request, each)
            return value
    return None


def _with_partitions(call: Call, items: Sequence[Item], wanted: Collection[int]) -> list[Item]:
    """Return items of partitions for a request that names only topics, such as Metadata."""
    found = []
    for item in items:
        if item.partition is not None:
            found.append(item)
            continue
        topic = call.broker.image.topics_by_name.get(item.topic or "")
        count = 0 if topic is None else len(topic.partitions)
        found += [item._replace(partition=each) for each in sorted(wanted) if each < count]
    return found


def _api_keys(apis: Sequence[str], given: Sequence[str]) -> tuple[int, ...]:
    """Return the keys of the named APIs, or of all that have the fields of the matchers.

    Raises:
        ConfigError: there is no such API, or a named one lacks a field.
    """
    if not apis:
        keys = [key for key in API_KEYS.values() if all(FIELDS[name](key) for name in given)]
        if not keys:
            raise ConfigError(f"no API has {' and '.join(given)} together")
        return tuple(keys)
    named = tuple(dict.fromkeys(api_key_of(name) for name in apis))
    for key in named:
        for name in given:
            if not FIELDS[name](key):
                have = [other for other in FIELDS if FIELDS[other](key)]
                instead = ", ".join(have) or "none of " + ", ".join(FIELDS)
                raise ConfigError(
                    f"{name}=: a {NAMES[key]} request has no such field; it has {instead}"
                )
    return named


def _with_version(
    apis: Sequence[str], keys: tuple[int, ...], versions: range | None
) -> tuple[int, ...]:
    """Return the APIs that are served in one of these versions.

    Raises:
        ConfigError: a named API is not.
    """
    if versions is None:
        return keys
    found = []
    for key in keys:
        first, last = VERSIONS[key]
        if versions[0] <= last and versions[-1] >= first:
            found.append(key)
        elif apis:
            raise ConfigError(
                f"versions={versions[0]} to {versions[-1]}: of {NAMES[key]}, brokers serve "
                f"{first} to {last}"
            )
    return tuple(found)


def _between_brokers(apis: Sequence[str], keys: tuple[int, ...]) -> tuple[int, ...]:
    """Return the APIs that brokers send to each other.

    Raises:
        ConfigError: brokers never send a named API.
    """
    for key in keys:
        if apis and key not in _SENT_BY_BROKERS:
            known = ", ".join(sorted(NAMES[each] for each in _SENT_BY_BROKERS))
            raise ConfigError(
                f"internal=True: brokers send each other no {NAMES[key]}; they send {known}"
            )
    return tuple(key for key in keys if key in _SENT_BY_BROKERS)


class _TextTest:
    """Tests a name: equal to one of several, or matched by a pattern."""

    __slots__ = ("_pattern", "names")

    def __init__(self, name: str, given: Text) -> None:
        self.names: frozenset[str] | None = None
        self._pattern: Pattern[str] | None = None
        if isinstance(given, str):
            self.names = frozenset((given,))
        elif isinstance(given, Pattern):
            self._pattern = given
        elif (
            isinstance(given, list | tuple | set | frozenset)
            and given
            and all(isinstance(each, str) for each in given)
        ):
            self.names = frozenset(given)
        else:
            raise ConfigError(
                f"{name}={given!r}: expected a name, several names or a compiled pattern"
            )

    def __call__(self, value: str | None) -> bool:
        if value is None:
            return False
        if self.names is not None:
            return value in self.names
        assert self._pattern is not None
        return self._pattern.fullmatch(value) is not None

    def __str__(self) -> str:
        if self.names is not None:
            return _listed(self.names)
        assert self._pattern is not None
        return f"/{self._pattern.pattern}/"


def _number_set(name: str, given: Numbers) -> frozenset[int]:
    values = frozenset((given,)) if isinstance(given, int) else frozenset(given)
    if not values or not all(isinstance(each, int) and each >= 0 for each in values):
        raise ConfigError(f"{name}={given!r}: expected a number from 0 on, or several")
    return values


def _version_range(given: int | tuple[int, int] | range) -> range:
    found = given
    if isinstance(given, int):
        found = range(given, given + 1)
    elif isinstance(given, tuple) and len(given) == 2:
        found = range(given[0], given[1] + 1)
    if not isinstance(found, range) or not found or found[0] < 0:
        raise ConfigError(f"versions={given!r}: expected a version, (first, last) or a range")
    return found


def _callable(name: str, given: Any) -> Callable[..., Any]:
    if not callable(given):
        raise ConfigError(f"{name}={given!r}: expected a function")
    function: Callable[..., Any] = given
    return function


def _listed(values: Collection[Any]) -> str:
    return " or ".join(map(repr, sorted(values)))
