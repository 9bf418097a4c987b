"""Compressed payloads of all shapes, with the verdicts of Kafka's Java decoders on each.

`tests.interop.codecs.verdicts` records them.
"""

from __future__ import annotations

import pytest

from tests.interop.codecs.verdicts import REFUSED, our_verdict, recorded


@pytest.mark.parametrize(("codec", "count"), [(1, 100), (2, 60), (3, 500), (4, 250)])
def test_we_read_what_java_reads_and_refuse_the_rest(codec: int, count: int) -> None:
    rows = [row for row in recorded() if row[0][1] == codec]
    assert len(rows) > count
    assert {REFUSED, "ok"} == {verdict[: len(REFUSED)].split(" ")[0] for _, verdict in rows}
    for (note, _, magic, data), verdict in rows:
        assert our_verdict(codec, magic, data) == verdict, (note, magic, data.hex())
