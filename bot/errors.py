"""Every exception that Qunyi raises on purpose.

```
QunyiError
├── ConfigError            a variable of the environment or .env is missing or wrong
├── SettingError           a run-time setting is unknown, out of range or not of this chat
├── MemoryPolicyError      a memory policy contradicts itself, or there is none of that name
├── NotRemembered          what was to be remembered may not be, and why
├── StoreError
│   ├── StoreBusy          another process held the write lock for too long
│   │   └── StoreFull      nothing can be written: the disk has no room
│   └── MigrationError     the database is newer than this program, or a step failed
├── EventError             an event cannot be read at all
├── ModelError
│   ├── ModelNotConfigured no model or key is configured for a purpose
│   ├── ModelUnavailable   transport: network, time-out, 401 402 403 404 429 5xx, open breaker
│   ├── ModelRefused       the provider refuses the content
│   ├── ContextTooLong     the prompt is longer than the model's window
│   └── ModelAnswerInvalid no choices, or an answer that is not what the API promises
├── ToolError              a tool could not do what it was asked; the model is told
├── NotFetched             an address gave no picture that may be used
├── TurnWithdrawn          the question was recalled, or the bot silenced, before the answer
├── SimulatorError         of the simulator alone; its own tree is in bot/simulate/errors.py
├── DemoError              of the demo alone: it cannot be played; bot/demo/errors.py
└── SendError
    ├── SendRejected       the platform answered with a failure
    ├── SendTimedOut       no answer: it may or may not have been sent
    ├── SendDropped        it would have waited too long in the queue
    └── AccountOffline     the account has no connection, or is offline, muted or gone
```
"""


class QunyiError(Exception):
    """Base of all; its text names the cause and, where there is one, the cure."""


class ConfigError(QunyiError):
    """A static configuration value is missing or wrong.

    Args:
        variable: the environment variable's name.
        cause: what is wrong with it and how to mend it.
    """

    def __init__(self, variable: str, cause: str) -> None:
        super().__init__(f"{variable}: {cause}")
        self.variable = variable
        self.cause = cause


class SettingError(QunyiError):
    """A run-time setting cannot be read or changed as asked.

    Args:
        key: the setting's camelCase key.
        cause: what is wrong, in words for the person who typed it.
    """

    def __init__(self, key: str, cause: str) -> None:
        super().__init__(f"{key}: {cause}")
        self.key = key
        self.cause = cause


class MemoryPolicyError(QunyiError, ValueError):
    """A memory policy contradicts itself, or there is none of that name.

    Args:
        name: the policy's name.
        cause: what is wrong with it.
    """

    def __init__(self, name: str, cause: str) -> None:
        super().__init__(f"memory policy {name}: {cause}")
        self.name = name
        self.cause = cause


class NotRemembered(QunyiError):
    """What was to be remembered may not be; its text says in Chinese why, for whoever asked.

    Args:
        cause: the reason, without a word of what was to be remembered.
    """

    def __init__(self, cause: str) -> None:
        super().__init__(cause)
        self.cause = cause


class ToolError(QunyiError):
    """A tool could not do what it was asked; the model is told."""


class StoreError(QunyiError):
    """The database cannot do what was asked."""


class StoreBusy(StoreError):
    """Another process held the write lock longer than the busy time-out."""


class StoreFull(StoreBusy):
    """Nothing can be written, as when the disk is full; what waits is kept until there is room."""


class MigrationError(StoreError):
    """The schema cannot be brought to this program's version."""


class EventError(QunyiError):
    """An event lacks what is needed to store it at all."""


class ModelError(QunyiError):
    """A model call did not give a usable answer."""


class ModelNotConfigured(ModelError):
    """No model, or no key, is configured for the purpose of the call."""


class ModelUnavailable(ModelError):
    """The transport failed; trying later may help.

    Args:
        cause: a short description without keys or message text.
        status: the HTTP status, where there was one.
        retry_after_seconds: what the provider asked for, where it did.
    """

    def __init__(
        self,
        cause: str,
        *,
        status: int | None = None,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(cause)
        self.status = status
        self.retry_after_seconds = retry_after_seconds


class ModelRefused(ModelError):
    """The provider refuses the content of the prompt or the answer."""


class ContextTooLong(ModelError):
    """The prompt does not fit the model's window.

    Args:
        cause: what refused it.
        model: whose window it is, where that is known.
        window_tokens: how long a prompt may be, where the provider told it.
    """

    def __init__(
        self, cause: str = "", *, model: str = "", window_tokens: int | None = None
    ) -> None:
        super().__init__(cause)
        self.model = model
        self.window_tokens = window_tokens


class ModelAnswerInvalid(ModelError):
    """The endpoint answered, but not with a completion."""


class NotFetched(QunyiError):
    """An address gave no picture that may be used.

    Args:
        cause: what was wrong, without the address, which is somebody's.
        may_be_stale: a newer address of the same picture may work.
    """

    def __init__(self, cause: str, *, may_be_stale: bool = False) -> None:
        super().__init__(cause)
        self.may_be_stale = may_be_stale


class TurnWithdrawn(QunyiError):
    """The question was recalled, or the bot silenced, before the answer went out."""


class SendError(QunyiError):
    """A message did not go out, or it is not known whether it did."""


class SendRejected(SendError):
    """The platform refused to send.

    Args:
        cause: the platform's own words.
        retcode: its return code.
    """

    def __init__(self, cause: str, *, retcode: int) -> None:
        super().__init__(cause)
        self.retcode = retcode


class SendTimedOut(SendError):
    """No answer came in time; the message may have been sent and is not repeated."""


class SendDropped(SendError):
    """The message would have waited in the queue for too long."""


class AccountOffline(SendError):
    """The account cannot send: not connected, offline, muted, or not in the chat."""
