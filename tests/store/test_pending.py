"""What waits for reflection: the counters against a count by hand, over any history."""

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from bot.model import Chat, Message
from bot.store.database import Database, open_database
from bot.store.ingest import TASKS, store_arrivals
from bot.store.messages import EARLY_RECALL_MS, Recall, recall_message
from tests.store.rows import GROUP, MINUTE, NOON, PRIVATE, SECOND, arrival, own, pending, said

CHATS = (GROUP, PRIVATE)
OWN_WINDOW_MS = 60 * SECOND


@dataclass
class Kept:
    """One message as the ledger knows it."""

    message: Message
    waits: bool
    recalled: bool = False


@dataclass
class Ledger:
    """The same rules once more, slow and plain."""

    kept: list[Kept] = field(default_factory=list)
    early: dict[tuple[Chat, str], int] = field(default_factory=dict)

    def arrive(self, message: Message, waits: bool) -> None:
        """Take a message in, unless it is there."""
        if any(self._is_copy(kept.message, message) for kept in self.kept):
            return
        key = (message.chat, message.platform_id)
        early = self.early.pop(key, None)
        recalled = early is not None and early > message.received_at - EARLY_RECALL_MS
        self.kept.append(Kept(message, waits, recalled))

    @staticmethod
    def _is_copy(old: Message, new: Message) -> bool:
        if (old.chat, old.platform_id) != (new.chat, new.platform_id):
            return False
        both_own = old.direction == new.direction == "outbound"
        return old.sent_at == new.sent_at or (
            both_own and abs(old.sent_at - new.sent_at) <= OWN_WINDOW_MS
        )

    def recall(self, chat: Chat, platform_id: str, at: int) -> None:
        """Take the newest message with an id back, or wait for it."""
        key = (chat, platform_id)
        meant = [k for k in self.kept if (k.message.chat, k.message.platform_id) == key]
        if meant:
            max(meant, key=lambda kept: kept.message.sent_at).recalled = True
        else:
            self.early[chat, platform_id] = at

    def pending(self, chat: Chat) -> int:
        """Count what waits."""
        return sum(
            kept.waits and not kept.recalled for kept in self.kept if kept.message.chat == chat
        )


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["inbound", "inbound", "outbound", "command", "bot", "recall"]),
        st.sampled_from(CHATS),
        st.sampled_from(["1", "2", "-3"]),
        st.sampled_from([0, 0, 1, 1, 2, 11]),
        st.booleans(),
    ),
    max_size=30,
)


async def _play(
    db: Database, ledger: Ledger, steps: list[tuple[str, Chat, str, int, bool]]
) -> None:
    now = NOON
    group = []
    for kind, chat, platform_id, minutes, closes_group in steps:
        now += minutes * MINUTE
        if kind == "recall":
            await store_arrivals(db, group)
            group = []
            ledger.recall(chat, platform_id, now)
            async with db.transaction() as tx:
                await recall_message(tx, Recall(chat, platform_id, "30001", now))
            continue
        make = own if kind == "outbound" else said
        message_kind = "command" if kind == "command" else "chat"
        message = make(id=platform_id, at=now, chat=chat, kind=message_kind)
        waits = kind == "inbound"
        ledger.arrive(message, waits)
        group.append(arrival(message, pending=waits))
        if closes_group:
            await store_arrivals(db, group)
            group = []
    await store_arrivals(db, group)


@given(steps=_STEPS)
async def test_the_counters_say_what_counting_by_hand_says(
    steps: list[tuple[str, Chat, str, int, bool]],
):
    ledger = Ledger()
    with tempfile.TemporaryDirectory() as folder:
        async with open_database(Path(folder) / "qunyi.db", now=NOON, synchronous="NORMAL") as db:
            await store_arrivals(
                db, [arrival(said(id="first", chat=chat), pending=False) for chat in CHATS]
            )
            await _play(db, ledger, steps)
            for chat in CHATS:
                counted = await pending(db, chat)
                expected = ledger.pending(chat)
                assert counted == dict.fromkeys(TASKS[chat.kind], expected) or (
                    counted == {} and expected == 0
                )
