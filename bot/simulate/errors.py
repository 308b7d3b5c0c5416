"""What the simulator raises on purpose.

```
QunyiError
└── SimulatorError
    ├── HandshakeRefused   the application closed the door: bad token, duplicate id …
    ├── NotConnected       an event was to be delivered without a connection
    ├── Unknown            the world has no such group, person or message
    └── Refusal            an API call is answered with a failure
```
"""

from bot.errors import QunyiError


class SimulatorError(QunyiError):
    """Base of all."""


class HandshakeRefused(SimulatorError):
    """The application refused the WebSocket handshake.

    Args:
        status: the HTTP status (NoneBot answers 403 to a bad token and to an id that is
            already connected); 0 when the answer was not HTTP at all.
        cause: what came with it.
    """

    def __init__(self, status: int, cause: str) -> None:
        super().__init__(f"the handshake was refused with {status}: {cause}")
        self.status = status
        self.cause = cause


class NotConnected(SimulatorError):
    """There is no open connection to deliver through."""


class Unknown(SimulatorError):
    """The world holds no such group, person or message."""


class Refusal(SimulatorError):
    """An API call fails; becomes the failed answer.

    Args:
        retcode: 1200 for business, 1400 for parameters, 1404 for unsupported actions.
        wording: what the platform says to people.
    """

    def __init__(self, retcode: int, wording: str) -> None:
        super().__init__(f"{retcode}: {wording}")
        self.retcode = retcode
        self.wording = wording
