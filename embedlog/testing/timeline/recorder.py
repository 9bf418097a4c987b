"""`Recorder`: the stage and the observer of log lines that a timeline gets its events from."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from embedlog.logger import observe
from embedlog.runtime.pending import Pending
from embedlog.testing.interception import TIMELINE, Call, Proceed, Stages
from embedlog.testing.timeline import summary
from embedlog.testing.timeline.entry import Entry
from embedlog.testing.timeline.frames import Frame, answer_frame, request_frame
from embedlog.testing.timeline.log_lines import kind_of, split_reason
from wire.api_keys import NAMES

if TYPE_CHECKING:
    from embedlog.runtime.clock import Clock

ENTRIES_MAX = 10_000


class Recorder:
    """Collects the newest `ENTRIES_MAX` entries until `end`."""

    def __init__(self, clock: Clock, stages: Stages, *, keeps_frames: bool) -> None:
        self._clock = clock
        self._stages = stages
        self._began_us = clock.monotonic_us()
        self.entries: deque[Entry] = deque(maxlen=ENTRIES_MAX)
        self.dropped = 0
        """The number of older entries that were forgotten."""
        self.frames: list[Frame] | None = [] if keeps_frames else None
        self.is_on = True
        """Whether the recording goes on."""
        self._stop_observing = observe(self._hear)
        stages.put(TIMELINE, self._see)

    def end(self) -> None:
        """End the recording. Idempotent."""
        self.is_on = False
        self._stop_observing()
        self._stages.remove(TIMELINE, self._see)

    def note(self, kind: str, text: str, why: str, node_id: int | None) -> None:
        """Add an entry that is no request."""
        self._add(Entry(self._now_us(), kind, text, why, node_id))

    def note_fault(self, rule: str, call: Call) -> None:
        """Add an entry for a fault at a request; `rule` is the reason."""
        context = call.context
        api = NAMES.get(context.api_key, str(context.api_key))
        text = f'broker {call.broker.node_id} "{context.client_id or ""}": a rule meets {api}'
        entry = Entry(self._now_us(), "fault", text, rule, call.broker.node_id)
        entry.api, entry.version, entry.client_id = api, context.api_version, context.client_id
        self._add(entry)

    def _see(self, call: Call, proceed: Proceed) -> Any:
        context = call.context
        connection = context.connection
        peer = "" if connection is None else f"{connection.peer_host}:{connection.peer_port}"
        entry = Entry(self._now_us(), "request", "", "", call.broker.node_id)
        entry.api = NAMES.get(context.api_key, str(context.api_key))
        entry.version = context.api_version
        entry.client_id = context.client_id
        entry.peer = peer
        entry.fields = summary.places(call.request, call.broker.topic_name)
        self._add(entry)
        frame = None
        if self.frames is not None:
            frame = request_frame(call, peer, entry.at_us)
            self.frames.append(frame)
        answer = proceed(call)
        if type(answer) is Pending and not answer.done():
            answer.add_callback(lambda done: self._answered(entry, frame, done))
        else:
            self._answered(entry, frame, answer)
        return answer

    def _answered(self, entry: Entry, frame: Frame | None, answer: Any) -> None:
        """Note the answer. Runs as a callback too, so it must not raise."""
        now_us = self._now_us()
        if type(answer) is Pending:
            failure = answer.error()
            if failure is not None:
                entry.errors = (type(failure).__name__,)
                entry.duration_us = now_us - entry.at_us
                return
            answer = answer.result()
        entry.duration_us = now_us - entry.at_us
        entry.errors = summary.errors(answer)
        if frame is not None and answer is not None and self.frames is not None:
            self.frames.append(answer_frame(frame, answer, now_us))

    def _hear(self, _name: str, _level: int, message: str, values: tuple[object, ...]) -> None:
        try:
            text = message % values if values else message
        except (TypeError, ValueError):
            text = message
        text, why = split_reason(text)
        self.note(kind_of(message), text, why, None)

    def _add(self, entry: Entry) -> None:
        if len(self.entries) == ENTRIES_MAX:
            self.dropped += 1
        self.entries.append(entry)

    def _now_us(self) -> int:
        return self._clock.monotonic_us() - self._began_us
