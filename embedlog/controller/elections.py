"""Changes of a partition's leader, in-sync set and eligible replicas. Pure functions.

The steps are Kafka's, in its order:

    1  a reassignment whose target is in sync ends: its old replicas go
    2  replicas that leave an in-sync set below min.insync.replicas stay eligible (KIP-966)
    3  the leader stays if it may lead; else another is elected, or the partition has none
    4  both epochs rise by one, the leader's only if the leader changes or a replica is removed
"""

from __future__ import annotations

from embedlog.common import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Final

    from embedlog.controller.metadata import PartitionImage

    Nodes = tuple[int, ...]

NO_LEADER: Final = -1

ONLINE: Final = 0
"""Keep the leader, or elect a replica with every committed record."""
PREFERRED: Final = 1
"""Elect the first replica if possible, even if another one leads."""
UNCLEAN: Final = 2
"""Elect any available replica if no other may lead: records may be lost."""


class ElectionRules(Value):
    """The settings and checks for a change of a partition."""

    is_acceptable: Callable[[PartitionImage, int], bool]
    """Returns whether the broker is active and its replica usable, so that it may lead."""
    min_insync_replicas: int
    """The value in force: never more than the number of replicas."""
    keeps_eligible: bool
    """True if the feature eligible.leader.replicas.version is on."""
    election: int = ONLINE


class PartitionTarget:
    """The intended state of a partition. A property without an argument keeps its present value."""

    def __init__(
        self,
        partition: PartitionImage,
        *,
        isr: Nodes | None = None,
        replicas: Nodes | None = None,
        adding: Nodes | None = None,
        removing: Nodes | None = None,
        is_recovering: bool | None = None,
        unclean: Nodes = (),
    ) -> None:
        """`unclean` brokers may have lost records, and so are no longer eligible."""
        self.isr = partition.isr if isr is None else isr
        self.replicas = partition.replicas if replicas is None else replicas
        self.adding = partition.adding_replicas if adding is None else adding
        self.removing = partition.removing_replicas if removing is None else removing
        self.is_recovering = partition.is_recovering if is_recovering is None else is_recovering
        self.elr = partition.elr
        self.unclean = unclean

    def end_reassignment(self) -> None:
        """If all added replicas are in sync, drop the replicas that are to be removed.

        If no replica was added, all remaining replicas must be in sync.
        """
        if not self.adding and not self.removing:
            return
        isr = _without(self.isr, self.removing)
        replicas = _without(self.replicas, self.removing)
        if isr and replicas and set(self.adding or replicas) <= set(isr):
            self.isr, self.replicas = isr, replicas
            self.adding = self.removing = ()

    def keep_eligible(self, before: PartitionImage, rules: ElectionRules) -> None:
        """If the in-sync set is below its minimum, the replicas that left the set remain eligible.

        They have all committed records.
        """
        if not rules.keeps_eligible or len(self.isr) >= rules.min_insync_replicas:
            self.elr = ()
            return
        # Leave out brokers that no longer have a replica, though Kafka keeps them eligible.
        candidates = {*before.elr, *before.isr}.intersection(self.replicas)
        self.elr = tuple(sorted(candidates.difference(self.isr, self.unclean)))


def changed(
    before: PartitionImage, rules: ElectionRules, target: PartitionTarget
) -> PartitionImage:
    """Return the partition after the change; `before` itself if nothing changes."""
    target.end_reassignment()
    target.keep_eligible(before, rules)
    leader, is_unclean = _elect(before, rules, target)
    isr, elr, is_recovering = target.isr, target.elr, target.is_recovering
    if leader != before.leader:
        if is_unclean:
            isr, elr, is_recovering = (leader,), (), True
        elif leader in elr:
            isr, elr = (leader,), _without(elr, (leader,))
    if not isr and not rules.keeps_eligible:
        # The last replicas in sync stay in the set: only they may come back as the leader.
        isr = before.isr
    begins_epoch = leader != before.leader or not set(before.replicas) <= set(target.replicas)
    after = before.replace(
        leader=leader,
        isr=isr,
        replicas=target.replicas,
        adding_replicas=target.adding,
        removing_replicas=target.removing,
        elr=elr,
        last_known_elr=_last_known(before, rules, leader),
        is_recovering=is_recovering,
        directories=_kept(before.directories, target.replicas),
    )
    if not begins_epoch and after == before:
        return before
    return after.replace(
        partition_epoch=before.partition_epoch + 1,
        leader_epoch=before.leader_epoch + begins_epoch,
    )


def _kept(directories: Mapping[int, bytes], replicas: Nodes) -> Mapping[int, bytes]:
    """Drop the directories of removed replicas: a replica that comes back may lie elsewhere."""
    if all(node in replicas for node in directories):
        return directories
    return {node: id for node, id in directories.items() if node in replicas}


def _elect(
    before: PartitionImage, rules: ElectionRules, target: PartitionTarget
) -> tuple[int, bool]:
    """Return (leader, whether it may lack committed records)."""

    def is_valid(node: int) -> bool:
        # Eligible replicas may lead only if none is in sync.
        return node in (target.isr or target.elr) and rules.is_acceptable(before, node)

    preferred = target.replicas[:1] if rules.election == PREFERRED else ()
    for node in (*preferred, before.leader, *target.replicas):
        if is_valid(node):
            return node, False
    if _may_lead_again(before, rules, target):
        return before.last_known_elr[0], True
    if rules.election == UNCLEAN:
        for node in target.replicas:
            if rules.is_acceptable(before, node):
                return node, True
    return NO_LEADER, False


def _may_lead_again(before: PartitionImage, rules: ElectionRules, target: PartitionTarget) -> bool:
    """Return whether the last leader may lead: only if no replica is in sync or eligible."""
    if not rules.keeps_eligible or target.isr or target.elr:
        return False
    return len(before.last_known_elr) == 1 and rules.is_acceptable(before, before.last_known_elr[0])


def _last_known(before: PartitionImage, rules: ElectionRules, leader: int) -> Nodes:
    if not rules.keeps_eligible or leader == before.leader:
        return before.last_known_elr
    if leader >= 0:
        return ()
    return before.last_known_elr or (before.leader,)


def _without(nodes: Nodes, others: Nodes) -> Nodes:
    return tuple(node for node in nodes if node not in others)
