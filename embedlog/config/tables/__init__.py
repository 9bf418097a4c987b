"""The settings as text, one file for each area: see `embedlog.config.definitions`."""
