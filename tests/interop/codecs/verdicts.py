"""Verdicts on compressed payloads: what Kafka's Java code reads from them, and what we read.

`python -m tests.interop.codecs.verdicts` asks Java about payloads of all shapes, and writes its
verdicts to `tests/wire/records/kafka_decoders.txt`, so that fast tests need no JVM.
"""

from __future__ import annotations

import subprocess
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path

from tests.interop.codecs.cases import LZ4, SHORT, TAILS, Case, well_formed
from tests.support.jvm import options
from tests.support.tools import compiled_java
from wire.records import RecordsError
from wire.records.compression import decompress

RECORDED = Path(__file__).parents[2] / "wire" / "records" / "kafka_decoders.txt"
REFUSED = "refused"
LIMIT = 8 << 20


def java_verdicts(cases: Sequence[Case], folder: Path) -> list[str]:
    """Return "ok SIZE CRC32" or the name and text of the exception, for each case."""
    path = compiled_java(Path(__file__).with_name("Decode.java"), folder)
    command = ["java", *options("tools"), "-Xmx512m", "-cp", path, "Decode"]
    asked = "".join(f"{codec} {magic} {data.hex()}\n" for _, codec, magic, data in cases)
    found = subprocess.run(command, input=asked, text=True, capture_output=True, check=True)
    verdicts = found.stdout.splitlines()
    assert len(verdicts) == len(cases), found.stderr
    return verdicts


def our_verdict(codec: int, magic: int, data: bytes) -> str:
    """Return the same of `wire.records`, with `REFUSED` for every typed error."""
    try:
        content = decompress(codec, data, limit=LIMIT, magic=magic)
    except RecordsError:
        return REFUSED
    return f"ok {len(content)} {zlib.crc32(content):x}"


def kind(verdict: str) -> str:
    """Return the verdict without the reason of a refusal."""
    return verdict if verdict.startswith("ok ") else REFUSED


def recorded() -> list[tuple[Case, str]]:
    """Return the recorded cases with Java's verdicts."""
    rows = []
    for line in RECORDED.read_text().splitlines():
        codec, magic, data, verdict, note = line.split("|")
        rows.append(((note, int(codec), int(magic), bytes.fromhex(data)), verdict))
    return rows


def main() -> None:
    cases: dict[tuple[int, int, bytes], str] = {}
    tailed = (case for case in well_formed([b""], (b"", *TAILS[3:6:2])) if case[1] != LZ4)
    for note, codec, magic, data in (*well_formed([SHORT], (b"",)), *tailed):
        if magic != 1:
            cases.setdefault((codec, magic, data), note)
    asked = [(note, *key) for key, note in cases.items()]
    with tempfile.TemporaryDirectory() as folder:
        verdicts = java_verdicts(asked, Path(folder))
    lines = (
        f"{codec}|{magic}|{data.hex()}|{kind(verdict)}|{note}"
        for (note, codec, magic, data), verdict in zip(asked, verdicts, strict=True)
    )
    RECORDED.write_text("\n".join(lines) + "\n")
    print(f"{len(asked)} verdicts")


if __name__ == "__main__":
    main()
