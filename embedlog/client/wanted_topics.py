"""`WantedTopics`: the topics whose metadata a client keeps, and the scope of its next request."""

from __future__ import annotations

from embedlog.client.rare_warnings import RareWarnings
from embedlog.common import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from embedlog.client.settings import Settings
    from embedlog.errors import KafkaError
    from wire.schemas.metadata import MetadataRequest


class MetadataQuestion(Value):
    """One metadata request."""

    request: MetadataRequest
    asks_all: bool
    """True if the request asks about all topics of the cluster."""
    is_partial: bool
    """True if the request asks only about new topics: it does not refresh the others."""


class WantedTopics:
    """The wanted topics of one client. Any thread may call `want`; one thread calls the rest."""

    def __init__(self, settings: Settings, *, create_topics: bool) -> None:
        """`create_topics`: asking for an unknown topic may create it, if the broker allows that."""
        self._create_topics = create_topics
        self._idle_max_ms: int | None = settings.get("metadata.max.idle.ms")
        self.used: dict[str, int] = {}
        """The topics, and the time of their last use. Other objects only read it."""
        self.new: set[str] = set()
        """Topics of `used` that no request has asked about yet. Other objects only read it."""
        self.question_count = 0
        """Number of the last request."""
        self.answered = 0
        """Number of the last request that got an answer. A call that wants an answer to its own
        request waits until this exceeds the `question_count` from before the call."""
        self._asks_all = False
        self.follows_all = False
        self.warnings = RareWarnings()
        """About topics and partitions that the client wants, and cannot use."""
        self.in_use: Callable[[], Iterable[str]] = tuple
        """Returns topics that are in use without a call of `want`; they are never idle."""

    @property
    def are_all(self) -> bool:
        return self._asks_all or self.follows_all

    def want(self, topic: str, now_ms: int) -> bool:
        """Note a use of `topic`; return whether it is new."""
        is_new = topic not in self.used
        self.used[topic] = now_ms
        if is_new:
            self.new.add(topic)
        return is_new

    def want_all(self) -> None:
        self._asks_all = True

    def forget(self, topics: Iterable[str]) -> None:
        """Ask no more about these topics; their metadata stays."""
        for topic in topics:
            self.used.pop(topic, None)
            self.new.discard(topic)

    def take_idle(self, now_ms: int) -> list[str]:
        """Forget the topics that were unused for metadata.max.idle.ms, and return them."""
        if self._idle_max_ms is None:
            return []
        for name in self.in_use():
            if name in self.used:
                self.used[name] = now_ms
        limit = now_ms - self._idle_max_ms
        idle = [name for name, used_ms in list(self.used.items()) if used_ms <= limit]
        self.forget(idle)
        return idle

    def tell_missing(self, errors: Mapping[str, KafkaError], now_ms: int) -> None:
        """Warn of the topics with a lasting error; `errors` is of the newest answer."""
        for name in list(self.used):
            error = errors.get(name)
            if error is None:
                self.warnings.is_over(name)
                continue
            self.warnings.warn_if_lasting(
                name,
                now_ms,
                "topic %r cannot be used: %s; the client asks again: is its name right?",
                name,
                type(error).__name__,
            )

    def next_question(self, *, only_new: bool) -> MetadataQuestion:
        """Return the next request: only about new topics, or about all wanted ones."""
        from wire.schemas.metadata import MetadataRequest, MetadataRequestTopic

        self.question_count += 1
        asks_all, self._asks_all = self.are_all, False
        is_partial = only_new and not asks_all
        topics: list[MetadataRequestTopic] | None = None
        if not asks_all:
            asked = sorted(self.new if is_partial else self.used)
            topics = [MetadataRequestTopic(name=name) for name in asked]
            self.new.difference_update(asked)  # another thread may have added topics meanwhile
        request = MetadataRequest(
            topics=topics, allow_auto_topic_creation=self._create_topics and topics is not None
        )
        return MetadataQuestion(request, asks_all=asks_all, is_partial=is_partial)
