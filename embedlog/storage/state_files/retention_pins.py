"""Offsets from which retention keeps records for a while, for readers in other processes.

A reader that has planned a read stores its offsets in a file of the exchange directory:

    {"expires_ms": the machine's wall time, "offsets": [[topic, partition, offset], ...]}

Retention by size and age keeps the segments from these offsets on. A pin expires by itself, because
its reader may have died. Pins stop nothing else:

- DeleteRecords and the deletion of a topic go on, because somebody ordered them, perhaps to erase
  records that must not be kept. The reader gets OffsetOutOfRange or UnknownTopicOrPartition.
- Compaction goes on. It keeps the newest record of each key, at its offset; a reader of a compacted
  topic must expect that older records vanish.
"""

from __future__ import annotations

from embedlog.common import TopicPartition
from embedlog.errors import ConfigError, CorruptRecord
from embedlog.storage import paths
from embedlog.storage.events import events
from embedlog.storage.state_files import staged_layout
from embedlog.storage.state_files.foreign_document import number, read_document, text
from embedlog.storage.state_files.sealed_file import write_sealed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from embedlog.runtime import Runtime
    from embedlog.runtime.files import Files

TIMEOUT_MAX_MS = 86_400_000
"""A pin that expires in more than this time is ignored: the wall clock was probably set back."""


class RetentionPin:
    """Offsets from which retention keeps records until `release`; see `LogDirectoryReader.pin`.

    A context manager, for one thread.
    """

    def __init__(
        self, runtime: Runtime, data: str, offsets: Mapping[tuple[str, int], int], timeout_ms: int
    ) -> None:
        """Store the pin. Raises as `renew`, and ConfigError unless 0 < `timeout_ms` <= 24 hours."""
        if not 0 < timeout_ms <= TIMEOUT_MAX_MS:
            raise ConfigError(f"timeout_ms={timeout_ms}: expected 1 to {TIMEOUT_MAX_MS}")
        self._files = runtime.files
        self._clock = runtime.clock
        self._offsets = {TopicPartition(*each): offset for each, offset in offsets.items()}
        self._timeout_ms = timeout_ms
        self._directory = staged_layout.part(data, staged_layout.PINS)
        self._path = f"{self._directory}/{runtime.random.uuid().hex()}"
        self.renew()

    def renew(self) -> None:
        """Store the pin again, so that it expires `timeout_ms` from now."""
        from json import dumps

        offsets = [[*each, offset] for each, offset in sorted(self._offsets.items())]
        expires_ms = self._clock.machine_wall_ms() + self._timeout_ms
        content = dumps({"expires_ms": expires_ms, "offsets": offsets}).encode()
        files, path = self._files, self._path
        staged_layout.inside(
            files, self._directory, lambda: write_sealed(files, path, content, sync=False)
        )

    def release(self) -> None:
        """End the pin. A second call does nothing."""
        _remove(self._files, self._path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.release()


def read_pins(files: Files, data: str, wall_ms: int) -> dict[TopicPartition, int]:
    """Return the lowest pinned offset of each partition; remove expired pins.

    Only the process that owns the data directory calls it.
    """
    directory = staged_layout.part(data, staged_layout.PINS)
    found: dict[TopicPartition, int] = {}
    if not staged_layout.is_real(files, data, directory):
        return found
    try:
        names = files.list(directory)
    except (FileNotFoundError, NotADirectoryError):
        return found
    for name in names:
        path = f"{directory}/{name}"
        if name.endswith(paths.TEMPORARY):
            continue
        try:
            expires_ms, offsets = _read(files, path)
        except CorruptRecord as error:
            events.warning("%s pins nothing: %s", ascii(path), error)
            _set_aside(files, data, name)
            continue
        if not 0 < expires_ms - wall_ms <= TIMEOUT_MAX_MS:
            _remove(files, path)
            continue
        for each, offset in offsets:
            found[each] = min(offset, found.get(each, offset))
    return found


def _read(files: Files, path: str) -> tuple[int, list[tuple[TopicPartition, int]]]:
    """Return when a pin expires, 0 if it was removed meanwhile, and its offsets."""
    pin = read_document(files, path)
    if pin is None:
        return 0, []
    try:
        offsets = [
            (TopicPartition(text(topic), number(partition)), number(offset))
            for topic, partition, offset in pin["offsets"]
        ]
        return number(pin["expires_ms"]), offsets
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptRecord(path, 0, f"no pin: {error!r}") from None


def _set_aside(files: Files, data: str, name: str) -> None:
    try:
        staged_layout.set_aside(files, data, staged_layout.PINS, name)
    except OSError as error:
        events.debug("%s cannot be set aside: %s", ascii(name), error)


def _remove(files: Files, path: str) -> None:
    try:
        files.remove(path)
    except OSError as error:
        events.debug("%s cannot be removed: %s", path, error)
