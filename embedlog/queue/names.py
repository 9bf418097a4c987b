"""The names of a queue's topics, group and record headers."""

from __future__ import annotations

from embedlog import topic_names
from embedlog.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable

_SUFFIXES = (".delayed", ".replies")
_SUFFIX_LENGTH_MAX = 8
_DEAD = "dlq."
"""Brokers write dead letters only to topics whose names begin so, unless their setting
errors.deadletterqueue.topic.name.prefix says otherwise."""

JOB_ID = "job.id"
"""Header: the id of a job that has no place in the ready topic yet, or had one before."""
CONTENT_TYPE = "content-type"
"""Header: how the value was made of an object. Without it the value is bytes."""
DELIVERIES = "job.deliveries"
"""Header: deliveries of the earlier records of the same job."""
FAILURES = "job.failures"
"""Header: how often a worker raised."""
ERROR = "job.error"
"""Header: the last error, as text."""
REASON = "job.reason"
"""Header of a dead job: why it was given up."""
REPLY = "job.reply"
"""Header: the maker of the job waits for its result."""
LETTER = "__dlq.errors."
"""The headers of dead letters that brokers write (KIP-1191) begin so."""
PUT_AT = "job.put.at"
"""Header: when the job was put, in ms since 1970, if the record's timestamp says something else."""


class QueueNames:
    """The names that belong to one queue.

    >>> names = QueueNames("jobs", priorities=2)
    >>> names.levels, names.dead
    (('jobs.p1', 'jobs'), 'dlq.jobs')
    """

    __slots__ = ("dead", "delayed", "levels", "name", "replies")

    def __init__(self, name: object, *, priorities: int = 1) -> None:
        """Raises ConfigError if `name` cannot name topics."""
        if not isinstance(name, str):
            raise ConfigError(f"queue({name!r}): expected a name as str")
        problem = topic_names.problem_of(name)
        if problem is None and len(name) > topic_names.LENGTH_MAX - _SUFFIX_LENGTH_MAX:
            problem = f"'{name}' is longer than {topic_names.LENGTH_MAX - _SUFFIX_LENGTH_MAX}"
        if problem is None and name.startswith("__"):
            problem = f"'{name}' begins with '__', as Kafka's internal topics do"
        if problem is None and (name.endswith(_SUFFIXES) or name.startswith(_DEAD)):
            problem = f"'{name}' is named as a topic of another queue"
        if problem is not None:
            raise ConfigError(f"queue({name!r}): a queue's name is a topic's name: {problem}")
        self.name = name
        """The name of the queue, of its share group, and of the topic with priority 0."""
        higher = (f"{name}.p{level}" for level in range(priorities - 1, 0, -1))
        self.levels = (*higher, name)
        """The topics of ready jobs, the highest priority first."""
        self.delayed, self.replies = (name + suffix for suffix in _SUFFIXES)
        self.dead = _DEAD + name

    @staticmethod
    def queues(topics: Iterable[str]) -> list[str]:
        """Return the sorted names of the queues that have these topics.

        >>> QueueNames.queues(["jobs", "jobs.delayed", "dlq.jobs", "events"])
        ['jobs']
        """
        return sorted(topic[len(_DEAD) :] for topic in topics if topic.startswith(_DEAD))

    @classmethod
    def present(cls, name: object, topics: Container[str], *, priorities: int) -> QueueNames:
        """Return the names of a queue with at least the priorities that its topics have.

        >>> QueueNames.present("jobs", {"jobs", "jobs.p1", "dlq.jobs"}, priorities=1).levels
        ('jobs.p1', 'jobs')
        """
        count = 1
        # The topic with a dead topic of its own is another queue.
        while f"{name}.p{count}" in topics and f"{_DEAD}{name}.p{count}" not in topics:
            count += 1
        return cls(name, priorities=max(count, priorities))

    @staticmethod
    def is_level(topic: str, queue: str) -> bool:
        """Return whether a topic is of a queue's ready jobs, of whatever priority.

        >>> [QueueNames.is_level(topic, "jobs") for topic in ("jobs", "jobs.p2", "jobs.px")]
        [True, True, False]
        """
        level = topic.removeprefix(f"{queue}.p")
        return topic == queue or (level != topic and level.isdigit())

    def level(self, priority: int) -> str:
        """Return the topic of a priority; 0 is the lowest."""
        return self.levels[len(self.levels) - 1 - priority]
