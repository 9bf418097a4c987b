"""Staging for tests: jobs of small files, and the readers' view of a commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from embedlog.common import TopicPartition
from embedlog.storage.directory.log_manager import LogManager
from embedlog.storage.log_config import LogConfig
from embedlog.storage.staging.adopter import Adopter, CommitTarget
from embedlog.storage.staging.manifest import Manifest, StagedFile
from embedlog.storage.staging.writer import StagedWriter
from embedlog.testing import SimFiles, sim_runtime
from tests.storage.logs import DATA, batch, values

A, B, C = (TopicPartition("events", number) for number in range(3))
EVERYTHING = 0
"""As the least size of renamed files: all are renamed."""
NOTHING = 1 << 40


def stage(
    disk: SimFiles,
    job: str,
    parts: Mapping[TopicPartition, Sequence[Sequence[bytes]]],
    *,
    size_max: int = 1 << 30,
) -> list[StagedFile]:
    """Stage batches of values for some partitions."""
    found = []
    for topic_partition, batches in parts.items():
        writer = StagedWriter(
            disk,
            DATA,
            job=job,
            topic_partition=topic_partition,
            writer="task",
            size_max=size_max,
        )
        for some in batches:
            writer.write(batch(*some))
        found += writer.finish()
    return found


class Owner:
    """A manager of three partitions and its adopter, over a simulated disk."""

    def __init__(
        self,
        disk: SimFiles | None = None,
        *,
        renamed_size_min: int = EVERYTHING,
        **settings: object,
    ) -> None:
        self.runtime = sim_runtime(files=disk)
        self.disk: SimFiles = self.runtime.files
        config = LogConfig(**settings)
        self.manager = LogManager(self.runtime, DATA, config)
        self.logs = {each: self.manager.get_or_create(each, config=config) for each in (A, B, C)}
        self.adopter = Adopter(
            self.runtime,
            DATA,
            lambda each: CommitTarget(self.logs[each], 0),
            renamed_size_min=renamed_size_min,
        )
        self.adopter.resume()
        for log in self.logs.values():
            log.offsets.commit(log.config.durability == "fsync")

    def adopt(self, id: str, files: Sequence[StagedFile], **which: object):
        """Commit some staged files."""
        return self.adopter.adopt(Manifest(id, files, **which))

    def seen(self) -> dict[TopicPartition, list[bytes]]:
        """Return the records that readers of this process see."""
        return {
            each: values(log)[: log.offsets.high_watermark - log.offsets.log_start_offset]
            for each, log in self.logs.items()
        }
