"""Real clients on three brokers that are killed, moved and cut off."""
