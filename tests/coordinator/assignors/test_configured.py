"""`group.consumer.assignors`: names, and Kafka's class names."""

from __future__ import annotations

import pytest

from embedlog.coordinator.group.assignors import assignor, configured, range, uniform
from embedlog.errors import ConfigError

PACKAGE = "org.apache.kafka.coordinator.group.assignor"


def test_names_and_class_names_are_the_same() -> None:
    assert configured(["range", f"{PACKAGE}.UniformAssignor"]) == ("range", "uniform")
    assert configured([f"{PACKAGE}.RangeAssignor"]) == ("range",)


@pytest.mark.parametrize("names", [[], ["sticky"], ["uniform", "com.example.Own"]])
def test_what_is_not_known_is_refused(names: list[str]) -> None:
    with pytest.raises(ConfigError):
        configured(names)


def test_each_name_has_its_function() -> None:
    assert assignor("uniform") is uniform.assign
    assert assignor("range") is range.assign
