"""The items of requests and answers: list them, leave some out of a request, change their answers.

`paths.path_of` names the lists. A topic that a message names by id gets its name here.
"""

from __future__ import annotations

from typing import NamedTuple

from embedlog.common import ZERO_UUID
from embedlog.testing.faults.messages import changed, element_class, field_of
from embedlog.testing.faults.paths import PARTITION, RESOURCE, TOPIC, Level, Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    NameOf = Callable[[bytes], str]
    """Returns the name of a topic id, "" if the id is unknown."""

TOPIC_RESOURCE = 2


class Item(NamedTuple):
    """A partition, topic, group, transactional id or resource of a request."""

    owner: Any = None
    """Group, transactional id, producer id or resource (type, name); None if the API has none."""
    topic: str | None = None
    partition: int | None = None
    topic_id: bytes = ZERO_UUID
    is_named: bool = True
    """Whether the message has the topic's name, and not only its id."""

    @property
    def key(self) -> tuple[Any, str | bytes | None, int | None]:
        """The identity of an item in a request and its answer."""
        return self.owner, self.topic or self.topic_id, self.partition


_TOPIC_FIELDS = ("name", "topic", "topic_name")
_PARTITION_FIELDS = ("partition_index", "index", "partition", "partition_id")
_OWNER_FIELDS = ("group_id", "transactional_id", "key", "producer_id", "path")


def _first(element: Any, names: tuple[str, ...]) -> str:
    slots = type(element).__slots__
    return next(name for name in names if name in slots)


def _topic_of(element: Any, name_of: NameOf) -> tuple[str, bytes, bool]:
    """Return name, id, and whether the element itself has the name."""
    if isinstance(element, str):
        return element, ZERO_UUID, True
    name = getattr(element, _first(element, _TOPIC_FIELDS))
    topic_id: bytes = getattr(element, "topic_id", ZERO_UUID)
    return (name, topic_id, True) if name else (name_of(topic_id), topic_id, False)


def _step(level: Level, element: Any, item: Item, name_of: NameOf) -> Item:
    """Return the item with the key of an element of this level."""
    if level.kind == TOPIC:
        name, topic_id, is_named = _topic_of(element, name_of)
        return item._replace(topic=name, topic_id=topic_id, is_named=is_named)
    if level.kind == PARTITION:
        index = element
        if not isinstance(element, int):
            index = getattr(element, _first(element, _PARTITION_FIELDS))
        return item._replace(partition=index)
    if level.kind == RESOURCE:
        return item._replace(owner=(element.resource_type, element.resource_name))
    owner = element
    if not isinstance(element, str):
        owner = getattr(element, _first(element, _OWNER_FIELDS))
    return item._replace(owner=owner)


def items_of(path: Path, request: Any, name_of: NameOf) -> tuple[list[Item], list[Item]]:
    """Return the items that a request names, and the owners for which it asks for all items."""
    found: list[Item] = []
    open_: list[Item] = []
    levels = [level for level in path if level.request]

    def walk(depth: int, message: Any, item: Item) -> None:
        level = levels[depth]
        elements = getattr(message, level.request)
        if elements is None:
            open_.append(item)
            return
        for element in elements:
            reached = _step(level, element, item, name_of)
            if depth + 1 < len(levels):
                walk(depth + 1, element, reached)
            else:
                found.append(reached)

    if levels:
        walk(0, request, Item())
    return found, open_


def answered_items(path: Path, response: Any, name_of: NameOf) -> Iterator[Item]:
    """Yield the items of an answer."""
    levels = [level for level in path if level.response]

    def walk(depth: int, message: Any, item: Item) -> Iterator[Item]:
        level = levels[depth]
        for element in getattr(message, level.response) or ():
            reached = _step(level, element, item, name_of)
            if depth + 1 < len(levels):
                yield from walk(depth + 1, element, reached)
            else:
                yield reached

    if levels:
        yield from walk(0, response, Item())


def without(path: Path, request: Any, left_out: Iterable[Item], name_of: NameOf) -> Any:
    """Return the request without some items, or None if no item is left."""
    keys = {item.key for item in left_out}
    levels = [level for level in path if level.request]

    def kept(depth: int, message: Any, item: Item) -> tuple[Any, bool]:
        level = levels[depth]
        elements = getattr(message, level.request)
        if elements is None:
            return message, True
        rest: list[Any] = []
        for element in elements:
            reached = _step(level, element, item, name_of)
            if depth + 1 == len(levels):
                if reached.key not in keys:
                    rest.append(element)
                continue
            inner, is_left = kept(depth + 1, element, reached)
            if is_left:
                rest.append(inner)
        return changed(message, **{level.request: rest}), bool(rest)

    made, is_left = kept(0, request, Item())
    return made if is_left else None


def with_items(
    path: Path,
    response: Any,
    items: Sequence[Item],
    make: Callable[[type[Any], str, Any, Item], Any],
    name_of: NameOf,
) -> Any:
    """Return an answer in which `make(class, kind, present element or None, item)` made some items.

    An item that the answer lacks is added to it.
    """
    levels = [level for level in path if level.response]
    if items and levels[-1].kind == PARTITION and items[0].partition is None:
        levels = levels[:-1]  # an answer about whole topics that also has their partitions

    def put(depth: int, message: Any, wanted: list[Item], reached: Item) -> Any:
        level = levels[depth]
        made_by = element_class(type(message), level.response)
        assert made_by is not None, level
        groups: dict[Any, list[Item]] = {}
        for item in wanted:
            groups.setdefault(_key_at(level, item), []).append(item)

        def renewed(element: Any, group: list[Item]) -> Any:
            if depth + 1 == len(levels):
                return make(made_by, level.kind, element, group[0])
            inner = _new(made_by, level, group[0]) if element is None else element
            return put(depth + 1, inner, group, group[0])

        result = []
        for element in getattr(message, level.response) or ():
            group = groups.pop(_key_at(level, _step(level, element, reached, name_of)), None)
            result.append(element if group is None else renewed(element, group))
        result += [renewed(None, group) for group in groups.values()]
        return changed(message, **{level.response: result})

    return put(0, response, list(items), Item()) if items else response


def _key_at(level: Level, item: Item) -> Any:
    if level.kind == TOPIC:
        return item.topic or item.topic_id
    return item.partition if level.kind == PARTITION else item.owner


def _new(made_by: type[Any], level: Level, item: Item) -> Any:
    """Return an element of an answer with only its key."""
    return made_by(**key_fields(made_by, level.kind, item))


def key_fields(made_by: type[Any], kind: str, item: Item) -> dict[str, Any]:
    """Return the values of the fields that identify an element of an answer."""
    names = [field.name for field in made_by.__fields__]
    if kind == TOPIC:
        values: dict[str, Any] = {}
        for name in names:
            if name in _TOPIC_FIELDS and item.is_named:
                values[name] = item.topic
            elif name == "topic_id":
                values[name] = item.topic_id
        return values
    if kind == PARTITION:
        return {next(name for name in _PARTITION_FIELDS if name in names): item.partition}
    if kind == RESOURCE:
        return {"resource_type": item.owner[0], "resource_name": item.owner[1]}
    return {next(name for name in _OWNER_FIELDS if name in names): item.owner}


def has_field(message: type[Any], name: str) -> bool:
    """Return whether messages of a class have a field."""
    return field_of(message, name) is not None
