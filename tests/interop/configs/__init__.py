"""Programs in other languages that take the settings of `Kafka.client_config` unmodified."""
