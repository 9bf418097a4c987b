"""Workers: functions that are called with each job of a queue, in threads or in an event loop."""
