"""One change of a partition: the leader, the in-sync set, eligible replicas, the epochs."""

from __future__ import annotations

from embedlog.controller.elections import (
    ONLINE,
    PREFERRED,
    UNCLEAN,
    ElectionRules,
    PartitionTarget,
    changed,
)
from embedlog.controller.metadata import PartitionImage


def partition(leader: int = 1, **known: object) -> PartitionImage:
    values: dict[str, object] = {
        "partition": 0,
        "leader": leader,
        "leader_epoch": 5,
        "partition_epoch": 7,
        "replicas": (1, 2, 3),
        "isr": (1, 2, 3),
    }
    return PartitionImage(**(values | known))  # type: ignore[arg-type]


def decide(
    before: PartitionImage,
    *,
    alive: set[int],
    isr: tuple[int, ...] | None = None,
    election: int = ONLINE,
    min_isr: int = 1,
    keeps_eligible: bool = True,
    unclean: tuple[int, ...] = (),
) -> PartitionImage:
    rules = ElectionRules(
        lambda _, node: node in alive,
        min_insync_replicas=min_isr,
        keeps_eligible=keeps_eligible,
        election=election,
    )
    return changed(before, rules, PartitionTarget(before, isr=isr, unclean=unclean))


def epochs(image: PartitionImage) -> tuple[int, int]:
    return image.leader_epoch, image.partition_epoch


def test_nothing_changes_where_nothing_is_wanted() -> None:
    before = partition()
    assert decide(before, alive={1, 2, 3}) is before


def test_a_leader_that_is_there_is_kept_and_begins_no_epoch() -> None:
    after = decide(partition(leader=2), alive={1, 2}, isr=(1, 2))
    assert (after.leader, after.isr, epochs(after)) == (2, (1, 2), (5, 8))


def test_the_first_replica_in_sync_leads_next() -> None:
    after = decide(partition(replicas=(1, 3, 2)), alive={2, 3}, isr=(2, 3))
    assert (after.leader, after.isr, epochs(after)) == (3, (2, 3), (6, 8))


def test_without_eligible_replicas_the_last_in_sync_stays_there() -> None:
    before = partition(isr=(1,))
    after = decide(before, alive={2, 3}, isr=(), keeps_eligible=False)
    assert (after.leader, after.isr, after.elr, epochs(after)) == (-1, (1,), (), (6, 8))
    back = decide(after, alive={1, 2, 3}, keeps_eligible=False)
    assert (back.leader, back.isr, epochs(back)) == (1, (1,), (7, 9))


def test_who_leaves_a_set_that_becomes_too_small_stays_eligible() -> None:
    one = decide(partition(), alive={1, 2}, isr=(1, 2), min_isr=2)
    assert (one.isr, one.elr) == ((1, 2), ())
    two = decide(one, alive={1}, isr=(1,), min_isr=2)
    assert (two.leader, two.isr, two.elr) == (1, (1,), (2,))
    none = decide(two, alive=set(), isr=(), min_isr=2)
    assert (none.leader, none.isr, none.elr) == (-1, (), (1, 2))
    assert none.last_known_elr == (1,)
    back = decide(none, alive={2}, min_isr=2)
    assert (back.leader, back.isr, back.elr) == (2, (2,), (1,))
    assert (back.last_known_elr, back.is_recovering) == ((), False)
    whole = decide(back, alive={1, 2}, isr=(2, 1), min_isr=2)
    assert (whole.isr, whole.elr) == ((2, 1), ())


def test_nobody_eligible_leads_while_somebody_is_in_sync() -> None:
    before = partition(leader=-1, isr=(1,), elr=(2,))
    assert decide(before, alive={2, 3}, min_isr=2) is before


def test_the_last_leader_may_lead_when_nobody_is_eligible() -> None:
    before = partition(leader=-1, isr=(), elr=(2,), last_known_elr=(1,))
    after = decide(before, alive={1}, unclean=(2,), min_isr=2)
    assert (after.leader, after.isr, after.elr, after.is_recovering) == (1, (1,), (), True)
    assert after.last_known_elr == ()
    gone = decide(before, alive={3}, unclean=(2,), min_isr=2)
    assert (gone.leader, gone.elr, gone.last_known_elr) == (-1, (), (1,))


def test_an_unclean_election_takes_anybody_and_says_so() -> None:
    before = partition(isr=(1,), elr=(2,))
    after = decide(before, alive={3}, isr=(), min_isr=2, election=UNCLEAN)
    assert (after.leader, after.isr, after.elr, after.is_recovering) == (3, (3,), (), True)
    assert epochs(after) == (6, 8)
    clean = decide(before, alive={2, 3}, isr=(), min_isr=2, election=UNCLEAN)
    assert (clean.leader, clean.isr, clean.elr, clean.is_recovering) == (2, (2,), (1,), False)


def test_a_preferred_leader_must_be_in_sync() -> None:
    before = partition(leader=2)
    assert decide(before, alive={1, 2}, election=PREFERRED).leader == 1
    assert decide(before, alive={2, 3}, election=PREFERRED) is before
    out = partition(leader=2, isr=(2, 3))
    assert decide(out, alive={1, 2, 3}, election=PREFERRED) is out


def test_fewer_replicas_begin_a_leader_epoch() -> None:
    before = partition(replicas=(1, 2, 3), isr=(1, 3), adding_replicas=(2,), removing_replicas=(3,))
    rules = ElectionRules(
        lambda _, node: node in {1, 2, 3}, min_insync_replicas=1, keeps_eligible=True
    )
    after = changed(before, rules, PartitionTarget(before, isr=(1, 3, 2)))
    assert (after.replicas, after.isr, after.is_reassigning) == ((1, 2), (1, 2), False)
    assert (after.leader, epochs(after)) == (1, (6, 8))


def test_a_reassignment_that_only_removes_waits_for_the_replicas_that_stay() -> None:
    before = partition(isr=(1, 3), removing_replicas=(3,))
    assert decide(before, alive={1, 2, 3}) is before
    after = decide(before, alive={1, 2, 3}, isr=(1, 3, 2))
    assert (after.replicas, after.isr, after.is_reassigning) == ((1, 2), (1, 2), False)


def test_a_removed_replica_has_no_directory() -> None:
    known = {1: b"a" * 16, 3: b"c" * 16}
    before = partition(removing_replicas=(3,), isr=(1, 2, 3), directories=known)
    assert decide(before, alive={1, 2, 3}).directories == {1: b"a" * 16}


def test_one_of_several_last_leaders_does_not_lead() -> None:
    before = partition(leader=-1, isr=(), last_known_elr=(1, 2))
    assert decide(before, alive={1, 2}, min_isr=2).leader == -1
