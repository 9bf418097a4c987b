"""`python -m embedlog`."""

from __future__ import annotations

from embedlog.cli import main

raise SystemExit(main())
