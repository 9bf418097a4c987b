"""Where rows go: tables with commits keyed by (query id, batch id), topics, and the console."""
