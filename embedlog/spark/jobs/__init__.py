"""Maintenance jobs for logs and tables. Each is a function `job(spark, ...) -> Report`."""
