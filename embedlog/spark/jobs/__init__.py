"""Maintenance jobs of logs and tables: each a function `job(spark, ...) -> Report`."""
