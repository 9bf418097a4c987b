"""The schema language: one plain class declares a Kafka message in all its versions.

    @struct
    class EndpointRecord:
        host: str = string()
        port: int = int32("1+", default=9092)

    @message(api=ApiKey.FETCH, kind="response", versions="0-3", flexible="2+")
    class Example:
        throttle_time_ms: int = int32("1+", ignorable=True)
        endpoints: list[EndpointRecord] = array(EndpointRecord, "0-2", nullable="1+")

Each field is made by a function with the name of its type. The arguments are Kafka's words:

    versions   where the field exists: "0+", "3", "1-4"
    nullable   where it may be None
    default    the value of a field that is absent or not given
    tag        number of a tagged field; `tagged` has the versions in which it is tagged, if it is
               an ordinary field in others
    ignorable  if a version lacks the field, drop its value instead of raising `UnsupportedField`

The decorators replace the class by one with `__slots__`, keyword arguments, `repr` and equality. To
keep imports cheap, version ranges are parsed, and `__init__` is generated, on first use.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Generic, TypeVar, dataclass_transform

    T = TypeVar("T")
    R = TypeVar("R")
    """The response class of a request."""
    R_co = TypeVar("R_co", covariant=True)
else:

    def dataclass_transform(**_options):
        return lambda decorator: decorator


Payload = bytes | bytearray | memoryview
"""Bytes of a message, or of its record batches. Decoding returns the batches as a memoryview."""

VERSION_MAX = 32767
NO_VERSIONS = (0, -1)


def version_range(text: str | None) -> tuple[int, int]:
    """Return (first, last) of "2-5", "3" or "4+"; an empty range for "none" and None."""
    if text is None or text == "none":
        return NO_VERSIONS
    if text.endswith("+"):
        return int(text[:-1]), VERSION_MAX
    first, _, last = text.partition("-")
    return int(first), int(last or first)


class Field:
    """One declared field; `kind` is the name of its function, such as "int32" or "array"."""

    __slots__ = (
        "default",
        "element",
        "ignorable",
        "kind",
        "name",
        "nullable",
        "old_form",
        "struct",
        "tag",
        "tagged",
        "versions",
    )

    def __init__(
        self,
        kind: str,
        versions: str,
        *,
        nullable: str | None = None,
        default: object = None,
        tag: int | None = None,
        tagged: str | None = None,
        ignorable: bool = False,
        element: Field | None = None,
        struct: type[Message] | None = None,
        old_form: bool = False,
    ) -> None:
        self.name = ""
        self.kind = kind
        self.versions = versions
        self.nullable = nullable
        self.default = default
        self.tag = tag
        self.tagged = tagged if tagged is not None or tag is None else versions
        self.ignorable = ignorable
        self.element = element
        self.struct = struct
        self.old_form = old_form

    def exists(self, version: int) -> bool:
        first, last = version_range(self.versions)
        return first <= version <= last

    def is_nullable(self, version: int) -> bool:
        first, last = version_range(self.nullable)
        return first <= version <= last

    def is_tagged(self, version: int) -> bool:
        first, last = version_range(self.tagged)
        return first <= version <= last

    def default_value(self) -> Any:
        """Return the value of the field in a message that does not set it; a list is a new one."""
        if self.default is not DEFAULT:
            return self.default
        return [] if self.struct is None else shared_default(self.struct)


class _Default:
    """Marks the default of arrays (an empty list) and structs (all their fields at default)."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "DEFAULT"


DEFAULT = _Default()


def _fixed_size(kind: str, default: object = 0) -> Callable[..., Any]:
    """Return the function that declares a field of this fixed-size type."""

    def make(versions: str = "0+", *, default: object = default, **options: Any) -> Any:
        return Field(kind, versions, default=default, **options)

    return make


int8 = _fixed_size("int8")
int16 = _fixed_size("int16")
int32 = _fixed_size("int32")
int64 = _fixed_size("int64")
uint16 = _fixed_size("uint16")
uint32 = _fixed_size("uint32")
float64 = _fixed_size("float64", 0.0)
boolean = _fixed_size("boolean", default=False)
"""One byte; any value but 0 is True."""


def uuid(versions: str = "0+", **options: Any) -> Any:
    """A UUID of 16 bytes. In Kafka all zeros mean "no id"."""
    return Field("uuid", versions, default=bytes(16), **options)


def string(versions: str = "0+", *, default: str | None = "", **options: Any) -> Any:
    """A UTF-8 string. `old_form=True` keeps its int16 length in flexible versions (client id)."""
    return Field("string", versions, default=default, **options)


def bytes_(versions: str = "0+", *, default: bytes | None = b"", **options: Any) -> Any:
    """Bytes. Decoding copies them out of the buffer."""
    return Field("bytes_", versions, default=default, **options)


def records_(versions: str = "0+", *, default: bytes | None = None, **options: Any) -> Any:
    """Record batches. They are not copied: see `Payload` and `wire.encode_buffers`."""
    return Field("records_", versions, default=default, **options)


def array(element: Any, versions: str = "0+", *, default: object = DEFAULT, **options: Any) -> Any:
    """A list of structs, as `array(EndpointRecord)`, or of plain values, as `array(int32)`."""
    if isinstance(element, type):
        item = Field("struct_", "0+", struct=element, default=DEFAULT)
    else:
        item = element()
    return Field("array", versions, default=default, element=item, **options)


def struct_(
    struct: type[Any], versions: str = "0+", *, default: object = DEFAULT, **options: Any
) -> Any:
    """One struct. A nullable struct may be None."""
    return Field("struct_", versions, default=default, struct=struct, **options)


class NoTags(dict[int, bytes]):
    """The empty dict that all messages without unknown tags share.

    It cannot be changed: assign a new dict to `unknown_tags` instead.
    """

    __slots__ = ()

    def __setitem__(self, tag: int, data: bytes) -> None:
        raise TypeError("assign a new dict to unknown_tags: the empty one is shared")


NO_TAGS = NoTags()


INTERPRETED_INSTANCES = 50
_instances_left: dict[type[Message], int] = {}


class Message:
    """Base of every declared class: keyword arguments, repr and equality.

    `unknown_tags` holds tagged fields that this declaration lacks, from a newer peer, as
    {tag: bytes}. Encoding the message writes them again.
    """

    __slots__ = ("unknown_tags",)
    __fields__: tuple[Field, ...] = ()
    __declaration__: Declaration | None = None
    __encoders__: dict[int, Any] = {}
    __decoders__: dict[int, Any] = {}
    __layouts__: dict[int, Any] = {}
    __hash__ = None  # type: ignore[assignment]

    unknown_tags: dict[int, bytes]

    def __init__(self, **values: Any) -> None:
        """Set every field to the given value, or to its default."""
        # After some instances the class gets a generated __init__, which is five times faster but
        # takes 0.15 ms to make (the first compile() of a process takes 1.3 ms).
        cls = type(self)
        left = _instances_left[cls] = _instances_left.get(cls, INTERPRETED_INSTANCES) - 1
        if left <= 0:
            cls.__init__ = _generate_init(cls)  # type: ignore[method-assign]
        for field in cls.__fields__:
            name = field.name
            setattr(self, name, values.pop(name) if name in values else field.default_value())
        self.unknown_tags = NO_TAGS
        if values:
            raise TypeError(f"{cls.__name__} has no field {', '.join(sorted(values))}")

    def __repr__(self) -> str:
        """Show the fields that differ from their default."""
        shown = []
        for field in self.__fields__:
            value = getattr(self, field.name)
            if value != field.default_value():
                shown.append(f"{field.name}={_shorten(value)}")
        if self.unknown_tags:
            shown.append(f"unknown_tags={self.unknown_tags!r}")
        return f"{type(self).__name__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Message) or self.__fields__ is not other.__fields__:
            return NotImplemented
        for field in self.__fields__:
            if getattr(self, field.name) != getattr(other, field.name):
                return False
        return self.unknown_tags == other.unknown_tags


if TYPE_CHECKING:

    class Request(Message, Generic[R_co]):
        """A request whose response class is `R_co`, as `FetchRequest(Request[FetchResponse])`."""

else:

    class Request:
        """Exists for type checkers: the `message` decorator replaces this base by `Message`."""

        __slots__ = ()

        def __class_getitem__(cls, _response):
            return cls


def bare(cls: type[T]) -> T:
    """Return a message without fields, for a caller that sets each field itself.

    This takes half the time of passing the values as keywords.
    """
    message: Any = _new(cls)
    message.unknown_tags = NO_TAGS
    return message  # type: ignore[no-any-return]


_new = object.__new__


def _shorten(value: object) -> str:
    if isinstance(value, Payload) and len(value) > 64:
        return f"<{len(value)} bytes>"
    return repr(value)


def _generate_init(cls: type[Message]) -> Any:
    scope: dict[str, Any] = {"DEFAULT": DEFAULT, "NO_TAGS": NO_TAGS}
    parameters, body = [], []
    for number, field in enumerate(cls.__fields__):
        name = field.name
        value = name
        if field.default is DEFAULT and field.struct is None:
            value = f"[] if {name} is DEFAULT else {name}"
            parameters.append(f"{name}=DEFAULT")
        else:
            scope[f"d{number}"] = field.default_value()
            parameters.append(f"{name}=d{number}")
        body.append(f"    self.{name} = {value}\n")
    # The parameters are not declared keyword-only: CPython looks up the default of a keyword-only
    # parameter in a dict, 100 instructions each. `by_place` rejects positional arguments.
    signature = ", ".join(["self", "by_place=DEFAULT", "/", *parameters])
    source = (
        f"def __init__({signature}):\n"
        "    if by_place is not DEFAULT:\n"
        f"        raise TypeError('fields of {cls.__name__} are given by name')\n"
        f"{''.join(body)}    self.unknown_tags = NO_TAGS\n"
    )
    exec(compile(source, f"wire/generated/{cls.__name__}.__init__", "exec"), scope)
    return scope["__init__"]


def _refuse(self: Message, name: str, value: object = None) -> None:
    raise AttributeError(
        f"this {type(self).__name__} is the default that all messages share:"
        f" assign a new one before setting {name}"
    )


def _reduce_shared(self: Message) -> tuple[Any, ...]:
    # Copying or unpickling the shared default returns the shared default.
    return shared_default, (type(self).__base__,)


_shared_defaults: dict[type[Message], Message] = {}


def shared_default(cls: type[Message]) -> Message:
    """Return the shared read-only instance of a struct with default values.

    A fetch response of nine partitions holds 27 such structs, nearly always unchanged: sharing
    them saves 4 us per message, and the encoder recognises them by identity.
    """
    default = _shared_defaults.get(cls)
    if default is None:
        frozen = {
            "__slots__": (),
            "__setattr__": _refuse,
            "__delattr__": _refuse,
            "__reduce__": _reduce_shared,
        }
        default = cls()
        default.__class__ = type(cls.__name__, (cls,), frozen)
        _shared_defaults[cls] = default
    return default


class Declaration:
    """The arguments of `@message`: name, API key and versions of a message."""

    __slots__ = ("api", "first_version", "flexible", "kind", "last_version", "name", "record_type")

    def __init__(
        self,
        name: str,
        kind: str,
        *,
        api: int | None,
        record_type: int | None,
        versions: str,
        flexible: str,
    ) -> None:
        self.name = name
        self.kind = kind
        self.api = api
        self.record_type = record_type
        self.first_version, self.last_version = version_range(versions)
        self.flexible = flexible

    def is_flexible(self, version: int) -> bool:
        """Return whether the version has compact lengths and tagged fields (KIP-482)."""
        first, last = version_range(self.flexible)
        return first <= version <= last


def declaration(cls: type[Any]) -> Declaration:
    """Return the declaration of a message class.

    >>> from wire.schemas.produce import ProduceRequest
    >>> declaration(ProduceRequest).last_version
    13
    """
    found: Declaration | None = getattr(cls, "__declaration__", None)
    if found is None:
        raise TypeError(f"{cls.__name__} is not declared as a message")
    return found


@dataclass_transform(kw_only_default=True)
def message(
    *,
    kind: str,
    versions: str,
    flexible: str = "none",
    api: int | None = None,
    record_type: int | None = None,
) -> Callable[[type[T]], type[T]]:
    """Declare a message.

    `kind` is "request", "response", "header" or "data". `api` is the API key of requests and
    responses; `record_type` distinguishes the records of one internal topic.
    """

    def declare(cls: type[T]) -> type[T]:
        made: Any = _rebuild(cls)
        made.__declaration__ = Declaration(
            cls.__name__,
            kind,
            api=api,
            record_type=record_type,
            versions=versions,
            flexible=flexible,
        )
        made.__encoders__ = {}
        made.__decoders__ = {}
        made.__layouts__ = {}
        typed: type[T] = made
        return typed

    return declare


@dataclass_transform(kw_only_default=True)
def struct(cls: type[T]) -> type[T]:
    """Declare a struct, a part of messages. It has the versions of the message that contains it."""
    made: type[T] = _rebuild(cls)
    return made


def _rebuild(cls: type[Any]) -> Any:
    fields = []
    for name, value in cls.__dict__.items():
        if isinstance(value, Field):
            value.name = name
            fields.append(value)
    body = {
        "__slots__": tuple([field.name for field in fields]),
        "__fields__": tuple(fields),
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__,
        "__annotations__": cls.__dict__.get("__annotations__", {}),
    }
    return type(cls.__name__, (Message,), body)
