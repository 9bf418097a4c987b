"""The cluster of the applications' tests: a fresh one for each, or one for all."""

from __future__ import annotations

import os
from typing import Any

import pytest

if os.environ.get("EMBEDLOG_APPLICATIONS_BROKER") == "session":

    @pytest.fixture
    def kafka(kafka_session: Any) -> Any:
        return kafka_session
