"""All logs of one data directory: open, look up, delete, checkpoint, close."""
