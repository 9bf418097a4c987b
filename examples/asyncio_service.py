"""A service on asyncio: it takes jobs from a topic, works on many at once and writes the results.

    python examples/asyncio_service.py localhost:9092

SIGTERM cancels the waiting calls. A cancelled poll has taken no records. The next owner of a
partition repeats the jobs whose offsets were not committed.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys

import embedlog
from embedlog.aio import Consumer, Producer


async def work(job: embedlog.ConsumerRecord, producer: Producer) -> None:
    """Do one job. While it waits, other jobs run."""
    await asyncio.sleep(0.01)
    written = await producer.send("results", job.value.upper(), key=job.key)
    print(f"{job.value.decode()} is result {written.offset}", flush=True)


async def serve(address: str) -> None:
    """Work until cancelled."""
    async with (
        Producer(address) as producer,
        Consumer(
            address, group_id="workers", auto_offset_reset="earliest", enable_auto_commit=False
        ) as consumer,
    ):
        await consumer.subscribe(["jobs"])
        while True:
            jobs = await consumer.poll(1000)
            async with asyncio.TaskGroup() as tasks:  # a failed job cancels the rest
                for job in jobs:
                    tasks.create_task(work(job, producer))
            if jobs:
                await consumer.commit()


async def main(address: str) -> None:
    """Serve until SIGTERM or Ctrl-C; leaving the group lets others take over at once."""
    serving = asyncio.ensure_future(serve(address))
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, serving.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await serving
    print("stopped", flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
