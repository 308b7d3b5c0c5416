"""Usage: sums are the providers' own numbers."""

from bot.model import Chat, Usage
from bot.store.database import Database
from bot.store.usage import UsageSum, add_usage, tokens_since, usage_since
from tests.store.rows import GROUP, NOON, PRIVATE, rows, said, store


def call(purpose: str = "chat", *, at: int = NOON, ok: bool = True, chat: Chat | None = None):
    """Return one model call."""
    return Usage(
        purpose=purpose,
        model="m1",
        endpoint="e1",
        at=at,
        duration_ms=120,
        prompt_tokens=100 if ok else 0,
        cached_tokens=40 if ok else 0,
        completion_tokens=7 if ok else 0,
        ok=ok,
        error="" if ok else "ModelUnavailable",
        chat=chat,
    )


async def test_calls_add_up_by_purpose_since_a_moment(db: Database):
    for usage in (
        call(at=NOON - 1),
        call(),
        call(at=NOON + 5, ok=False),
        call("decide"),
        call("reflect.group", at=NOON - 9),
    ):
        await add_usage(db, usage)
    assert await usage_since(db, NOON) == [
        UsageSum("chat", 2, 1, 100, 40, 7),
        UsageSum("decide", 1, 1, 100, 40, 7),
    ]


async def test_tokens_are_prompt_and_completion_of_the_purposes_asked_for(db: Database):
    await add_usage(db, call())
    await add_usage(db, call("decide"))
    await add_usage(db, call("embed"))
    assert await tokens_since(db, NOON, ["chat", "decide"]) == 214
    assert await tokens_since(db, NOON + 1, ["chat"]) == 0
    assert await tokens_since(db, NOON, []) == 0


async def test_a_call_knows_its_chat(db: Database):
    await store(db, said(), said(chat=PRIVATE))
    await add_usage(db, call(chat=PRIVATE))
    await add_usage(db, call(chat=GROUP))
    await add_usage(db, call())
    found = await rows(
        db, "SELECT kind FROM usage LEFT JOIN chats ON chats.id = chat_id ORDER BY usage.id"
    )
    assert [row["kind"] for row in found] == ["private", "group", None]


async def test_a_call_for_a_chat_without_rows_is_still_counted(db: Database):
    await add_usage(db, call(chat=GROUP))
    assert await tokens_since(db, NOON, ["chat"]) == 107
