"""Where rows go: tables whose commits are keyed by (query id, batch id), topics, the console."""
