"""Lets the tests of greenstalk start another server than beanstalkd: a plugin for pytest.

The tests run the program BEANSTALKD_PATH for themselves. Most use a Unix socket. Where they do, the
server listens at the port UNIX_PORT instead, and clients connect to that.
"""

import os
import socket
import time

import greenstalk

# They are about Unix sockets alone.
NOT_RUN = ["test_client_repr_unix", "test_client_repr_already_connected_unix"]

connect_once = socket.create_connection
init = greenstalk.Client.__init__


def connect(*words, **named):
    """The tests wait 0.1 s for their server. It gets the time that it needs."""
    until = time.monotonic() + 30
    while True:
        try:
            return connect_once(*words, **named)
        except ConnectionRefusedError:
            if time.monotonic() > until:
                raise


def init_client(client, address, *words, **named):
    if isinstance(address, str):
        address = ("127.0.0.1", int(os.environ["UNIX_PORT"]))
    init(client, address, *words, **named)


socket.create_connection = connect
greenstalk.Client.__init__ = init_client


def pytest_collection_modifyitems(config, items):
    left_out = [item for item in items if item.name in NOT_RUN]
    assert len(left_out) == len(NOT_RUN), "the tests of greenstalk are others than expected"
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item.name not in NOT_RUN]
