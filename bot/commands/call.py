"""One command as it was given: by whom, where, with what."""

from dataclasses import dataclass

from bot.app import App
from bot.model import Chat, Message, Role


@dataclass(frozen=True, slots=True)
class Call:
    """A command and who gave it."""

    app: App
    message: Message
    arguments: str
    role: Role
    """The caller's role in this group, ``""`` in private chats."""
    row_id: int | None = None
    """The command's own row, ``None`` if nothing of this chat is kept."""

    @property
    def chat(self) -> Chat:
        """Where it was given."""
        return self.message.chat

    @property
    def caller_id(self) -> str:
        """The user id of who gave it: the only thing that rights depend on."""
        return self.message.sender.user_id

    @property
    def is_operator(self) -> bool:
        """Whether the caller is one of ``SUPERUSERS``."""
        return self.app.is_operator(self.caller_id)

    @property
    def is_group_admin(self) -> bool:
        """Whether the caller owns this group or is one of its admins."""
        return self.chat.is_group and self.role in ("owner", "admin")


@dataclass(frozen=True, slots=True)
class Answer:
    """What is answered to a command."""

    text: str
    shows: frozenset[int] = frozenset()
    """The rows of the messages whose words are in it. It is made anew, by doing the command again,
    if one of them is taken back before it went out; so the command must change nothing."""


class Refusal(Exception):
    """A command cannot be done; its text tells the caller why and what to do."""
