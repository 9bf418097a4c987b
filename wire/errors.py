"""What can go wrong between bytes and messages."""

from __future__ import annotations


class RemoteProtocolError(ValueError):
    """The other side of a connection broke the protocol; the connection cannot go on."""


class MalformedMessage(RemoteProtocolError):
    """Bytes that are no message of the wanted class and version."""


class InvalidMessage(ValueError):
    """A message object that has no encoding: a number out of range, null where none is allowed."""


class UnsupportedField(InvalidMessage):
    """A field holds a value, and the version to encode has no place for it.

    Dropping the value could change what the message asks for, so only fields that Kafka calls
    ignorable are dropped.
    """

    def __init__(self, message: str, field: str, version: int) -> None:
        super().__init__(f"{message} version {version} cannot carry {field}")
        self.message = message
        self.field = field
        self.version = version


class MessageTooLarge(ValueError):
    """A message is longer than whoever encodes it allows."""

    def __init__(self, size_max: int) -> None:
        super().__init__(f"a message of more than the {size_max} bytes that are allowed")
        self.size_max = size_max


class UnknownVersion(ValueError):
    """The message class does not exist in the wanted version."""


class UnknownApi(ValueError):
    """The API key names no API that a client may use."""

    def __init__(self, api_key: int) -> None:
        super().__init__(f"API key {api_key} has no messages here")
        self.api_key = api_key
