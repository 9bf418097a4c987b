"""The cluster's own state: topics, settings, producer ids; one writer, one log, one image."""
