"""The clients `Producer`, `Consumer` and `Admin`, which know a `Transport` and nothing behind it.

In process the transport hands message objects to the broker; over TCP it turns the same objects
into bytes. The clients are the same in both cases. Reading order: `producer/` with `producer`,
`accumulator`, `in_process_sender`, `request_sender`; `consumer/` with `consumer`,
`subscription_state`, `fetcher`, `hand_out` and `group/`; `admin/`; below them `drivers/`,
`metadata` and `network/`.
"""
