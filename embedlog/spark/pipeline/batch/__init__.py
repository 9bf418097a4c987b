"""The steps of one batch between its records and the sinks."""
