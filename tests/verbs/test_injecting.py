"""The memory that a prompt shows: when it is made anew, and that nothing forgotten stays in it."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from bot.conversation.floor import Question
from bot.inject import Injection, inject
from bot.llm.protocol import ModelRequest
from bot.model import Chat, Document, Member, Scope, Shown, Stream
from bot.onebot.events import Recalled
from bot.prompts import PROMPTS_FOLDER, Prompts
from bot.recall import recall
from bot.scene import Scene, read_scene
from bot.simulate import Person
from bot.store.memory import StreamWriter, rewrite
from bot.store.messages import messages_by_rows
from bot.store.revisions import undo_revision
from bot.store.snapshots import NewSnapshot, keep_snapshots, mark_stale, set_crosses_groups
from bot.worker import tick
from tests.verbs.remembering import OF_FISH, OF_GROUP, change, recall_rows, remember
from tests.verbs.stage import (
    AT_BOT,
    BEAR,
    BOT,
    CAT,
    FISH,
    GROUP,
    NOON,
    OPERATOR,
    OTHER_GROUP,
    Stage,
    open_stage,
    whole,
)

FISH_IN_PRIVATE = Stream(Scope(str(BOT), "member", str(FISH)), Chat(str(BOT), "private", str(FISH)))
FISH_ELSEWHERE = Stream(
    Scope(str(BOT), "member", str(FISH)), Chat(str(BOT), "group", str(OTHER_GROUP))
)
OF_BEAR = Stream(Scope(str(BOT), "member", str(BEAR)), OF_GROUP.origin)
TURN_SECONDS = 5
MINUTE = 60


async def know(stage: Stage, stream: Stream, text: str, document: Document = "profile") -> int:
    """Let a stream hold one more entry and return the row of the message it rests on."""
    told = await remember(stage, stream, 1, document=document, text=text)
    [row] = told.rows.values()
    return row


async def ask(stage: Stage, who: int = FISH, group: int | None = GROUP) -> ModelRequest:
    """Ask something and return the prompt of the answer."""
    count = len(stage.model.requests)
    if group is None:
        stage.whisper(who, "说说看")
    else:
        stage.say(group, who, AT_BOT, " 说说看")
    await stage.advance(TURN_SECONDS)
    assert len(stage.model.requests) == count + 1
    return stage.model.requests[-1]


def standing(request: ModelRequest) -> str:
    """What stands between the rules and the conversation."""
    systems = [message.content for message in request.messages if message.role == "system"]
    assert [message.role for message in request.messages[: len(systems)]] == ["system"] * len(
        systems
    )
    return "\n".join(systems[1:])


def tail(request: ModelRequest) -> str:
    """What stands between the context and the time in the newest message."""
    before_time = request.messages[-1].content.split("【现在】", maxsplit=1)[0]
    lines = before_time.splitlines(keepends=True)
    is_context = [line.startswith(('{"id"', "【这之前")) for line in lines]
    return "".join(line for line, said in zip(lines, is_context, strict=True) if not said)


async def made(stage: Stage) -> dict[str, int]:
    """When each snapshot was made, in seconds since noon, by chat and scope."""
    rows = await stage.rows(
        "SELECT c.peer_id || ' ' || s.kind || ' ' || s.key, n.injected_at FROM snapshots AS n"
        " JOIN chats AS c ON c.id = n.chat_id JOIN scopes AS s ON s.id = n.scope_id"
    )
    return {name: round((at - NOON) / 1000) for name, at in rows}


OF_THE_GROUP = f"{GROUP} group {GROUP}"
OF_THE_FISH = f"{GROUP} member {FISH}"


# What is shown


async def test_the_first_turn_shows_the_group_before_the_conversation_and_the_sender_at_the_end(
    stage: Stage,
):
    await know(stage, OF_GROUP, "每周三例会", "memory")
    await know(stage, OF_FISH, "爱爬山")
    prompt = await ask(stage)
    assert "每周三例会" in standing(prompt)
    assert '{"groupId": "20001"}' in standing(prompt)
    assert "#0001" in standing(prompt)
    assert "爱爬山" in tail(prompt)
    assert f'{{"senderId": "{FISH}"}}' in tail(prompt)
    assert whole(prompt).count("爱爬山") == whole(prompt).count("每周三例会") == 1


async def test_in_private_all_of_the_person_stands_before_the_conversation(stage: Stage):
    await know(stage, FISH_IN_PRIVATE, "怕黑", "memory")
    await know(stage, OF_FISH, "爱爬山")
    await know(stage, OF_FISH, "去了湖边", "daily")
    prompt = await ask(stage, group=None)
    for words in ("怕黑", "爱爬山", "去了湖边"):
        assert words in standing(prompt)
    assert tail(prompt) == ""


async def test_an_empty_memory_shows_nothing_at_all_not_even_a_frame(stage: Stage):
    prompt = await ask(stage)
    assert [message.role for message in prompt.messages] == ["system", "user"]
    assert tail(prompt) == ""
    # Things of a day are not shown in groups, so nothing is left of this memory either.
    await know(stage, OF_FISH, "去了湖边", "daily")
    prompt = await ask(stage)
    assert (standing(prompt), tail(prompt)) == ("", "")


async def test_what_is_first_remembered_is_shown_in_the_next_turn(stage: Stage):
    await know(stage, OF_FISH, "去了湖边", "daily")
    await ask(stage)
    await know(stage, OF_FISH, "爱爬山")
    assert "爱爬山" in tail(await ask(stage))


async def test_notes_are_in_no_snapshot(stage: Stage):
    for stream in (OF_GROUP, OF_FISH, FISH_IN_PRIVATE):
        await know(stage, stream, "便签一张", "note")
    assert "便签" not in whole(await ask(stage))
    assert "便签" not in whole(await ask(stage, group=None))


async def test_a_snapshot_never_exceeds_its_budget_with_its_frame(stage: Stage):
    await remember(stage, OF_GROUP, 200, text="第 {} 件事：" + "很长的事" * 20)
    await remember(stage, OF_FISH, 200, document="profile", text="第 {} 个爱好：" + "爬山" * 9)
    for budget in (2000, 500, 300, 20):
        await stage.set(memoryScopeCharBudget=budget)
        prompt = await ask(stage)
        assert len(standing(prompt)) <= budget
        assert len(tail(prompt).rstrip("\n")) <= budget
        assert bool(standing(prompt)) == (budget > 20)


async def test_memory_switched_off_shows_nothing_and_keeps_everything(stage: Stage):
    await know(stage, OF_GROUP, "每周三例会", "memory")
    await ask(stage)
    before = await stage.rows("SELECT * FROM snapshots")
    await stage.set(stage.group, memoryEnabled=False)
    assert "例会" not in whole(await ask(stage))
    assert await stage.rows("SELECT * FROM snapshots") == before
    await stage.set(stage.group, memoryEnabled=True)
    assert "例会" in standing(await ask(stage))


# When


async def test_forty_turns_in_thirty_minutes_make_nothing_anew(stage: Stage):
    await stage.set(sessionMaxMessages=100)
    await know(stage, OF_GROUP, "每周三例会", "memory")
    await know(stage, OF_FISH, "爱爬山")
    first = await ask(stage)
    at_first = await made(stage)
    shown = standing(first), tail(first)
    for number in range(40):
        if number % 10 == 5:
            await know(stage, OF_GROUP, f"新的约定{number}", "memory")
        await stage.advance(45 - TURN_SECONDS)
        prompt = await ask(stage)
        assert (standing(prompt), tail(prompt)) == shown
    assert await made(stage) == at_first


async def test_a_silent_member_gets_a_new_snapshot_and_a_busy_group_none(stage: Stage):
    await know(stage, OF_GROUP, "每周三例会", "memory")
    await know(stage, OF_FISH, "爱爬山")
    await ask(stage, FISH)
    at_first = await made(stage)
    await know(stage, OF_FISH, "爱钓鱼")
    await know(stage, OF_GROUP, "周日爬山", "memory")
    for _ in range(6):
        await stage.advance(5 * MINUTE)
        await ask(stage, BEAR)
    await stage.advance(MINUTE)
    prompt = await ask(stage, FISH)
    assert "爱钓鱼" in tail(prompt)
    assert "周日爬山" not in standing(prompt)
    later = await made(stage)
    assert later[OF_THE_GROUP] == at_first[OF_THE_GROUP]
    assert later[OF_THE_FISH] > at_first[OF_THE_FISH] + 31 * MINUTE


@pytest.mark.parametrize(("minutes", "is_new"), [(29, False), (31, True)])
async def test_who_comes_back_within_the_time_to_live_finds_the_old_snapshot(
    stage: Stage, minutes: int, is_new: bool
):
    await know(stage, OF_GROUP, "每周三例会", "memory")
    await ask(stage)
    await stage.advance(20 * MINUTE)
    await ask(stage)
    await know(stage, OF_GROUP, "周日爬山", "memory")
    await stage.advance(minutes * MINUTE)
    assert ("周日爬山" in standing(await ask(stage))) == is_new


async def test_a_compaction_makes_each_snapshot_anew_once(stage: Stage):
    await stage.set(sessionMaxMessages=4)
    await know(stage, OF_GROUP, "每周三例会", "memory")
    first = await ask(stage)
    await know(stage, OF_GROUP, "周日爬山", "memory")
    prompts = [first]
    stage.model.enqueue("{}", purpose="summarize")
    for _ in range(5):
        await stage.advance(30)
        await tick(stage.app)
        prompts.append(await ask(stage))
    lengths = [len(prompt.messages) for prompt in prompts]
    fell = next(n for n in range(1, 6) if lengths[n] < lengths[n - 1])
    assert ["周日爬山" in standing(prompt) for prompt in prompts] == [
        n >= fell for n in range(len(prompts))
    ]


async def test_a_changed_memory_is_shown_at_the_latest_when_the_snapshot_is_old(stage: Stage):
    await stage.set(sessionMaxMessages=200)
    await know(stage, OF_GROUP, "每周三例会", "memory")
    await ask(stage)
    await know(stage, OF_GROUP, "周日爬山", "memory")
    shown = []
    for _ in range(19):
        await stage.advance(20 * MINUTE - TURN_SECONDS)
        shown.append("周日爬山" in standing(await ask(stage)))
    assert shown == [False] * 18 + [True]


async def test_a_snapshot_that_says_the_same_stays_as_it_is_to_the_letter(stage: Stage):
    await know(stage, OF_GROUP, "每周三例会", "memory")
    before = standing(await ask(stage))
    await stage.advance(40 * MINUTE)
    assert standing(await ask(stage)) == before


async def test_what_stands_before_the_tail_is_the_same_from_turn_to_turn(stage: Stage):
    await know(stage, OF_GROUP, "每周三例会", "memory")
    await know(stage, OF_FISH, "爱爬山")
    await know(stage, OF_BEAR, "爱睡觉")
    before = await ask(stage, FISH)
    for who in (BEAR, CAT, FISH):
        await stage.advance(30)
        prompt = await ask(stage, who)
        shared = before.messages[:-1]
        assert prompt.messages[: len(shared)] == shared
        before = prompt


async def test_a_restart_makes_nothing_anew(tmp_path: Path):
    async with open_stage(tmp_path) as stage:
        await know(stage, OF_GROUP, "每周三例会", "memory")
        await know(stage, OF_FISH, "爱爬山")
        first = await ask(stage)
        await stage.advance(20 * MINUTE)
        await ask(stage)
        at_first, now = await made(stage), stage.now
    async with open_stage(tmp_path, start=now + 25 * MINUTE * 1000) as stage:
        await know(stage, OF_GROUP, "周日爬山", "memory")
        prompt = await ask(stage)
        assert (standing(prompt), tail(prompt)) == (standing(first), tail(first))
        assert await made(stage) == at_first


# What is forgotten


async def test_a_recalled_message_takes_its_entry_out_of_the_very_next_prompt(stage: Stage):
    row = await know(stage, OF_GROUP, "秘密基地在河边", "memory")
    await know(stage, OF_GROUP, "每周三例会", "memory")
    assert "秘密基地" in standing(await ask(stage))
    await recall_rows(stage, row)
    assert await stage.rows("SELECT text, shown, stale FROM snapshots") == [("", "[]", 1)]
    prompt = await ask(stage)
    assert "秘密基地" not in whole(prompt)
    assert "每周三例会" in standing(prompt)


async def test_a_cleared_summary_is_not_shown_any_more(stage: Stage):
    row = await know(stage, OF_GROUP, "每周三例会", "memory")
    await change(stage, OF_GROUP, lambda writer: writer.summarise("正在密谋", [row]))
    assert "正在密谋" in standing(await ask(stage))
    await recall_rows(stage, row)
    assert "密谋" not in whole(await ask(stage))


async def test_what_is_forgotten_while_the_model_thinks_is_asked_again_without_it(stage: Stage):
    row = await know(stage, FISH_ELSEWHERE, "秘密是西瓜")
    stage.model.hold()
    stage.say(GROUP, FISH, AT_BOT, " 说说看")
    await stage.advance(TURN_SECONDS)
    [thinking] = stage.model.requests
    assert "秘密是西瓜" in tail(thinking)
    [[platform_id]] = await stage.rows("SELECT platform_id FROM messages WHERE id = ?", row)
    chat = FISH_ELSEWHERE.origin
    await recall(stage.app, Recalled(chat, platform_id, "", str(FISH), stage.now))
    stage.model.release()
    await stage.advance(TURN_SECONDS)
    again = stage.model.requests[1]
    assert "西瓜" not in whole(again)
    assert stage.texts() == ["好的"]


async def test_a_snapshot_made_from_what_is_forgotten_meanwhile_is_not_kept(stage: Stage):
    row = await know(stage, OF_GROUP, "秘密基地在河边", "memory")
    scene = await scene_of(stage)
    await recall_rows(stage, row)
    assert await inject(stage.app, scene) == Injection(scope_ids=(1,))
    assert "秘密" not in str(await stage.rows("SELECT * FROM snapshots"))


async def test_a_snapshot_that_was_read_before_and_comes_after_is_refused(stage: Stage):
    row = await know(stage, OF_GROUP, "秘密基地在河边", "memory")
    await ask(stage)
    known = (await scene_of(stage)).recollection
    [[scope_id, kept]] = known.kept.items()
    await recall_rows(stage, row)
    assert not await keep_snapshots(stage.app.db, stage.group, [NewSnapshot(scope_id, kept)])
    assert await stage.rows("SELECT text, stale FROM snapshots") == [("", 1)]


CHANGES = {
    "recalled": "",
    "forgotten": "/忘记 我#0001",
    "shut out of other groups": "/跨群 关",
    "undone": "/撤销 9",
}


@pytest.mark.parametrize("how", CHANGES)
@pytest.mark.parametrize("document", ["profile", "pattern"])
async def test_what_goes_after_the_scene_was_read_is_in_no_part_of_the_prompt(
    stage: Stage, how: str, document: Document
):
    """The snapshot has no room for it, so it would stand in the pack."""
    await stage.set(memoryScopeCharBudget=20)
    row = await know(stage, FISH_ELSEWHERE, "秘密是西瓜", document)
    other = int(FISH_ELSEWHERE.origin.id)
    async with stage.app.db.transaction() as tx:
        await tx.execute_fetchall("UPDATE entries SET pinned = 1")
        add = "INSERT INTO revisions (id, stream_id, at, by, why, before, after)"
        after = '{"entries": [{"number": 1}]}'
        await tx.execute_fetchall(f"{add} VALUES (9, 1, {stage.now}, 'x', '', '{{}}', '{after}')")
    scene = await scene_of(stage)
    assert "西瓜" in (await inject(stage.app, scene)).pack
    async with stage.app.db.transaction() as tx:
        await tx.execute_fetchall("DELETE FROM snapshots")
    if how == "recalled":
        [[platform_id]] = await stage.rows("SELECT platform_id FROM messages WHERE id = ?", row)
        chat = FISH_ELSEWHERE.origin
        await recall(stage.app, Recalled(chat, platform_id, "", str(FISH), stage.now))
    elif how == "undone":
        stage.say(other, Person(OPERATOR, "管家"), CHANGES[how])
    else:
        stage.say(other, FISH, CHANGES[how])
    await stage.advance(TURN_SECONDS)
    found = await inject(stage.app, scene)
    assert (found.standing, found.sender, found.pack, found.packed) == ("", "", "", ())


async def test_a_turn_whose_chat_keeps_no_snapshot_is_asked_again_too(stage: Stage):
    await know(stage, FISH_ELSEWHERE, "秘密是西瓜")
    stage.model.hold()
    stage.say(GROUP, FISH, AT_BOT, " 说说看")
    await stage.advance(TURN_SECONDS)
    assert "西瓜" in tail(stage.model.requests[0])
    async with stage.app.db.transaction() as tx:
        await tx.execute_fetchall("DELETE FROM snapshots")
    stage.whisper(FISH, "/忘记 #0001")
    await stage.advance(TURN_SECONDS)
    stage.model.release()
    await stage.advance(TURN_SECONDS)
    assert len(stage.model.requests) == 2
    assert "西瓜" not in whole(stage.model.requests[-1])
    assert stage.texts(stage.group) == ["好的"]


async def test_what_is_undone_in_one_group_is_asked_again_in_another(stage: Stage):
    stage.say(OTHER_GROUP, FISH, "/记住 我最爱西瓜")
    await stage.advance(TURN_SECONDS)
    stage.model.hold()
    stage.say(GROUP, FISH, AT_BOT, " 说说看")
    await stage.advance(TURN_SECONDS)
    assert "西瓜" in tail(stage.model.requests[0])
    stage.say(OTHER_GROUP, Person(OPERATOR, "管家"), "/撤销 1")
    await stage.advance(TURN_SECONDS)
    stage.model.release()
    await stage.advance(TURN_SECONDS)
    assert len(stage.model.requests) == 2
    assert "西瓜" not in whole(stage.model.requests[-1])


async def scene_of(stage: Stage) -> Scene:
    """What a turn of the fish knows as it begins."""
    stage.say(GROUP, FISH, "说说看")
    await stage.settle()
    found = await stage.rows("SELECT max(id) FROM messages")
    stored = await messages_by_rows(stage.app.db, [found[0][0]])
    question = Question(stage.group, str(FISH), tuple(stored), True, stage.now, stage.now)
    return await read_scene(stage.app, question)


async def test_an_entry_that_is_ended_as_forgotten_is_gone_at_once(stage: Stage):
    told = await remember(stage, OF_FISH, 1, document="profile", text="爱爬山")
    assert "爱爬山" in tail(await ask(stage))
    [number] = told.numbers
    await change(stage, OF_FISH, lambda writer: writer.end(number, "forgotten", ""))
    assert "爱爬山" not in whole(await ask(stage))


async def test_what_is_undone_is_gone_at_once(stage: Stage):
    row = await know(stage, OF_GROUP, "每周三例会", "memory")

    def add(writer: StreamWriter) -> None:
        writer.add("memory", "全群改姓王", [[row]], date="2026-07-29", source_task="group")

    async with stage.app.db.transaction() as tx:
        await rewrite(tx, {OF_GROUP: add}, at=stage.now, by="group", why="idle")
    assert "改姓王" in standing(await ask(stage))
    async with stage.app.db.transaction() as tx:
        [[revision]] = await stage.rows("SELECT max(id) FROM revisions")
        assert await undo_revision(tx, revision, by="10002", at=stage.now)
    assert "改姓王" not in whole(await ask(stage))


async def test_a_retraction_waits_like_any_change(stage: Stage):
    told = await remember(stage, OF_FISH, 1, document="profile", text="爱爬山")
    await ask(stage)
    [number] = told.numbers
    await change(stage, OF_FISH, lambda writer: writer.end(number, "superseded", "不爱了"))
    assert "爱爬山" in tail(await ask(stage))
    await stage.advance(31 * MINUTE)
    assert "爱爬山" not in whole(await ask(stage))


async def test_marking_a_scope_stale_renews_it_in_every_chat_that_shows_it(stage: Stage):
    await know(stage, OF_FISH, "爱爬山")
    await ask(stage)
    await ask(stage, group=None)
    async with stage.app.db.transaction() as tx:
        shown = await mark_stale(tx, OF_FISH.scope)
    assert shown == Shown(
        frozenset({stage.group, FISH_IN_PRIVATE.origin}), frozenset({OF_FISH.scope})
    )
    texts = await stage.rows("SELECT text FROM snapshots")
    assert texts == [("",), ("",)]
    assert "爱爬山" in tail(await ask(stage))
    assert "爱爬山" in standing(await ask(stage, group=None))


# Reach


async def test_switching_other_groups_off_and_on_holds_from_the_next_turn_on(stage: Stage):
    await know(stage, FISH_ELSEWHERE, "爱钓鱼")
    await know(stage, OF_FISH, "爱爬山")
    shown = []
    for switch in (None, False, True):
        if switch is not None:
            async with stage.app.db.transaction() as tx:
                await set_crosses_groups(tx, Member(str(BOT), str(FISH)), switch)
        shown.append("爱钓鱼" in tail(await ask(stage)))
    await stage.set(memoryMemberCrossGroup=False)
    shown.append("爱钓鱼" in tail(await ask(stage)))
    assert shown == [True, False, True, False]


async def test_who_shuts_other_groups_out_while_the_model_thinks_is_answered_without_them(
    stage: Stage,
):
    await know(stage, FISH_ELSEWHERE, "爱钓鱼")
    stage.model.hold()
    stage.say(GROUP, FISH, AT_BOT, " 说说看")
    await stage.advance(TURN_SECONDS)
    assert "爱钓鱼" in tail(stage.model.requests[0])
    stage.whisper(FISH, "/跨群 关")
    await stage.advance(TURN_SECONDS)
    stage.model.release()
    await stage.advance(TURN_SECONDS)
    assert "爱钓鱼" not in whole(stage.model.requests[-1])
    assert len(stage.model.requests) == 2
    assert stage.texts(stage.group) == ["好的"]


async def test_the_first_thing_learned_in_another_group_waits_like_any_change(stage: Stage):
    await know(stage, OF_FISH, "爱爬山")
    await ask(stage)
    await know(stage, FISH_ELSEWHERE, "爱钓鱼")
    assert "爱钓鱼" not in tail(await ask(stage))
    await stage.advance(31 * MINUTE)
    assert "爱钓鱼" in tail(await ask(stage))


# Failure


def broken_prompts(root: Path, without: Iterable[str]) -> Prompts:
    """The prompts, some of which cannot be rendered."""
    folder = root / "prompts"
    folder.mkdir()
    for file in PROMPTS_FOLDER.glob("*.j2"):
        text = "{{ nobody_gives_this }}" if file.stem in without else file.read_text("utf-8")
        (folder / file.name).write_text(text, "utf-8")
    return Prompts(folder)


async def test_if_a_snapshot_cannot_be_made_the_last_valid_one_is_shown(
    stage: Stage, tmp_path: Path
):
    await know(stage, OF_GROUP, "每周三例会", "memory")
    await ask(stage)
    await know(stage, OF_GROUP, "周日爬山", "memory")
    await stage.advance(31 * MINUTE)
    broken = replace(stage.app, prompts=broken_prompts(tmp_path, {"snapshot_group"}))
    found = await inject(broken, await scene_of(stage))
    assert "每周三例会" in found.standing
    assert "周日爬山" not in found.standing
    assert "周日爬山" in (await inject(stage.app, await scene_of(stage))).standing


async def test_if_a_snapshot_cannot_be_made_what_is_forgotten_is_not_shown(
    stage: Stage, tmp_path: Path
):
    row = await know(stage, OF_GROUP, "秘密基地在河边", "memory")
    await ask(stage)
    await recall_rows(stage, row)
    broken = replace(stage.app, prompts=broken_prompts(tmp_path, {"snapshot_group"}))
    assert (await inject(broken, await scene_of(stage))).standing == ""
