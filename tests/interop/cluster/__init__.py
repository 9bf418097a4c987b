"""Real clients on three brokers that die, are moved about and cut off."""
