"""People acting on the simulated platform: each act changes the world and is reported."""

from bot.model import Chat
from bot.simulate import events
from bot.simulate.client import OneBotClient
from bot.simulate.events import RawEvent
from bot.simulate.world import Content, PendingRequest, Person, Utterance


class Scene:
    """What people do, as the application behind a client gets to know it.

    For what it shall not get to know (it was offline), act on ``client.world`` instead.
    Every act raises ``Unknown`` for people and groups that are not in the world, and
    ``NotConnected`` if it cannot be reported.
    """

    def __init__(self, client: OneBotClient) -> None:
        self.client = client
        self._world = client.world

    async def say(self, group_id: int, sender: int | Person, *content: Content) -> Utterance:
        """Let a member (or any ``Person``) say something in a group; strings are plain text."""
        spoken = self._world.say(group_id, sender, *content, at=self._now())
        return await self._report(spoken)

    async def whisper(self, user_id: int, *content: Content) -> Utterance:
        """Let a friend, or someone in a temporary session, say something in private."""
        return await self._report(self._world.whisper(user_id, *content, at=self._now()))

    async def whisper_from_group(self, group_id: int, user_id: int, *content: Content) -> Utterance:
        """Let a member of a group who is no friend say something in a temporary session."""
        self._world.open_temporary_session(group_id, user_id)
        return await self.whisper(user_id, *content)

    async def type_on_phone(self, chat: Chat, *content: Content) -> Utterance:
        """Let the operator write by hand with the bot account: ``message_sent`` is reported."""
        return await self._report(self._world.speak(chat, *content, at=self._now()))

    async def recall(self, message_id: int, *, operator_id: int | None = None) -> None:
        """Recall a message, as its author or as an admin."""
        spoken = self._world.recall(message_id)
        if spoken.chat.is_group:
            await self._tell(self._group_recall(spoken, operator_id))
        else:
            await self._tell(
                events.friend_recall(self._me, int(spoken.chat.id), message_id, at=self._now())
            )

    async def change_card(self, group_id: int, user_id: int, card: str) -> None:
        """Change somebody's name within a group."""
        former = self._world.change_card(group_id, user_id, card)
        await self._tell(
            events.group_card(self._me, group_id, user_id, card, former, at=self._now())
        )

    async def rename_group(self, group_id: int, user_id: int, name: str) -> None:
        """Change the name of a group."""
        self._world.rename_group(group_id, name)
        await self._tell(events.group_name(self._me, group_id, user_id, name, at=self._now()))

    async def join(self, group_id: int, person: Person) -> None:
        """Let somebody join a group."""
        self._world.join(group_id, person)
        await self._tell(events.group_increase(self._me, group_id, person.user_id, at=self._now()))

    async def leave(self, group_id: int, user_id: int) -> None:
        """Let a member leave a group."""
        self._world.leave(group_id, user_id)
        await self._tell(
            events.group_decrease(self._me, group_id, user_id, at=self._now(), operator_id=user_id)
        )

    async def kick(self, group_id: int, user_id: int, *, operator_id: int) -> None:
        """Remove a member, or the bot account itself, from a group."""
        self._world.leave(group_id, user_id)
        await self._tell(
            events.group_decrease(
                self._me,
                group_id,
                user_id,
                at=self._now(),
                sub_type="kick_me" if user_id == self._me else "kick",
                operator_id=operator_id,
            )
        )

    async def disband(self, group_id: int, *, operator_id: int) -> None:
        """Disband a group."""
        self._world.leave(group_id, self._me)
        await self._tell(
            events.group_decrease(
                self._me,
                group_id,
                self._me,
                at=self._now(),
                sub_type="disband",
                operator_id=operator_id,
            )
        )

    async def mute(
        self, group_id: int, user_id: int, *, operator_id: int, duration_seconds: int = 600
    ) -> None:
        """Forbid a member to speak, or everyone if ``user_id`` is 0. ``lift`` ends it."""
        self._world.mute(group_id, user_id)
        await self._ban(group_id, user_id, operator_id, duration_seconds)

    async def lift(self, group_id: int, user_id: int, *, operator_id: int) -> None:
        """Allow to speak again."""
        self._world.lift(group_id, user_id)
        await self._ban(group_id, user_id, operator_id, 0)

    async def ask_for_friendship(self, person: Person, comment: str = "") -> str:
        """Let somebody ask to be a friend and return the flag of the request."""
        flag = self._world.add_request(PendingRequest("friend", person))
        await self._tell(
            events.friend_request(
                self._me, person.user_id, at=self._now(), flag=flag, comment=comment
            )
        )
        return flag

    async def invite(self, group_id: int, person: Person) -> str:
        """Let somebody invite the bot account to a group and return the flag of the request."""
        flag = self._world.add_request(PendingRequest("invite", person, group_id))
        await self._tell(
            events.group_request(self._me, group_id, person.user_id, at=self._now(), flag=flag)
        )
        return flag

    @property
    def _me(self) -> int:
        return self.client.self_id

    def _now(self) -> int:
        return self.client.clock.now()

    async def _report(self, spoken: Utterance) -> Utterance:
        await self._tell(self.client.desk.event_of(spoken))
        return spoken

    async def _tell(self, event: RawEvent) -> None:
        await self.client.deliver(event)

    async def _ban(
        self, group_id: int, user_id: int, operator_id: int, duration_seconds: int
    ) -> None:
        await self._tell(
            events.group_ban(
                self._me,
                group_id,
                user_id,
                at=self._now(),
                duration_seconds=duration_seconds,
                operator_id=operator_id,
            )
        )

    def _group_recall(self, spoken: Utterance, operator_id: int | None) -> RawEvent:
        return events.group_recall(
            self._me,
            int(spoken.chat.id),
            spoken.sender.user_id,
            spoken.message_id,
            at=self._now(),
            operator_id=operator_id,
        )
