"""From a record's bytes to columns: a file for each format, and one gate for all of them."""
