"""Values of the exit status; `embedlog.cli` explains them."""

from __future__ import annotations

EXIT_DAMAGED = 1
EXIT_REFUSED = 1
EXIT_CANNOT = 2
