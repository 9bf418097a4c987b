"""The parts of the pytest plugin, which load when a test uses them."""
