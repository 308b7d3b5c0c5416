"""What holds for every test: no network beyond this machine, one time zone, no one's own keys."""

import os
import sys
import time
from ipaddress import ip_address
from typing import Any

import pytest
from hypothesis import settings

from bot.config import variables

_ADDRESS_EVENTS = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})
_LOCAL_NAMES = frozenset({"", "localhost"})


class OutsideNetworkError(RuntimeError):
    """A test reached for another machine. No ``OSError``, which code under test may survive."""


def _is_local(host: object) -> bool:
    name = host.decode("ascii", "replace") if isinstance(host, bytes) else host
    if name is None or name in _LOCAL_NAMES:
        return True
    try:
        address = ip_address(str(name))
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def _refuse_outside(event: str, arguments: tuple[Any, ...]) -> None:
    """Watch what Python's own sockets do; an audit hook sees every library that uses them."""
    if event == "socket.getaddrinfo":
        host = arguments[0]
    elif event in _ADDRESS_EVENTS and isinstance(arguments[1], tuple):
        host = arguments[1][0]
    else:
        return
    if not _is_local(host):
        raise OutsideNetworkError(f"{event} to {host!r}: tests stay on this machine")


def _forget_own_configuration() -> None:
    """Drop the developer's own variables, so that no test uses their key or port."""
    known = {*variables(), *(name.lower() for name in variables())}
    for name in known & os.environ.keys():
        del os.environ[name]


def pytest_configure(config: pytest.Config) -> None:
    """Prepare the process before anything is collected."""
    sys.addaudithook(_refuse_outside)
    _forget_own_configuration()
    os.environ["TZ"] = "UTC"
    time.tzset()
    settings.register_profile(
        "repeatable", derandomize=True, max_examples=60, deadline=None, database=None
    )
    settings.register_profile("thorough", max_examples=2_000, deadline=None)
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))
