"""The levels of features: both ends of each range, and the kinds of updates."""

from __future__ import annotations

import pytest

from embedlog import errors
from embedlog.controller import features
from embedlog.controller.features import SAFE_DOWNGRADE, UNSAFE_DOWNGRADE, UPGRADE, changed_levels

RANGES = [(name, *levels) for name, levels in features.SUPPORTED.items()]


@pytest.mark.parametrize(("name", "lowest", "highest"), RANGES)
def test_a_feature_can_have_each_of_its_levels_and_no_other(
    name: str, lowest: int, highest: int
) -> None:
    for level in range(lowest + 1, highest + 1):
        assert changed_levels({name: lowest}, [(name, level, UPGRADE)], 1) == {name: level}
    for level in (lowest - 1, highest + 1):
        kind = SAFE_DOWNGRADE if level < lowest else UPGRADE
        with pytest.raises(errors.InvalidUpdateVersion):
            changed_levels({name: lowest}, [(name, level, kind)], 1)


@pytest.mark.parametrize("level", [0, 1])
def test_only_a_downgrade_lowers_a_level(level: int) -> None:
    present = {features.TRANSACTION: 2}
    update = features.TRANSACTION, level
    for kind in (SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        assert changed_levels(present, [(*update, kind)], 1) == {features.TRANSACTION: level}
    with pytest.raises(errors.InvalidUpdateVersion, match="Can't downgrade"):
        changed_levels(present, [(*update, UPGRADE)], 1)


@pytest.mark.parametrize("kind", [SAFE_DOWNGRADE, UNSAFE_DOWNGRADE])
def test_a_downgrade_raises_no_level(kind: int) -> None:
    with pytest.raises(errors.InvalidUpdateVersion, match="to a newer version"):
        changed_levels({features.TRANSACTION: 0}, [(features.TRANSACTION, 1, kind)], 1)
