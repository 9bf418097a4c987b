"""The clients: `Producer`, `Consumer`, `Admin`. They know a `Transport` and nothing behind it.

In process the transport hands message objects to the broker, over TCP the same objects become
bytes; the classes here are the same. Reading order: `producer`, `record_accumulator`, `sender`;
`consumer`, `subscription_state`, `fetcher`; `admin`; below them `metadata` and `network_client`.
"""
