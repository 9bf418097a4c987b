"""Settings of foreign clients for a cluster of the test kit: see `client_config`."""
