"""``python -m bot export`` beside a bot that runs: JSON on stdout and nothing else, with proofs."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from bot.simulate.provider import ModelServer
from tests.e2e.command import Outcome, command
from tests.e2e.harness import BOT, RunningBot
from tests.e2e.reflection_harness import (
    MORNING,
    REMEMBERING,
    WORKING,
    Circle,
    Friendship,
    Mind,
    answer,
    fact,
    new_circle,
    new_friendship,
    of_member,
    set_to,
)

DOCUMENTS = {"profile", "pattern", "note", "summary", "daily", "memory"}
NOTHING = {name: {} if name == "summary" else [] for name in DOCUMENTS}


@pytest.fixture(scope="module")
async def shared_bot(
    model_server: ModelServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RunningBot]:
    directory = tmp_path_factory.mktemp("bot")
    async with RunningBot(
        directory, model_server, settings=REMEMBERING, environ=WORKING
    ) as running:
        yield running


@pytest.fixture
def mind(models: ModelServer) -> Mind:
    mind = Mind()
    models.answer = mind
    return mind


@pytest.fixture
def circle(bot: RunningBot, mind: Mind) -> Circle:
    return new_circle(bot, mind)


async def export(bot: RunningBot, *arguments: str, log_level: str = "INFO") -> Outcome:
    address = f"sqlite:///{bot.database}"
    return await command("export", *arguments, DATABASE_URL=address, LOG_LEVEL=log_level)


async def exported(bot: RunningBot, scope: str) -> dict[str, Any]:
    outcome = await export(bot, "--scope", scope)
    assert outcome.status == 0, outcome.errors
    return json.loads(outcome.output)


async def test_an_export_shows_every_entry_with_what_was_said_by_whom_and_when(
    bot: RunningBot, mind: Mind, circle: Circle
):
    (rule,) = await circle.say(circle.one, "群规：每周三交周报", at=MORNING)
    (agreed,) = await circle.say(circle.two, "同意，每周三", at=MORNING + 90_000)
    group_answer = answer(
        profile=[fact("工作群", 1)],
        memory=[fact("每周三交周报", 1, 2, date="2026-08-20")],
        daily=[fact("定下了周报的日子", 2)],
        summary="一个写周报的群",
    )
    mind.will(circle.chat, "group", group_answer)
    await circle.reflect("group")
    outcome = await export(bot, "--scope", f"group:{BOT.user_id}:{circle.chat.id}")
    assert outcome.status == 0
    (line,) = outcome.lines
    found = json.loads(line)
    assert set(found) == {"scope", "documents", "cursors"}
    assert found["scope"] == f"group:{BOT.user_id}:{circle.chat.id}"
    assert found["cursors"] == {"group": circle.cursor("group"), "member-batch": 0}
    assert found["cursors"]["group"] >= circle.row_ids()[-1]
    documents = found["documents"]
    assert set(documents) == DOCUMENTS
    assert documents["summary"] == {str(circle.chat): "一个写周报的群"}
    (entry,) = documents["memory"]
    assert entry["evidence"] == [
        {
            "message_id": str(said.message_id),
            "sender_id": str(said.sender.user_id),
            "sent_at": said.at,
        }
        for said in (rule, agreed)
    ]
    wanted = {
        "text": "每周三交周报",
        "date": "2026-08-20",
        "origin": str(circle.chat),
        "audience": "shared",
        "pinned": False,
        "tier": "episodic",
    }
    assert wanted.items() <= entry.items()
    assert {one["id"] for name in DOCUMENTS - {"summary"} for one in documents[name]} == {
        "0001",
        "0002",
        "0003",
    }


async def test_a_member_is_exported_with_all_streams_and_everything_as_json_lines(
    bot: RunningBot, mind: Mind, circle: Circle
):
    person = circle.one
    bot.world.befriend(person)
    private = Friendship(bot, mind, bot.world.private_chat(person.user_id), person)
    hobby = fact("在学画画", 1, type="preference")
    learnt = of_member(person.user_id, profile=[hobby], summary="爱画画")
    await circle.learn("member", person, "我在学画画", learnt)
    own = answer(memory=[fact("明年想考驾照", 1)], summary="有计划的人")
    mind.will(private.chat, "private-owner", own)
    await private.ask("我明年想考驾照")
    await set_to(bot, "memoryPrivateBatchMessages", 1)
    await private.until_drained("private-owner")

    name = f"member:{BOT.user_id}:{person.user_id}"
    found = await exported(bot, name)
    documents = found["documents"]
    places = {
        one["text"]: (one["origin"], one["audience"], one["type"])
        for one in documents["profile"] + documents["memory"]
    }
    assert places == {
        "在学画画": (str(circle.chat), "shared", "preference"),
        "明年想考驾照": (str(private.chat), "private", None),
    }
    assert documents["summary"] == {str(circle.chat): "爱画画", str(private.chat): "有计划的人"}
    assert found["cursors"]["private-owner"] >= private.row_ids()[-1]

    everything = await export(bot, "--all")
    scopes = [json.loads(line) for line in everything.lines]
    assert (everything.status, scopes.count(found)) == (0, 1)
    assert len({one["scope"] for one in scopes}) == len(scopes)


async def test_an_unknown_scope_has_every_key_and_nothing_in_it(bot: RunningBot):
    name = f"member:{BOT.user_id}:123456789"
    assert await exported(bot, name) == {"scope": name, "documents": NOTHING, "cursors": {}}


async def test_logs_go_to_stderr_and_a_wrong_scope_is_told_there(bot: RunningBot):
    chatty = await export(bot, "--scope", f"group:{BOT.user_id}:1", log_level="TRACE")
    assert json.loads(chatty.output)["documents"] == NOTHING
    wrong = await export(bot, "--scope", "room:1:2")
    assert (wrong.status, wrong.output) == (2, "")
    assert "room:1:2" in wrong.errors
    assert "Traceback" not in wrong.errors


async def test_an_export_without_a_database_names_it_and_makes_none(tmp_path_factory):
    missing = tmp_path_factory.mktemp("none") / "qunyi.db"
    outcome = await command("export", "--all", DATABASE_URL=f"sqlite:///{missing}")
    assert (outcome.status, outcome.output) == (1, "")
    assert str(missing) in outcome.errors
    assert not missing.exists()


async def test_exports_work_while_messages_come_in_and_are_reflected(bot: RunningBot, mind: Mind):
    friendship = new_friendship(bot, mind)
    await friendship.say(*(f"第 {number} 句" for number in range(200)), at=MORNING)
    await friendship.ask("在吗")
    outcome = await export(bot, "--all")
    assert (outcome.status, outcome.errors) == (0, "")
    assert all(set(json.loads(line)["documents"]) == DOCUMENTS for line in outcome.lines)
