"""From a record's bytes to columns: one file per format, one gate for all of them."""
