"""`WantedTopics`: the topics that a client keeps knowing, and what its next request asks about."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from embedlog.client.settings import Settings
    from wire.schemas.metadata import MetadataRequest


class Question:
    """What one request asks about."""

    __slots__ = ("asks_all", "is_partial", "request")

    def __init__(self, request: MetadataRequest, *, asks_all: bool, is_partial: bool) -> None:
        self.request = request
        self.asks_all = asks_all
        """Is it about all topics of the cluster?"""
        self.is_partial = is_partial
        """Is it about new topics alone? Then the others are as old as before."""


class WantedTopics:
    """Of one client. `want` may be called from any thread, the rest by the one that asks."""

    __slots__ = (
        "_asks_all",
        "_create_topics",
        "_idle_max_ms",
        "follows_all",
        "in_use",
        "new",
        "used",
    )

    def __init__(self, settings: Settings, *, create_topics: bool) -> None:
        """`create_topics`: asking for an unknown topic may create it, if the broker allows."""
        self._create_topics = create_topics
        self._idle_max_ms: int | None = settings.get("metadata.max.idle.ms")
        self.used: dict[str, int] = {}
        """The topics, and when they were used last; read it only."""
        self.new: set[str] = set()
        """Of those: the ones that nobody was asked about; read it only."""
        self._asks_all = False
        self.follows_all = False
        """Every answer is to be about all topics of the cluster."""
        self.in_use: Callable[[], Iterable[str]] = tuple
        """Topics that are used without a call of `want`; none of them is idle."""

    @property
    def are_all(self) -> bool:
        """Will the next request be about every topic of the cluster?"""
        return self._asks_all or self.follows_all

    def want(self, topic: str, now_ms: int) -> bool:
        """Keep knowing `topic`, which is used now; say whether it is new."""
        is_new = topic not in self.used
        self.used[topic] = now_ms
        if is_new:
            self.new.add(topic)
        return is_new

    def want_all(self) -> None:
        """Let the next request be about every topic of the cluster."""
        self._asks_all = True

    def forget(self, topics: Iterable[str]) -> None:
        """Ask no more for these topics; what is known of them stays."""
        for topic in topics:
            self.used.pop(topic, None)
            self.new.discard(topic)

    def take_idle(self, now_ms: int) -> list[str]:
        """Forget the topics that nobody has used for metadata.max.idle.ms, and name them."""
        if self._idle_max_ms is None:
            return []
        for name in self.in_use():
            if name in self.used:
                self.used[name] = now_ms
        limit = now_ms - self._idle_max_ms
        idle = [name for name, used_ms in list(self.used.items()) if used_ms <= limit]
        self.forget(idle)
        return idle

    def next_question(self, *, only_new: bool) -> Question:
        """What to ask about now: `only_new` topics, if that is enough, or all that are wanted."""
        from wire.schemas.metadata import MetadataRequest, MetadataRequestTopic

        asks_all, self._asks_all = self.are_all, False
        is_partial = only_new and not asks_all
        topics: list[MetadataRequestTopic] | None = None
        if not asks_all:
            asked = sorted(self.new if is_partial else self.used)
            topics = [MetadataRequestTopic(name=name) for name in asked]
            self.new.difference_update(asked)  # others may have been added meanwhile
        request = MetadataRequest(
            topics=topics, allow_auto_topic_creation=self._create_topics and topics is not None
        )
        return Question(request, asks_all=asks_all, is_partial=is_partial)
