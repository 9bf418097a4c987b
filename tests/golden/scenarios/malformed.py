"""Frames that are no valid requests, or requests for unknown APIs."""

from __future__ import annotations

import struct

from tests.golden.run import Run, scenario
from wire.schemas.api_versions import ApiVersionsRequest
from wire.schemas.metadata import MetadataRequest, MetadataRequestTopic


def _header(api_key: int, version: int, tail: bytes = b"\x00\x01c") -> bytes:
    return struct.pack(">hhi", api_key, version, 7) + tail


@scenario
def malformed_headers(run: Run) -> None:
    run.raw(b"", "an empty frame")
    run.raw(b"\x00", "one byte")
    run.raw(_header(18, 0)[:8], "no client id")
    run.raw(_header(18, 0, b"\xff\xff"), "null client id", keep_bytes=False)
    run.raw(_header(18, 0, b"\xff\xfe"), "client id of length -2", keep_bytes=False)
    run.raw(_header(18, 0, b"\x00\x05c"), "client id cut")
    run.raw(_header(18, 0, b"\x00\x02\xff\xfe"), "client id not UTF-8", keep_bytes=False)
    run.raw(_header(999, 0), "api key 999")
    run.raw(_header(-1, 0), "api key -1")
    run.raw(_header(4, 0), "LeaderAndIsr")
    run.raw(_header(62, 0), "BrokerRegistration")
    run.raw(_header(3, 99), "Metadata v99")
    run.raw(_header(3, -1), "Metadata v-1")
    for version in (6, 99, -1):
        run.raw(_header(18, version), f"ApiVersions v{version}, header without tags")
        tagged = _header(18, version, b"\x00\x01c\x00")
        run.raw(tagged, f"ApiVersions v{version}, header with tags")


@scenario
def malformed_bodies(run: Run) -> None:
    asked = MetadataRequest(topics=[MetadataRequestTopic(name="no-such-topic-here")])
    asked.allow_auto_topic_creation = False
    old = run.frame(asked, 8)
    new = run.frame(asked, 12)
    run.raw(old[:-1], "v8, cut by one byte")
    run.raw(old[:-8], "v8, cut inside the name")
    run.raw(new[:-1], "v12, cut by one byte")
    run.raw(old[:16] + struct.pack(">i", 2_000_000_000) + old[20:], "array of 2e9")
    run.raw(old[:16] + struct.pack(">i", -2) + old[20:], "array of -2", keep_bytes=False)
    head = _header(0, 9, b"\x00\x01c\x00")
    run.raw(head + b"\x00\xff\xff\x00\x00\x10\x00\x00", "Produce with a null topic array")
    plain = run.frame(ApiVersionsRequest(client_software_name="a",
                                         client_software_version="1"), 3)  # fmt: skip
    run.raw(plain[:-1] + b"\x01\x05", "a tag without its size")
    run.raw(plain[:-1] + b"\x01\x05\x09\x00", "a tag larger than the frame")
