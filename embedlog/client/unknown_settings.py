"""The warning about a setting that a client does not have. Imported only for such a setting."""

from __future__ import annotations

from embedlog.client.settings import CONSUMER, PRODUCER
from embedlog.user_warnings import warn_user

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.settings import Definitions

_OWNERS = {"consumers": CONSUMER, "producers": PRODUCER}
_ALIKE_FROM = 0.8
"""Lowest difflib ratio of a hint: 'linger.msec' for 'linger.ms' has 0.9, others less than 0.7."""

_NOT_NEEDED = "is not needed: it has no effect"
_IS_LOGGED = "has no effect: the clients log to the standard library's logger 'embedlog.client'"
_IS_COUNTED = "has no effect: metrics() returns the numbers"
_ELSEWHERE = {
    "api.version": _NOT_NEEDED,
    "api.version.auto.timeout.ms": _NOT_NEEDED,
    "api.version.fallback.ms": _NOT_NEEDED,
    "api.version.request": _NOT_NEEDED,
    "auto.commit.enable": "is 'enable.auto.commit' here",
    "auto.create.topics.enable": "is a setting of the broker; consumers have "
    "'allow.auto.create.topics'",
    "batch.num.messages": "has no effect: batches are limited by 'batch.size', in bytes",
    "broker.version.fallback": _NOT_NEEDED,
    "compression.codec": "is 'compression.type' here",
    "compression.level": "is 'compression.gzip.level', 'compression.lz4.level' or "
    "'compression.zstd.level' here",
    "consumer.timeout.ms": "has no effect: poll(timeout_ms=...) says how long to wait",
    "debug": _IS_LOGGED,
    "delivery.report.only.error": "has no effect: on_delivery is called for every record",
    "dr.cb": "has no effect: send(..., on_delivery=...) takes the callback",
    "dr.msg.cb": "has no effect: send(..., on_delivery=...) takes the callback",
    "enable.auto.offset.store": "has no effect: poll moves the positions, commit stores them",
    "enable.partition.eof": "has no effect: current_lag shows when a partition has been read",
    "error.cb": "has no effect: errors are raised, or passed to futures and callbacks",
    "fetch.message.max.bytes": "is 'max.partition.fetch.bytes' here",
    "fetch.wait.max.ms": "is 'fetch.max.wait.ms' here",
    "log.level": _IS_LOGGED,
    "logger": _IS_LOGGED,
    "loop": _NOT_NEEDED,
    "max.in.flight": "is 'max.in.flight.requests.per.connection' here",
    "message.max.bytes": "is 'max.request.size' here",
    "message.send.max.retries": "is 'retries' here",
    "message.timeout.ms": "is 'delivery.timeout.ms' here",
    "metadata.broker.list": "is 'bootstrap.servers' here",
    "metric.reporters": _IS_COUNTED,
    "metrics.num.samples": _IS_COUNTED,
    "metrics.recording.level": _IS_COUNTED,
    "metrics.sample.window.ms": _IS_COUNTED,
    "on.commit": "has no effect: commit_async(callback=...) takes the callback",
    "on.delivery": "has no effect: send(..., on_delivery=...) takes the callback",
    "partitioner": "is 'partitioner.class' here",
    "queue.buffering.max.kbytes": "is 'buffer.memory' here, in bytes",
    "queue.buffering.max.messages": "has no effect: 'buffer.memory' limits bytes",
    "queue.buffering.max.ms": "is 'linger.ms' here",
    "request.required.acks": "is 'acks' here",
    "socket.keepalive.enable": "has no effect: keepalive is always on",
    "socket.nagle.disable": "has no effect: TCP_NODELAY is always set",
    "socket.timeout.ms": "is 'request.timeout.ms' here",
    "ssl.check.hostname": "is 'ssl.endpoint.identification.algorithm' here",
    "ssl.context": "has no effect: the settings ssl.* describe the context",
    "statistics.interval.ms": _IS_COUNTED,
    "stats.cb": _IS_COUNTED,
    "throttle.cb": _NOT_NEEDED,
    "value.encoder": "is 'value.serializer' here",
}
"""Settings of other clients: the same setting here, or the reason why it has no effect."""


def warn_unknown(key: str, definitions: Definitions) -> None:
    """Warn of a setting that the client does not have, at the line of the user who gave it."""
    name = key.replace("_", ".")
    said = _ELSEWHERE.get(name)
    if said is None:
        owner = next((who for who, settings in _OWNERS.items() if name in settings), None)
        if owner is not None:
            said = f"is a setting of {owner}; it has no effect here"
    if said is not None:
        warn_user(f"unknown configuration {key!r}: it {said}")
        return
    from difflib import get_close_matches

    nearest = get_close_matches(name.lower(), definitions, n=1, cutoff=_ALIKE_FROM)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else "; it has no effect"
    warn_user(f"unknown configuration {key!r}{hint}")
