"""Groups made from seeds, as lines that a Java program can read, and Kafka's answers to them.

    python -m tests.client.assignments.groups      records the answers; needs a JDK

A group is "topics members". Topics: name:racks/racks/..., the racks of the replicas of each
partition, one letter each, 0 for none. Members: id;instance;rack;generation;topics;owned, where a
partition is a letter and a number; "-" is nothing.
"""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

from embedlog import TopicPartition
from embedlog.client.assignors import resolve
from embedlog.client.assignors.assignor import GroupTopics, MemberSubscription
from embedlog.client.assignors.sticky import Claim, encode_claim

HERE = Path(__file__).parent
RECORDED = HERE / "recorded.txt"
NAMES = ("range", "roundrobin", "sticky", "cooperative-sticky")
COUNT = 120


def group(seed: int) -> str:
    """Make a group. Every second one has owned partitions, every third one no racks."""
    choose = random.Random(seed)
    has_racks, is_equal, owns = seed % 3 > 0, seed % 4 < 3, seed % 2 > 0
    racks = "abc"[: choose.randint(1, 3)]
    replicas = min(choose.randint(1, 2), len(racks))
    usual = choose.randint(1, 8)
    topics: dict[str, list[str]] = {}
    for name in "tuvw"[: choose.randint(1, 4)]:
        count = choose.choice([usual, usual, choose.randint(0, 8)])
        topics[name] = [
            "".join(choose.sample(racks, replicas)) if has_racks else "0" for _ in range(count)
        ]
    partitions = [f"{name}{n}" for name, each in topics.items() for n in range(len(each))]
    owners = {each: choose.randrange(8) for each in partitions if owns and choose.random() < 0.8}
    members = []
    for number in range(choose.randint(1, 6)):
        asked = [each for each in topics if is_equal or choose.random() < 0.7]
        owned = [each for each, owner in owners.items() if owner == number]
        instance = f"i{9 - number}" if choose.random() < 0.25 else "-"
        rack = choose.choice(racks + "-")
        generation = choose.choice([4, 5, 5]) if owned else -1
        fields = [f"m{number}", instance, rack, str(generation), "/".join(asked) or "-"]
        members.append(";".join([*fields, "/".join(owned) or "-"]))
    told = ",".join(f"{name}:{'/'.join(each) or '-'}" for name, each in topics.items())
    return f"{told} {','.join(members)}"


def is_equal_for_all(line: str) -> bool:
    """Whether all members have the same topics."""
    return len({member.split(";")[4] for member in line.split(" ")[1].split(",")}) == 1


def answers(line: str) -> list[str]:
    """Return our assignors' results for a group, in the format of the Java program."""
    told, members = line.split(" ")
    counts: dict[str, int] = {}
    racks: dict[TopicPartition, frozenset[str]] = {}
    for topic in told.split(","):
        name, _, listed = topic.partition(":")
        replicas = _split(listed)
        counts[name] = len(replicas)
        for number, letters in enumerate(replicas):
            racks[TopicPartition(name, number)] = frozenset(letters) - {"0"}
    topics = GroupTopics(counts, racks if any(racks.values()) else None)
    found = []
    for name in NAMES:
        (assignor,) = resolve([name])
        asked = dict(_member(each, name) for each in members.split(","))
        given = assignor.assign(topics, asked)
        shares = {each: sorted(given[each].partitions) for each in sorted(given)}
        found.append(
            ",".join(f"{each}:{'/'.join(f'{t}{n}' for t, n in shares[each])}" for each in shares)
        )
    return found


def _member(text: str, assignor: str) -> tuple[str, MemberSubscription]:
    member_id, instance, rack, generation, topics, listed = text.split(";")
    owned = [TopicPartition(each[0], int(each[1:])) for each in _split(listed)]
    claim = encode_claim(Claim(owned, int(generation))) if owned else None
    return member_id, MemberSubscription(
        _split(topics),
        user_data=claim if assignor == "sticky" else None,
        owned_partitions=owned if assignor == "cooperative-sticky" else [],
        generation_id=int(generation),
        rack_id=None if rack == "-" else rack,
        group_instance_id=None if instance == "-" else instance,
    )


def _split(text: str) -> list[str]:
    return [] if text == "-" else text.split("/")


def record() -> None:
    """Run Kafka's assignors."""
    from tests.support.tools import need_jars

    lines = [group(seed) for seed in range(COUNT)]
    program = [
        "java",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
        "-cp",
        need_jars("broker"),
        str(HERE / "AskAssignors.java"),
    ]
    told = subprocess.run(
        program, input="\n".join(lines), capture_output=True, text=True, check=True
    ).stdout.splitlines()
    text = "".join(f"{line}\n{answer}\n" for line, answer in zip(lines, told, strict=True))
    RECORDED.write_text(text)


if __name__ == "__main__":
    record()
