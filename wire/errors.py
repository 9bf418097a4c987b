"""Errors of encoding and decoding messages."""

from __future__ import annotations


class RemoteProtocolError(ValueError):
    """The peer broke the protocol: the connection must be closed."""


class MalformedMessage(RemoteProtocolError):
    """The bytes are not a message of the class and version to decode."""


class InvalidMessage(ValueError):
    """A message that cannot be encoded, such as a number out of range or an illegal null."""


class UnsupportedField(InvalidMessage):
    """A field has a value, but the version to encode lacks the field.

    Only a field that Kafka calls ignorable is dropped instead, because the loss of any other field
    could change the meaning of the request.
    """

    def __init__(self, message: str, field: str, version: int) -> None:
        super().__init__(f"{message} version {version} cannot carry {field}")
        self.message = message
        self.field = field
        self.version = version


class MessageTooLarge(ValueError):
    """A message exceeds the size limit of the caller."""

    def __init__(self, size_max: int) -> None:
        super().__init__(f"a message of more than the {size_max} bytes that are allowed")
        self.size_max = size_max


class UnknownVersion(ValueError):
    """The message class has no such version."""


class UnknownApi(ValueError):
    """The API key does not name an API for clients."""

    def __init__(self, api_key: int) -> None:
        super().__init__(f"API key {api_key} has no messages here")
        self.api_key = api_key
