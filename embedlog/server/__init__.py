"""The broker behind sockets: open addresses, frames to requests, answers to frames."""
