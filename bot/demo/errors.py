"""What can keep the demo from being played.

```
QunyiError
└── DemoError
    ├── SampleError        the sample cannot be read
    ├── TranscriptError    the transcript cannot be written
    └── NothingCame        the program did not do in time what the week waits for
```
"""

from bot.errors import QunyiError


class DemoError(QunyiError):
    """The demo cannot be played; the text says why."""


class SampleError(DemoError):
    """The sample cannot be read; the text names the file and what is wrong in it."""


class TranscriptError(DemoError):
    """The transcript cannot be written."""


class NothingCame(DemoError):
    """The week waited in vain; the text says for what."""
