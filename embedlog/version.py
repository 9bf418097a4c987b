"""The version of embedlog, for users, the command line and ApiVersions requests."""

from __future__ import annotations

__version__ = "0.2.0"
