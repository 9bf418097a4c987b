"""`Recording`: the stage and the observer that collect events, and the questions to them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from embedlog.errors import ConfigError
from embedlog.runtime.files import write_whole
from embedlog.runtime.os_files import OsFiles
from embedlog.testing.names import hint
from embedlog.testing.timeline.event import KINDS, Event
from embedlog.testing.timeline.recorder import Recorder
from wire.api_keys import NAMES

if TYPE_CHECKING:
    from _typeshed import StrPath

    from embedlog.runtime.clock import Clock
    from embedlog.testing.interception import Call, Stages


class Recording:
    """The events of a cluster from `Kafka.record` on, the newest 10,000.

    It is a sequence of `Event`, and a context manager: its end ends the recording, and the events
    stay. Log lines belong to the process. With two clusters at once, each recording has the lines
    of both.

    >>> from embedlog.testing import Kafka
    >>> with Kafka(topics={"t": 1}) as kafka, kafka.record() as log:
    ...     _ = kafka.producer().send("t", b"x").result()
    >>> [event.api for event in log.requests(topic="t")][-1]
    'Produce'
    """

    def __init__(self, clock: Clock, stages: Stages, *, frames: bool = False) -> None:
        """`frames`: keep the bytes of requests and answers too, for `write_pcap`."""
        self.began_wall_ms = clock.wall_ms()
        """Wall time of the beginning, in milliseconds since 1970."""
        self._recorder = Recorder(clock, stages, keeps_frames=frames)

    def end(self) -> None:
        """End the recording. Idempotent."""
        self._recorder.end()

    def note(self, kind: str, text: str, *, why: str = "", node_id: int | None = None) -> None:
        """Add an event of the test's own, or of the test kit: a fault, for example."""
        self._recorder.note(kind, text, why, node_id)

    def note_fault(self, rule: object, call: Call) -> None:
        """Add the event that a fault rule has acted at a request. Nothing after `end`."""
        if self._recorder.is_on:
            self._recorder.note_fault(str(rule), call)

    def tail(self, count: int) -> str:
        """Return the newest events as text, one a line."""
        entries = list(self._recorder.entries)[-count:]
        return "\n".join(str(each.event()) for each in entries)

    @property
    def dropped(self) -> int:
        """The number of older events that were forgotten."""
        return self._recorder.dropped

    # Questions

    @property
    def events(self) -> list[Event]:
        """All events in the order of time."""
        return [each.event() for each in list(self._recorder.entries)]

    def of_kind(self, kind: str) -> list[Event]:
        """Return the events of one kind.

        Raises:
            ConfigError: there is no such kind.
        """
        if kind not in KINDS:
            raise ConfigError(f"kind {kind!r}: {hint(kind, KINDS)}")
        return [each for each in self.events if each.kind == kind]

    def requests(
        self,
        api: str | None = None,
        *,
        client_id: str | None = None,
        topic: str | None = None,
        group: str | None = None,
        node: int | None = None,
        error: str | None = None,
    ) -> list[Event]:
        """Return the requests that match everything given.

        `error` is the name of an error in the answer.

        Raises:
            ConfigError: Kafka has no such API.
        """
        if api is not None and api not in NAMES.values():
            raise ConfigError(f"{api!r} is no API of Kafka; {hint(api, NAMES.values())}")
        return [
            each
            for each in self.of_kind("request")
            if api in (None, each.api)
            and client_id in (None, each.client_id)
            and node in (None, each.node_id)
            and (topic is None or topic in each.fields.get("topics", ()))
            and (group is None or group in each.fields.get("groups", ()))
            and (error is None or error in each.errors)
        ]

    def count(self, api: str, **given: Any) -> int:
        """Return the number of requests: see `requests`."""
        return len(self.requests(api, **given))

    def between(self, first: Event, last: Event) -> list[Event]:
        """Return the events from `first` to `last`, without these two."""
        return [each for each in self.events if first.at_us < each.at_us < last.at_us]

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def __len__(self) -> int:
        return len(self._recorder.entries)

    def __getitem__(self, index: int) -> Event:
        return self.events[index]

    def __str__(self) -> str:
        lines = [str(each) for each in self.events]
        dropped = self._recorder.dropped
        if dropped:
            lines.insert(0, f"({dropped} earlier events were forgotten)")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Recording of {len(self)} events>"

    # Files

    def write_json_lines(self, path: StrPath) -> None:
        """Write each event as a line of JSON, with its wall time as `at` in seconds since 1970."""
        from embedlog.testing.timeline.export import json_lines

        text = json_lines(self.events, self.began_wall_ms)
        _write(path, text.encode())

    def write_pcap(self, path: StrPath) -> None:
        """Write the frames as a capture of TCP packets, which Wireshark decodes as Kafka.

        Brokers have port 9092 of the addresses 10.0.0.<node id>.

        Raises:
            ConfigError: the recording keeps no frames: `Kafka.record(frames=True)`.
        """
        from embedlog.testing.timeline.export import pcap

        frames = self._recorder.frames
        if frames is None:
            raise ConfigError("the recording has no frames: begin it with record(frames=True)")
        _write(path, pcap(frames, self.began_wall_ms))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.end()


def _write(path: StrPath, content: bytes) -> None:
    write_whole(OsFiles(), str(Path(path)), content, sync=False)
