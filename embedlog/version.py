"""The version of embedlog, for its users, its command and the brokers that its clients talk to."""

from __future__ import annotations

__version__ = "0.1.0"
