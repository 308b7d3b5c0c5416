"""The platform as one bot account sees it: people, groups, friends and what was said.

State only: nothing here knows of sockets or of the time, and nothing is delivered. What was
said here without being delivered is what an application has to catch up with.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Literal

from bot.model import Chat, Role
from bot.simulate.errors import Unknown
from bot.simulate.segments import RawSegment, text

REMEMBERED_MESSAGES = 5000
"""How many messages a client still finds by their id (``docs/onebot.md``, "Quirks")."""

_SPREAD = 2_654_435_761
"""An odd factor: multiplied with a counter it visits every residue of a power of two once."""

Content = str | RawSegment
"""One piece of a message; a string is plain text."""


def positive_ids(start: int = 1) -> Iterator[int]:
    """Yield message ids as NapCat gives them: positive, 31 bits, in no order."""
    return (number * _SPREAD % 2**31 for number in count(start))


def signed_ids(start: int = 1) -> Iterator[int]:
    """Yield message ids as LLOneBot gives them: signed 32 bits, half of them negative."""
    return (number * _SPREAD % 2**32 - 2**31 for number in count(start))


def reused_ids(period: int = 65_536) -> Iterator[int]:
    """Yield message ids as Lagrange gives them: used again after ``period`` messages."""
    return (1 + number % period for number in count())


def segments_of(content: Sequence[Content]) -> tuple[RawSegment, ...]:
    """Return segments, with strings made into plain text (never into CQ codes)."""
    return tuple(text(piece) if isinstance(piece, str) else piece for piece in content)


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody, with the names and the standing they have in one place."""

    user_id: int
    nickname: str = ""
    card: str = ""
    """The name within a group; empty in private chats."""
    role: Role = "member"
    title: str = ""
    level: str = "1"
    joined_at: int = 0
    """UTC milliseconds."""
    remark: str = ""
    """What the bot account calls a friend."""


@dataclass(slots=True)
class Group:
    """A group; ``members`` by user id."""

    id: int
    name: str
    members: dict[int, Person] = field(default_factory=dict)
    muted: set[int] = field(default_factory=set)
    """Who may not speak; 0 stands for everyone but the owner and the admins."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """One message of the world's history."""

    chat: Chat
    sender: Person
    segments: tuple[RawSegment, ...]
    message_id: int
    sequence: int
    """Counts up within the chat; travels as the string ``real_seq``."""
    at: int
    """UTC milliseconds."""
    temporary_group: int | None = None
    """For a temporary session, the group it was opened from."""
    recalled: bool = False

    @property
    def real_seq(self) -> str:
        """The sequence as NapCat writes it."""
        return str(self.sequence)


@dataclass(frozen=True, slots=True)
class ForwardNode:
    """One line of a merged forward."""

    user_id: int
    nickname: str
    segments: tuple[RawSegment, ...]


@dataclass(frozen=True, slots=True)
class PendingRequest:
    """Somebody asks to be a friend, to join a group, or for the bot to join one."""

    kind: Literal["friend", "add", "invite"]
    person: Person
    group_id: int = 0
    """The group, unless it is about a friend."""


class World:
    """What one bot account sees.

    Args:
        account: the bot account itself.
        ids: where message ids come from; ``positive_ids()`` by default.
        remembered_messages: how many messages are kept, both by id and per chat.
    """

    def __init__(
        self,
        account: Person,
        *,
        ids: Iterator[int] | None = None,
        remembered_messages: int = REMEMBERED_MESSAGES,
    ) -> None:
        self.account = account
        self.groups: dict[int, Group] = {}
        self.friends: dict[int, Person] = {}
        self.strangers: dict[int, tuple[Person, int]] = {}
        """People in temporary sessions, with the group these were opened from."""
        self.forwards: dict[str, tuple[ForwardNode, ...]] = {}
        self.requests: dict[str, PendingRequest] = {}
        self._ids = positive_ids() if ids is None else ids
        self._remembered_messages = remembered_messages
        self._sequences: dict[Chat, int] = {}
        self._timelines: dict[Chat, dict[int, Utterance]] = {}
        self._newest: dict[int, Utterance] = {}
        self._numbers = count(1)

    def group_chat(self, group_id: int) -> Chat:
        """Return the name of a group chat."""
        return Chat(str(self.account.user_id), "group", str(group_id))

    def private_chat(self, user_id: int) -> Chat:
        """Return the name of a private chat."""
        return Chat(str(self.account.user_id), "private", str(user_id))

    # Who is where

    def add_group(self, group_id: int, name: str, *members: Person) -> Group:
        """Found a group of these members and the bot account."""
        everyone = {person.user_id: person for person in (self.account, *members)}
        self.groups[group_id] = Group(group_id, name, everyone)
        return self.groups[group_id]

    def befriend(self, *people: Person) -> None:
        """Make people friends of the bot account."""
        self.friends |= {person.user_id: person for person in people}

    def group(self, group_id: int) -> Group:
        """Return a group that the bot account is in.

        Raises:
            Unknown: it is in no such group.
        """
        if group_id not in self.groups:
            raise Unknown(f"group {group_id}")
        return self.groups[group_id]

    def member(self, group_id: int, user_id: int) -> Person:
        """Return a member of a group.

        Raises:
            Unknown: there is no such group or member.
        """
        members = self.group(group_id).members
        if user_id not in members:
            raise Unknown(f"member {user_id} of group {group_id}")
        return members[user_id]

    def correspondent(self, user_id: int) -> Person:
        """Return someone the bot account can talk to in private.

        Raises:
            Unknown: neither a friend nor in a temporary session.
        """
        if user_id in self.friends:
            return self.friends[user_id]
        if user_id in self.strangers:
            return self.strangers[user_id][0]
        raise Unknown(f"friend {user_id}")

    def join(self, group_id: int, person: Person) -> None:
        """Add a member to a group."""
        self.group(group_id).members[person.user_id] = person

    def leave(self, group_id: int, user_id: int) -> Person:
        """Remove a member; the group is gone from this world if it is the bot account."""
        person = self.member(group_id, user_id)
        del self.groups[group_id].members[user_id]
        if user_id == self.account.user_id:
            del self.groups[group_id]
        return person

    def rename(self, user_id: int, nickname: str) -> None:
        """Change somebody's nickname wherever they are known."""
        if user_id == self.account.user_id:
            self.account = replace(self.account, nickname=nickname)
        for known in (self.friends, *(group.members for group in self.groups.values())):
            if user_id in known:
                known[user_id] = replace(known[user_id], nickname=nickname)

    def change_card(self, group_id: int, user_id: int, card: str) -> str:
        """Change somebody's name within a group and return the former one."""
        former = self.member(group_id, user_id)
        self.groups[group_id].members[user_id] = replace(former, card=card)
        return former.card

    def change_role(self, group_id: int, user_id: int, role: Role) -> None:
        """Make somebody an owner, an admin or a plain member."""
        former = self.member(group_id, user_id)
        self.groups[group_id].members[user_id] = replace(former, role=role)

    def rename_group(self, group_id: int, name: str) -> None:
        """Change the name of a group."""
        self.group(group_id).name = name

    def mute(self, group_id: int, user_id: int) -> None:
        """Take the right to speak from a member, or from everyone if ``user_id`` is 0."""
        self.group(group_id).muted.add(user_id)

    def lift(self, group_id: int, user_id: int) -> None:
        """Give back what ``mute`` took."""
        self.group(group_id).muted.discard(user_id)

    def may_speak(self, group_id: int) -> bool:
        """Whether the bot account may speak in a group."""
        group = self.group(group_id)
        if self.account.user_id in group.muted:
            return False
        role = group.members[self.account.user_id].role
        return 0 not in group.muted or role in ("owner", "admin")

    # What was said

    def say(self, group_id: int, sender: int | Person, *content: Content, at: int) -> Utterance:
        """Record a message in a group, of a member or of anyone given as a ``Person``.

        Raises:
            Unknown: there is no such group or member.
        """
        self.group(group_id)
        speaker = sender if isinstance(sender, Person) else self.member(group_id, sender)
        return self._record(self.group_chat(group_id), speaker, segments_of(content), at)

    def whisper(self, user_id: int, *content: Content, at: int) -> Utterance:
        """Record a message that a friend, or someone in a temporary session, sent in private.

        Raises:
            Unknown: they can not.
        """
        speaker = self.correspondent(user_id)
        return self._record(self.private_chat(user_id), speaker, segments_of(content), at)

    def open_temporary_session(self, group_id: int, user_id: int) -> None:
        """Let a member of a group talk to the bot account without being a friend."""
        self.strangers[user_id] = (self.member(group_id, user_id), group_id)

    def speak(self, chat: Chat, *content: Content, at: int) -> Utterance:
        """Record a message of the bot account itself.

        Raises:
            Unknown: it is not in that group, or can not talk to that person.
        """
        if chat.is_group:
            speaker = self.member(int(chat.id), self.account.user_id)
        else:
            self.correspondent(int(chat.id))
            speaker = self.account
        return self._record(chat, speaker, segments_of(content), at)

    def find(self, message_id: int) -> Utterance:
        """Return the newest message of that id.

        Raises:
            Unknown: it was recalled, or is too old, or never was.
        """
        found = self._newest.get(message_id)
        if found is None or found.recalled:
            raise Unknown(f"message {message_id}")
        return found

    def recall(self, message_id: int) -> Utterance:
        """Recall the newest message of that id and return it.

        Raises:
            Unknown: there is none.
        """
        return self._change(replace(self.find(message_id), recalled=True))

    def move_pictures(self, message_id: int, url: str) -> Utterance:
        """Let the pictures of a message lie elsewhere, as when their addresses have expired.

        Raises:
            Unknown: there is no such message.
        """
        spoken = self.find(message_id)
        moved = tuple(
            segment | {"data": segment["data"] | {"url": url}}
            if segment["type"] == "image"
            else segment
            for segment in spoken.segments
        )
        return self._change(replace(spoken, segments=moved))

    def _change(self, changed: Utterance) -> Utterance:
        self._newest[changed.message_id] = changed
        self._timelines[changed.chat][changed.sequence] = changed
        return changed

    def history(self, chat: Chat) -> tuple[Utterance, ...]:
        """Return what was said and not recalled in a chat, oldest first."""
        timeline = self._timelines.get(chat, {})
        return tuple(each for each in timeline.values() if not each.recalled)

    def add_forward(self, *nodes: ForwardNode) -> str:
        """Keep a merged forward and return its id."""
        forward_id = str(72_999 + next(self._numbers))
        self.forwards[forward_id] = nodes
        return forward_id

    def add_request(self, request: PendingRequest) -> str:
        """Keep a request and return its flag."""
        flag = f"flag-{next(self._numbers)}"
        self.requests[flag] = request
        return flag

    def _record(
        self, chat: Chat, sender: Person, segments: tuple[RawSegment, ...], at: int
    ) -> Utterance:
        sequence = self._sequences[chat] = self._sequences.get(chat, 0) + 1
        spoken = Utterance(
            chat, sender, segments, next(self._ids), sequence, at, self._temporary_group(chat)
        )
        self._newest.pop(spoken.message_id, None)
        self._keep(self._newest, spoken.message_id, spoken)
        self._keep(self._timelines.setdefault(chat, {}), sequence, spoken)
        return spoken

    def _keep(self, kept: dict[int, Utterance], key: int, spoken: Utterance) -> None:
        kept[key] = spoken
        if len(kept) > self._remembered_messages:
            del kept[next(iter(kept))]

    def _temporary_group(self, chat: Chat) -> int | None:
        if chat.is_group or int(chat.id) in self.friends:
            return None
        return self.strangers[int(chat.id)][1]
