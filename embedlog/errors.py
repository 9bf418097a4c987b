"""Every error that embedlog raises on purpose.

`KafkaError` has one subclass for each error code of the protocol, named as the code is:
`UNKNOWN_TOPIC_OR_PARTITION` is `UnknownTopicOrPartition`. Each class is made from the table in
`wire.error_codes` on its first use, because 137 classes cost more time than opening a log. Code
that knows the error raises its class, `errors.InvalidRequest(message)`. `error_for` is for a code
in a response or a variable. Errors without a code on the wire derive from `EmbedlogError` alone.
"""

from __future__ import annotations

from wire.error_codes import ERRORS, ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from embedlog.common import TopicPartition

    Raised = TypeVar("Raised", bound=BaseException)


class EmbedlogError(Exception):
    """Base of everything embedlog raises on purpose."""

    remedy: str | None = None
    """Remedy for an error of a transaction: "abort" it, "close" the producer, or "retry" the call.
    None for every other error."""


def again(error: Raised) -> Raised:
    """Return a stored error to raise it once more.

    Without this its traceback would collect the frames of all earlier raises.
    """
    return error.with_traceback(None)


class KafkaError(EmbedlogError):
    """An error that has a code in the Kafka protocol.

    `code` and `retriable` belong to the class. `message` is the error message on the wire; None if
    the code is enough. `log_start_offset` is the field of a produce response beside the code; -1
    for an error that was found without the log.
    """

    code = -1
    retriable = False
    log_start_offset = -1
    record_errors: tuple[tuple[int, str | None], ...] = ()
    """(index of the record in its batch, message) for each refused record."""
    told_with_message = False
    """True if a produce response contains the message, as Kafka does for a few codes."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return self.message if self.message is not None else _meaning(self.code)


class ClosedError(EmbedlogError):
    """A call on a closed object."""


class IllegalState(EmbedlogError):
    """The call does not fit the object's state, such as a seek without an assignment."""


class NestedCall(IllegalState):
    """A signal handler, finalizer, log handler or trace function made a call while its thread was
    inside another call. Nothing was done.

    Set a flag that the program looks at, call `Consumer.wakeup`, or let another thread make the
    call. `close` is never refused: it happens at the end of the outer call.
    """


class ConfigError(EmbedlogError, ValueError):
    """A wrong setting. The message has the name, the value and the rule."""


class TimedOut(EmbedlogError, TimeoutError):
    """A wait in this process ended without an answer."""


class DirectoryLocked(EmbedlogError):
    """Another process has the data directory open; the message names its pid."""


class StorageFailed(EmbedlogError):
    """A file call failed; the partition takes no more writes."""


class CorruptRecord(EmbedlogError):
    """Damaged bytes on disk: in the file `path`, at byte `position`, for `reason`."""

    def __init__(self, path: str, position: int, reason: str) -> None:
        super().__init__(f"{path} at byte {position}: {reason}")
        self.path = path
        self.position = position
        self.reason = reason


class LogTruncation(EmbedlogError):
    """The log was truncated below a consumer's position, so consumed records are gone (KIP-320).

    `positions` are the consumer's positions. `divergent_offsets` are the offsets from which each
    log differs from the consumed records; None if unknown. With auto.offset.reset=none only the
    application may decide where to continue.
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


def error_class(code: int) -> type[KafkaError]:
    """Return the exception class of an error code; `UnknownServerError` for an unknown code."""
    known = _by_code.get(code)
    if known is not None:
        return known
    row = ERRORS.get(code)
    if row is None:
        return error_class(ErrorCode.UNKNOWN_SERVER_ERROR)
    name, retriable, meaning = row
    made = type(
        _class_name(name),
        (KafkaError,),
        {"__doc__": meaning, "__module__": __name__, "code": code, "retriable": retriable},
    )
    _by_code[code] = made
    return made


def error_for(code: int, message: str | None = None) -> KafkaError:
    """Return an exception for a code from a response. Requires: `code` is not 0."""
    assert code != 0, "error code 0 is success"
    return error_class(code)(message)


def error_name(code: int) -> str:
    """Return Kafka's name of an error code, for example `NOT_COORDINATOR`."""
    row = ERRORS.get(code)
    return row[0] if row is not None else str(code)


def _meaning(code: int) -> str:
    row = ERRORS.get(code)
    return row[2] if row is not None else f"error code {code}"


def _class_name(name: str) -> str:
    """Return the class name: `INVALID_TOPIC_EXCEPTION` -> `InvalidTopic`."""
    return "".join(word.capitalize() for word in name.removesuffix("_EXCEPTION").split("_"))


def _code_of(name: str) -> int:
    """Return the code of a class name; 0 for an unknown name."""
    words = "".join(f"_{letter}" if letter.isupper() else letter.upper() for letter in name)
    known: dict[str, int] = ErrorCode.__dict__  # type: ignore[assignment]
    code = known.get(words[1:]) or known.get(words[1:] + "_EXCEPTION")
    return code if code and _class_name(ERRORS[code][0]) == name else 0


def __getattr__(name: str) -> type[KafkaError]:
    code = 0 if name.startswith("_") else _code_of(name)
    if code == 0:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    made = error_class(code)
    globals()[name] = made
    return made


def __dir__() -> list[str]:
    return sorted([*globals(), *(_class_name(row[0]) for code, row in ERRORS.items() if code != 0)])
