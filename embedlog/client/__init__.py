"""The clients: `Producer`, `Consumer`, `Admin`. They know a `Transport` and nothing behind it.

In process the transport hands message objects to the broker, over TCP the same objects become
bytes; the classes here are the same. Reading order: `producer/` with `producer`,
`record_accumulator`, `sender`; `consumer/` with `consumer`, `consumer_driver`,
`subscription_state`, `fetcher`, `hand_out`; `group/` with `consumer_coordinator`; `admin/`; below
them `metadata` and `network/`.
"""
