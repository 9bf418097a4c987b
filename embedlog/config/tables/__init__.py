"""The settings as text, one file for each area; `embedlog.config.definitions` reads them."""
