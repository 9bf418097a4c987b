"""The version of embedlog. Users, the command and the brokers of its clients read it."""

from __future__ import annotations

__version__ = "0.2.0"
