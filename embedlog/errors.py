"""Every error that embedlog raises on purpose.

`KafkaError` has one subclass for each error code of the protocol, named as the code is:
`UNKNOWN_TOPIC_OR_PARTITION` is `UnknownTopicOrPartition`. They are made from the table in
`wire.error_codes` when they are first named, because 137 classes cost more time than opening a
log. Who knows the error raises its class, `errors.InvalidRequest(message)`; `error_for` is for the
code that a response brings, or a variable holds. What has no code on the wire derives from
`EmbedlogError` alone.
"""

from __future__ import annotations

from wire.error_codes import ERRORS, ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.common import TopicPartition


class EmbedlogError(Exception):
    """Base of everything embedlog raises on purpose."""

    remedy: str | None = None
    """What is left to do after an error of a transaction: "abort" it, "close" the producer, or
    "retry" the call. None for every other error."""


class KafkaError(EmbedlogError):
    """An error that has a code in the Kafka protocol.

    `code` and `retriable` belong to the class. `message` is what goes over the wire as the
    error message (None: the code says it all). `log_start_offset` is what a produce response
    reports beside the code; -1 for an error found before the log was looked at.
    """

    code = -1
    retriable = False
    log_start_offset = -1
    record_errors: tuple[tuple[int, str | None], ...] = ()
    """(index of the record in its batch, message) for each record that was refused."""
    told_with_message = False
    """Does a produce response give the message, too? Kafka does for few."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return self.message if self.message is not None else _meaning(self.code)


class ClosedError(EmbedlogError):
    """A call on something that was closed."""


class IllegalState(EmbedlogError):
    """The call does not fit the object's state, such as a seek without an assignment."""


class ConfigError(EmbedlogError, ValueError):
    """A configuration key or value that cannot be used; says the key, the value and the rule."""


class TimedOut(EmbedlogError, TimeoutError):
    """A wait of the local process ended without an answer."""


class DirectoryLocked(EmbedlogError):
    """Another process has the data directory open; the message names its pid."""


class StorageFailed(EmbedlogError):
    """The file layer failed; the partition refuses writes from here on."""


class CorruptRecord(EmbedlogError):
    """Bytes on disk that are not what was written: `path`, byte `position`, `reason`."""

    def __init__(self, path: str, position: int, reason: str) -> None:
        super().__init__(f"{path} at byte {position}: {reason}")
        self.path = path
        self.position = position
        self.reason = reason


class LogTruncation(EmbedlogError):
    """Records that were read are gone: the log was cut below a position (KIP-320).

    `positions` are those positions, `divergent_offsets` where each log parted from what was read,
    None where that is unknown. With auto.offset.reset=none nobody may choose to go on there.
    """

    def __init__(
        self,
        positions: dict[TopicPartition, int],
        divergent_offsets: dict[TopicPartition, int | None],
    ) -> None:
        parts = ", ".join(
            f"{key} at {offset} (the log differs from {divergent_offsets[key]} on)"
            for key, offset in positions.items()
        )
        super().__init__(f"logs were truncated below the positions: {parts}; seek to go on")
        self.positions = positions
        self.divergent_offsets = divergent_offsets


_by_code: dict[int, type[KafkaError]] = {}
_rows = {row[0]: row for row in ERRORS}


def error_class(code: int) -> type[KafkaError]:
    """The exception class of a wire error code. An unknown code gives `UnknownServerError`."""
    known = _by_code.get(code)
    if known is not None:
        return known
    row = _rows.get(code)
    if row is None:
        return error_class(ErrorCode.UNKNOWN_SERVER_ERROR)
    _, name, retriable, meaning = row
    made = type(
        _class_name(name),
        (KafkaError,),
        {"__doc__": meaning, "__module__": __name__, "code": code, "retriable": retriable},
    )
    _by_code[code] = made
    return made


def error_for(code: int, message: str | None = None) -> KafkaError:
    """An exception for a code other than 0 that is not known before it is seen."""
    assert code != 0, "error code 0 is success"
    return error_class(code)(message)


def error_name(code: int) -> str:
    """Kafka's name of an error code, `NOT_COORDINATOR`."""
    row = _rows.get(code)
    return row[1] if row is not None else str(code)


def _meaning(code: int) -> str:
    row = _rows.get(code)
    return row[3] if row is not None else f"error code {code}"


def _class_name(name: str) -> str:
    """`INVALID_TOPIC_EXCEPTION` -> `InvalidTopic`; only that suffix is dropped."""
    return "".join(word.capitalize() for word in name.removesuffix("_EXCEPTION").split("_"))


def _code_of(name: str) -> int:
    """The other way: the code of a class name; 0 for what is none."""
    words = "".join(f"_{letter}" if letter.isupper() else letter.upper() for letter in name)
    known: dict[str, int] = ErrorCode.__dict__  # type: ignore[assignment]
    code = known.get(words[1:]) or known.get(words[1:] + "_EXCEPTION")
    return code if code and _class_name(_rows[code][1]) == name else 0


def __getattr__(name: str) -> type[KafkaError]:
    code = 0 if name.startswith("_") else _code_of(name)
    if code == 0:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    made = error_class(code)
    globals()[name] = made
    return made


def __dir__() -> list[str]:
    return sorted([*globals(), *(_class_name(row[1]) for row in ERRORS if row[0] != 0)])
