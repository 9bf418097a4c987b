"""PySpark's changes to logging end with the test that caused them."""

from __future__ import annotations

import logging
from typing import Any

import pytest

pytest.importorskip("pyspark")

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("turn", [1, 2])
def test_an_error_of_a_query_leaves_the_log_of_the_next_test_text(
    spark: Any, caplog: pytest.LogCaptureFixture, turn: int
) -> None:
    from pyspark.errors import ArithmeticException
    from pyspark.sql.functions import lit

    logging.getLogger("embedlog").warning("turn %d", turn)
    assert caplog.text.endswith(f"turn {turn}\n")
    assert not caplog.text.startswith("{")
    with pytest.raises(ArithmeticException):
        spark.range(1).select(lit(1) / lit(0)).collect()
