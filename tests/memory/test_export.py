"""Export: one JSON object per scope, the same bytes from the same messages and answers."""

import json
import random
from pathlib import Path

from bot.errors import ModelUnavailable
from bot.export import exported_all, exported_scope
from bot.llm.protocol import ModelRequest
from bot.llm.scripted import Line, ScriptedModel
from bot.model import Scope
from tests.memory.workshop import (
    BEAR,
    BOT,
    CAT,
    FISH,
    GROUP,
    OF_FISH,
    OF_GROUP,
    OTHER_GROUP,
    PRIVATE,
    Shown,
    Workshop,
    diary,
    open_workshop,
    say,
    say_of,
)

KEYS = {"profile", "pattern", "note", "summary", "daily", "memory"}


async def test_an_unknown_scope_has_every_key_and_nothing_in_it(shop: Workshop):
    assert await exported_scope(shop.app.db, Scope(BOT, "group", "29999")) == {
        "scope": "group:10001:29999",
        "documents": {
            "profile": [],
            "pattern": [],
            "note": [],
            "daily": [],
            "memory": [],
            "summary": {},
        },
        "cursors": {},
    }
    assert await exported_all(shop.app.db) == []


async def test_entries_name_their_evidence_their_origin_and_their_audience(shop: Workshop):
    await shop.answer_once()
    [first] = await shop.hear("我属虎", platform_id="-771", by=FISH)
    await shop.hear("我怕黑", platform_id="772", chat=PRIVATE)
    shop.model.enqueue(
        say_of(FISH, profile=[{"type": "background", "text": "属虎", "refs": [1]}]),
        purpose="reflect.member-batch",
    )
    shop.model.enqueue(
        say(profile=[{"type": "note", "text": "怕黑", "refs": [1]}], summary="怕黑的人"),
        purpose="reflect.private-owner",
    )
    await shop.idle()
    found = await shop.export(OF_FISH)
    assert set(found["documents"]) == KEYS
    by_text = {entry["text"]: entry for entry in found["documents"]["profile"]}
    assert by_text["属虎"]["origin"] == "group:20001"
    assert by_text["属虎"]["audience"] == "shared"
    assert by_text["属虎"]["evidence"] == [
        {"message_id": "-771", "sender_id": FISH, "sent_at": shop.now - 15 * 60_000}
    ]
    assert by_text["怕黑"]["origin"] == "private:30001"
    assert by_text["怕黑"]["audience"] == "private"
    assert found["documents"]["summary"] == {"private:30001": "怕黑的人"}
    assert (await shop.export(OF_GROUP))["cursors"] == {"group": first, "member-batch": first}


async def test_what_ended_is_not_exported(shop: Workshop):
    await shop.hear("周三例会")
    await shop.idle()
    await shop.hear("例会取消")

    def cancel(request: ModelRequest) -> str:
        return say(retract=[{"id": Shown(request).entries[0]["id"], "refs": [1]}])

    shop.model.enqueue(cancel, purpose="reflect.group")
    await shop.idle()
    assert await shop.texts(OF_GROUP) == []


async def test_all_scopes_come_in_the_order_in_which_they_began(shop: Workshop):
    await shop.set(memoryConcurrency=1)
    await shop.chatter(2)
    await shop.idle()
    scopes = [one["scope"] for one in await exported_all(shop.app.db)]
    assert scopes == ["group:10001:20001", f"member:10001:{BEAR}", f"member:10001:{FISH}"]


# --- the same again ---------------------------------------------------------------------------


def recorded(seed: int) -> ScriptedModel:
    """A model that answers the same questions the same way, and fails at the same places."""
    dice = random.Random(seed)
    kinds = [dice.random() for _ in range(2_000)]
    asked = iter(kinds)

    def answer(request: ModelRequest) -> Line:
        kind = next(asked)
        if kind < 0.15:
            return ModelUnavailable("down")
        if kind < 0.25:
            return "嗯……"
        if kind < 0.35 and request.purpose == "reflect.group":
            return say(summary=f"第{int(kind * 1000)}阶段")
        return diary(request)

    return ScriptedModel(answer)


async def play(root: Path, seed: int) -> bytes:
    """Play a message log on a new database and return all that is remembered at its end."""
    dice = random.Random(seed)
    async with open_workshop(root, model=recorded(seed), settings={"memoryConcurrency": 1}) as shop:
        await shop.answer_once()
        rows: list[tuple[int, object]] = []
        for number in range(120):
            chat = dice.choice([GROUP, GROUP, OTHER_GROUP, PRIVATE])
            by = dice.choice([FISH, BEAR, CAT]) if chat.is_group else FISH
            [row] = await shop.hear(f"第{number}句", by=by, chat=chat, platform_id=str(number))
            rows.append((row, chat))
            if dice.random() < 0.1:
                taken = dice.choice(rows)
                await shop.recall(taken[0], taken[1])  # type: ignore[arg-type]
            await shop.pass_time(dice.choice([0, 0, 1, 20]))
            await shop.tick()
        await shop.pass_time(180)
        await shop.tick()
        scopes = await exported_all(shop.app.db)
        assert len(scopes) == 5
        return json.dumps(scopes, ensure_ascii=False).encode()


async def test_the_same_log_with_the_same_answers_gives_the_same_bytes(tmp_path: Path):
    for seed in (1, 2):
        one = await play(tmp_path / f"{seed}a", seed)
        two = await play(tmp_path / f"{seed}b", seed)
        assert one == two
        assert len(one) > 5_000
