"""A timeline as JSON lines, and its frames as a capture file (pcap)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from struct import Struct

from embedlog.testing.timeline.event import Event
from embedlog.testing.timeline.frames import Frame

_FILE_HEADER = Struct("<IHHiIII")
_PACKET_HEADER = Struct("<IIII")
_IP = Struct(">BBHHHBBH4s4s")
_TCP = Struct(">HHIIBBHHH")
_MAGIC, _RAW_IP = 0xA1B2C3D4, 101
_PAYLOAD_MAX = 60_000
"""Bytes of one packet: IPv4 allows 65,535 with the headers."""
_BROKER_PORT = 9092
_IN_PROCESS = ("10.255.0.1", 1024)
"""The address that stands for clients in the process of the brokers."""
_ACK_AND_PUSH = 0x18


def json_lines(events: Iterable[Event], began_wall_ms: int) -> str:
    """Return a line for each event. `at` is its wall time in seconds since 1970."""
    lines = []
    for each in events:
        at = began_wall_ms / 1000 + each.at_us / 1e6
        lines.append(json.dumps({"at": round(at, 6), **each.as_json()}, ensure_ascii=False))
    return "".join(f"{line}\n" for line in lines)


def pcap(frames: Iterable[Frame], began_wall_ms: int) -> bytes:
    """Return a capture of the frames, each connection as a TCP stream without its handshake."""
    out = [_FILE_HEADER.pack(_MAGIC, 2, 4, 0, 0, 65_535, _RAW_IP)]
    positions: dict[tuple[str, int, bool], int] = {}
    for frame in frames:
        host, port = _client(frame.peer)
        client = _packed(host), port
        broker = _packed(f"10.0.0.{frame.node_id % 256}"), _BROKER_PORT
        source, target = (broker, client) if frame.is_answer else (client, broker)
        mine = frame.peer, frame.node_id, frame.is_answer
        theirs = frame.peer, frame.node_id, not frame.is_answer
        wall_us = began_wall_ms * 1000 + frame.at_us
        for start in range(0, len(frame.data), _PAYLOAD_MAX):
            payload = frame.data[start : start + _PAYLOAD_MAX]
            sent, heard = positions.get(mine, 1), positions.get(theirs, 1)
            packet = _packet(source, target, sent, heard, payload)
            seconds, us = divmod(wall_us, 1_000_000)
            out += (_PACKET_HEADER.pack(seconds, us, len(packet), len(packet)), packet)
            positions[mine] = (sent + len(payload)) & 0xFFFFFFFF
    return b"".join(out)


def _packet(
    source: tuple[bytes, int], target: tuple[bytes, int], sent: int, heard: int, payload: bytes
) -> bytes:
    tcp = _TCP.pack(source[1], target[1], sent, heard, 0x50, _ACK_AND_PUSH, 65_535, 0, 0)
    size = _IP.size + len(tcp) + len(payload)
    parts = (0x45, 0, size, 0, 0, 64, 6, 0, source[0], target[0])
    head = _IP.pack(*parts)
    checked = (*parts[:7], _checksum(head), *parts[8:])
    return _IP.pack(*checked) + tcp + payload


def _checksum(data: bytes) -> int:
    total = sum(int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def _client(peer: str) -> tuple[str, int]:
    host, _, port = peer.rpartition(":")
    return (host, int(port)) if host.count(".") == 3 else _IN_PROCESS


def _packed(host: str) -> bytes:
    return bytes(int(part) for part in host.split("."))
