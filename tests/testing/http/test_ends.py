"""The end of the HTTP server, again and again: its descriptors go to nobody else too early."""

from __future__ import annotations

import os
from http.client import HTTPConnection

import pytest

from embedlog.testing.http.messages import HttpResponse
from embedlog.testing.http.server import HttpServer


@pytest.mark.slow
def test_a_hundred_servers_leave_no_descriptor_behind() -> None:
    before = set(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else set()
    for _ in range(100):
        server = HttpServer(lambda _request: HttpResponse("x"), "test")
        client = HTTPConnection(server.host, server.port, timeout=30)
        client.request("GET", "/")
        assert client.getresponse().read() == b'"x"'
        server.close()
        client.close()
    if before:
        assert len(os.listdir("/proc/self/fd")) <= len(before)
