"""Measurements of a server."""

import socket

import pytest

from benchmarks.serving import run_server


def test_another_server_on_the_port_is_not_measured_instead():
    with (
        socket.create_server(("127.0.0.1", 0)) as other,
        pytest.raises(OSError, match="in use"),
        run_server("postgresql://nowhere", other.getsockname()[1], workers=1),
    ):
        pass
