"""Long conversations on the stage: turns as they are kept, and models that summarise them."""

import json
from collections.abc import Sequence
from typing import Any

from bot.llm.protocol import ModelRequest
from bot.model import Chat, TurnLine
from bot.simulate import segments
from bot.store.memory import forget_message
from bot.store.messages import Recall, recall_message
from bot.store.sessions import SessionState, session_state
from bot.store.turns import NewTurn, add_turn, finish_turn
from bot.text import json_line
from bot.worker import tick
from tests.store.rows import own, said, store
from tests.verbs.stage import BOT, FISH, GROUP, Stage

CHAT = Chat(str(BOT), "group", str(GROUP))
PRIVATE = Chat(str(BOT), "private", str(FISH))

NOTHING_NEW = "{}"


def summary_of(
    *decisions: dict[str, Any],
    overturned: Sequence[dict[str, Any]] = (),
    topics: Sequence[str] = (),
    current: str = "",
) -> str:
    """Return what a model answers."""
    answer = {
        "key_decisions": list(decisions),
        "overturned": list(overturned),
        "past_discussions": [{"topic": topic, "description": f"谈了{topic}"} for topic in topics],
        "current_discussion": current,
    }
    return json.dumps(answer, ensure_ascii=False)


def polite(request: ModelRequest) -> str:
    """Answer whatever is asked."""
    return summary_of(topics=["爬山"], current="在约时间") if is_summary(request) else "好的"


def is_summary(request: ModelRequest) -> bool:
    return request.purpose == "summarize"


def lines_of(request: ModelRequest, heading: str = "新的对话") -> list[dict[str, Any]]:
    """Return the objects under one heading of a prompt."""
    text = request.messages[0].content.split(f"\n【{heading}】\n", maxsplit=1)[1]
    block = text.split("\n【", maxsplit=1)[0]
    return [json.loads(line) for line in block.splitlines() if line.startswith("{")]


def texts_of(request: ModelRequest) -> list[str]:
    """Return what the lines that a summary reads say."""
    return [line["text"] for line in lines_of(request)]


async def converse_on(
    stage: Stage,
    count: int,
    *,
    first: int = 1,
    chat: Chat = CHAT,
    by: int = FISH,
    role: Any = "",
    text: str = "问题{}",
    answer: str | None = "回答{}",
) -> list[int]:
    """Let so many turns be taken at this moment; return their ids."""
    db, now = stage.app.db, stage.now
    numbers = range(first, first + count)
    asked = await store(
        db,
        *(
            said(text.format(n), id=f"q{chat.kind}{n}", at=now + n, chat=chat, by=str(by))
            for n in numbers
        ),
        pending=False,
    )
    told = await store(
        db,
        *(
            own((answer or "").format(n), id=f"a{chat.kind}{n}", at=now + n, chat=chat)
            for n in numbers
        ),
    )
    if role:
        async with db.transaction() as tx:
            ids = json.dumps([receipt.row_id for receipt in asked])
            await tx.execute_fetchall(
                "UPDATE messages SET sender_role = ? WHERE id IN (SELECT value FROM json_each(?))",
                (role, ids),
            )
    turns = []
    async with db.transaction() as tx:
        for n, question, reply in zip(numbers, asked, told, strict=True):
            said_by = {"at": "2026-07-29 12:00", "senderId": str(by), "senderName": "甲"}
            line = json_line({"id": question.row_id, **said_by, "text": text.format(n)})
            lines = [TurnLine(question.row_id, "question", line)]
            if answer is not None:
                lines.append(TurnLine(None, "answer", answer.format(n)))
            turn = _turn(chat, by, now, question.row_id, lines)
            turn_id = await add_turn(tx, turn, "sending", at=now)
            assert turn_id is not None
            sent = {} if answer is None else {1: reply.row_id}
            await finish_turn(tx, turn_id, "sent", sent=sent, at=now)
            turns.append(turn_id)
    return turns


def _turn(chat: Chat, by: int, now: int, row_id: int, lines: Sequence[TurnLine]) -> NewTurn:
    return NewTurn(
        chat=chat,
        user_id=str(by),
        asked_at=now,
        started_at=now,
        addressed=True,
        third_party=False,
        context_until=row_id,
        lines=tuple(lines),
        model="example-model",
        endpoint="default",
    )


async def state_of(stage: Stage, chat: Chat = CHAT) -> SessionState:
    """Return how a conversation stands, having checked that its counters tell the truth."""
    state = await session_state(stage.app.db, chat)
    counted = await stage.rows(
        "SELECT coalesce(sum(id > ?), 0), coalesce(sum(id > ?), 0) FROM turns"
        " WHERE chat_id = ? AND state = 'sent'",
        state.window_start,
        state.summary_cursor,
        state.chat_id,
    )
    assert counted == [(state.window_turns, state.new_turns)]
    return state


async def pass_minutes(stage: Stage, minutes: float) -> int:
    """Let time pass and the worker look; return how many tasks it ran."""
    await stage.clock.advance(minutes * 60)
    return await tick(stage.app)


async def take_back(stage: Stage, platform_id: str, chat: Chat = CHAT) -> None:
    """Let a message be recalled."""
    async with stage.app.db.transaction() as tx:
        taken = await recall_message(tx, Recall(chat, platform_id, str(FISH), stage.now))
        assert taken is not None
        await forget_message(tx, taken.row_id, stage.now)


def at_bot(text: str) -> tuple[Any, ...]:
    """Return a message that addresses the bot."""
    return segments.at(BOT), f" {text}"
