"""The commit of a member of a streams group that names an earlier epoch."""

from __future__ import annotations

from embedlog import errors
from embedlog.coordinator.group.streams.tasks import NO_EPOCHS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.coordinator.group.streams.member import StreamsMember
    from embedlog.coordinator.group.streams.topology import Topology


def check_commit(
    member: StreamsMember, topology: Topology | None, place: tuple[str, int], epoch: int
) -> None:
    """Check that the member had the task of a topic's partition in that epoch, and still has it.

    Raises:
        StaleMemberEpoch: it did not, or has not.
    """
    topic, number = place
    subtopology = None if topology is None else topology.reader_of(topic)
    if subtopology is None:
        raise errors.StaleMemberEpoch(f"Topic {topic} is not in the topology.")
    since = member.assigned.active.get(subtopology, NO_EPOCHS).get(number)
    if since is None:
        since = member.revoking.active.get(subtopology, NO_EPOCHS).get(number)
    if since is None:
        raise errors.StaleMemberEpoch(
            f"Task {subtopology}-{number} is not assigned or pending revocation for member."
        )
    if epoch < since:
        raise errors.StaleMemberEpoch(
            f"Received member epoch {epoch} is older than assignment epoch {since} for task"
            f" {subtopology}-{number}."
        )
