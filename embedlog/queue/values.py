"""The values of jobs: bytes as they are, other objects as JSON, or as a serializer says."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    class Serializer(Protocol):
        """Two functions, as the modules `json`, `pickle` and `marshal` have."""

        @property
        def dumps(self) -> Callable[[Any], bytes | str]:
            """Return bytes or text for an object."""

        @property
        def loads(self) -> Callable[[bytes], Any]:
            """Return the object again."""


JSON = b"application/json"


class Values:
    """Makes records' values of jobs' values, and back."""

    def __init__(self, serializer: Serializer | None) -> None:
        """`serializer` is for all values; None means bytes, and JSON for all other objects."""
        self._serializer = serializer

    def encode(self, value: Any) -> tuple[bytes, bytes | None]:
        """Return the bytes of a value, and its content type; None for a value without one.

        Raises:
            TypeError: the value is neither bytes nor JSON.
        """
        if self._serializer is not None:
            made = self._serializer.dumps(value)
            return (made.encode() if isinstance(made, str) else bytes(made)), None
        if isinstance(value, bytes | bytearray | memoryview):
            return bytes(value), None
        import json

        try:
            return json.dumps(value, allow_nan=False, separators=(",", ":")).encode(), JSON
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"a job's value is bytes or JSON, not {type(value).__name__} ({error}); "
                "queue(..., serializer=pickle) takes any object"
            ) from None

    def decode(self, value: bytes | memoryview | None, content_type: bytes | None) -> Any:
        """Return the value of a record; a record that another program wrote may have None."""
        if value is None:
            return None
        if self._serializer is not None:
            return self._serializer.loads(bytes(value))
        if content_type == JSON:
            import json

            return json.loads(bytes(value))
        return bytes(value)
