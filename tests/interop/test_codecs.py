"""Our decoders of compressed records read all that Kafka's Java code reads, and the same."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from tests.interop.codecs.cases import SNAPPY, broken, samples, well_formed
from tests.interop.codecs.verdicts import java_verdicts, kind, our_verdict
from tests.support.sizes import size
from wire.records.compression import XERIAL_HEADER

pytestmark = pytest.mark.interop

BROKEN_COUNT = size(20_000, full=200_000)
JAVA_OVERFLOWS = ("ZstdIOException Unspecified error", "ZstdIOException Unsupported frame param")
"""Java's answers to a whole frame before an unfinished skippable one of nearly 4 GiB."""


def test_java_and_we_read_the_same(tmp_path: Path) -> None:
    """The payloads are new in each run; the message of a failure has the seed."""
    seed = Random().randrange(1 << 32)
    random = Random(seed)
    whole = list(well_formed(random.sample(samples(random), 4)))
    cases = [*whole, *broken(whole, random, BROKEN_COUNT)]
    counts: Counter[str] = Counter()
    differences = []
    for case, java in zip(cases, java_verdicts(cases, tmp_path), strict=True):
        note, codec, magic, data = case
        ours = our_verdict(codec, magic, data)
        counts[kind(java)[:2]] += 1
        if kind(java) != ours and not _is_arbitrary(codec, data, java):
            differences.append(f"{note}: Java {java}, we {ours}: {codec} {magic} {data[:99].hex()}")
    assert not differences, f"seed {seed}, {len(differences)}:\n" + "\n".join(differences[:20])
    assert min(counts["ok"], counts["re"]) > 5_000, counts


def _is_arbitrary(codec: int, data: bytes, java: str) -> bool:
    """Return whether Java's verdict depends on its buffers, or on an overflow.

    After a broken header between two streams of snappy, Java's next read goes on or ends, as it has
    returned bytes before or not.
    """
    inner = data.find(XERIAL_HEADER[:4], 1)
    is_broken = inner > 0 and data[inner : inner + 8] != XERIAL_HEADER[:8]
    return (codec == SNAPPY and is_broken) or java.startswith(JAVA_OVERFLOWS)
