"""The hash by which a group detects changes of its topics."""

from __future__ import annotations

from _blake2 import blake2b  # `hashlib` would load OpenSSL, 3 ms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from embedlog.controller.metadata import MetadataImage

_HASH_SIZE = 8


def metadata_hash(topics: Iterable[str], metadata: MetadataImage) -> int:
    """Return an int64 hash of the topics' ids and partition counts; 0 if none of them exists."""
    by_name = metadata.topics_by_name
    found = [by_name[name] for name in sorted(topics) if name in by_name]
    if not found:
        return 0
    digest = blake2b(digest_size=_HASH_SIZE)
    for topic in found:
        digest.update(topic.topic_id)
        digest.update(len(topic.partitions).to_bytes(4, "big"))
    return int.from_bytes(digest.digest(), "big", signed=True)
