"""Clicks, one of them without a valid page, and a record that is no click."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import embedlog

CLICKS = [
    ("ada", "/", "10:00"), ("bob", "/help", "10:05"), ("ada", "/cart", "10:20"),
    ("ada", "/", "11:00"), ("eve", "not a path", "11:05"), ("eve", "/", "11:30"),
    ("bob", "/", "10:50"), ("bob", "/late", "10:10"), ("eve", "/bye", "12:30"),
]  # fmt: skip


def main(directory: Path) -> None:
    with embedlog.open(directory / "log") as cluster, cluster.producer() as producer:
        for user, page, time in CLICKS:
            click = {"user": user, "page": page, "at": f"2026-03-01T{time}:00Z"}
            producer.send("clicks", json.dumps(click).encode(), key=user.encode(), partition=0)
        producer.send("clicks", b"no click at all", partition=0)
        producer.flush()
    print(f"{len(CLICKS) + 1} records in {directory / 'log'}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
