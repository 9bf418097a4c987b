"""Tables with commits keyed by (query id, batch id): Parquet with a manifest, Delta, Iceberg."""
