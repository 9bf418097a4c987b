"""What the parts of the admin client stand on."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from embedlog.client.admin.calls import AdminCalls
    from embedlog.client.metadata import Metadata
    from embedlog.client.settings import Settings
    from embedlog.transport import Transport


class AdminPart:
    """A group of the calls of `Admin`, which is made of several and sets these."""

    _settings: Settings
    _transport: Transport
    _calls: AdminCalls
    _metadata: Metadata


def text(value: Any) -> str | None:
    """A setting's value as Kafka writes it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(str(each) for each in value)
    return str(value)
