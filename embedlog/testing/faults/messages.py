"""Changed copies of messages: a message is shared, so nobody changes it in place."""

from __future__ import annotations

from wire.schema import bare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from wire.schema import Field, Message


def changed(message: Any, **values: Any) -> Any:
    """Return a copy of a message with other values in some fields."""
    made = bare(type(message))
    for field in message.__fields__:
        name = field.name
        setattr(made, name, values[name] if name in values else getattr(message, name))
    made.unknown_tags = message.unknown_tags
    return made


def field_of(message: type[Message], name: str) -> Field | None:
    """Return the declaration of a field, or None if the class has no such field."""
    return next((each for each in message.__fields__ if each.name == name), None)


def element_class(message: type[Message], name: str) -> type[Message] | None:
    """Return the class of the structs in a list; None for a list of plain values."""
    field = field_of(message, name)
    assert field is not None, (message, name)
    assert field.element is not None, (message, name)
    return field.element.struct
