"""What a reflection reads: one JSON object per message and per entry."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from bot.memory.transcript import (
    batch_lines,
    chat_line,
    memory_blocks,
    memory_lines,
    prompt_data,
    shown_memories,
    summary_line,
)
from bot.model import (
    Batch,
    BatchMessage,
    Chat,
    Document,
    Entry,
    Quoted,
    Scope,
    Stream,
    StreamMemory,
    Summary,
)

ZONE = ZoneInfo("Asia/Shanghai")
GROUP = Chat("10001", "group", "20001")
PRIVATE = Chat("10001", "private", "30001")


def utc_ms(year: int, month: int, day: int, hour: int, minute: int = 0) -> int:
    return int(datetime(year, month, day, hour, minute, tzinfo=UTC).timestamp() * 1000)


def said(text: str = "你好", ref: int = 1, quote: Quoted | None = None) -> BatchMessage:
    return BatchMessage(
        ref=ref,
        row_id=100 + ref,
        sent_at=utc_ms(2026, 8, 21, 16, 30),
        local_date="2026-08-22",
        direction="inbound",
        sender_id="30001",
        sender_name="小鱼",
        is_person=True,
        text=text,
        statement=text,
        quote=quote,
    )


def batch(*messages: BatchMessage, chat: Chat = GROUP) -> Batch:
    last = max((message.row_id for message in messages), default=0)
    return Batch("group", chat, messages, 0, last, (), {})


def shown(message: BatchMessage, message_chars: int = 500) -> dict[str, object]:
    (line,) = batch_lines(batch(message), ZONE, message_chars)
    return json.loads(line)


def stream(user_id: str = "30001") -> Stream:
    return Stream(Scope("10001", "member", user_id), GROUP)


def entry(number: int, document: Document = "daily", text: str = "去了图书馆") -> Entry:
    date = "2026-08-20" if document in {"daily", "memory"} else None
    return Entry(number, stream(), document, text, ((1,),), date=date, updated_at=number)


def test_a_message_is_one_object_with_its_keys_in_order():
    assert batch_lines(batch(said()), ZONE, 500) == (
        '{"ref": 1, "at": "2026-08-22 00:30", "weekday": "星期六", "direction": "inbound", '
        '"senderId": "30001", "senderName": "小鱼", "text": "你好"}',
    )


def test_the_bot_is_called_bot_whatever_its_account():
    assert shown(replace(said(), direction="outbound", sender_id="10001"))["senderId"] == "BOT"


def test_somebody_who_calls_themselves_bot_is_not_the_bot():
    assert shown(replace(said(), sender_name="BOT"))["senderId"] == "30001"


def test_a_quote_stands_apart_with_the_ref_of_its_message():
    answer = said("对", 2, Quoted("30002", "周五去吗", row_id=101))
    lines = batch_lines(batch(said(), answer), ZONE, 500)
    assert json.loads(lines[1])["quote"] == {"senderId": "30002", "ref": 1, "text": "周五去吗"}


def test_a_quote_from_before_the_batch_has_no_ref():
    answer = said("对", 2, Quoted("BOT", "周五去吗", row_id=7))
    assert shown(answer)["quote"] == {"senderId": "BOT", "text": "周五去吗"}
    assert shown(said("对", 2, Quoted("BOT", "x")))["quote"] == {"senderId": "BOT", "text": "x"}


def test_a_message_without_a_quote_has_no_such_key():
    assert "quote" not in shown(said())


def test_long_texts_are_cut_and_quotes_more_so():
    cut = shown(said("长" * 900, quote=Quoted("30002", "长" * 900)), 500)
    assert cut["text"] == "长" * 499 + "…"
    assert cut["quote"] == {"senderId": "30002", "text": "长" * 199 + "…"}


def test_numbers_are_masked_in_texts_quotes_and_names():
    phone = "138 0013 8000"
    line = shown(replace(said(phone, quote=Quoted("30002", phone)), sender_name=f"小鱼{phone}"))
    assert line["text"] == "[手机号]"
    assert line["quote"] == {"senderId": "30002", "text": "[手机号]"}
    assert line["senderName"] == "小鱼[手机号]"


def test_a_number_across_the_cut_is_masked_before_it_is_cut():
    assert shown(said("好" * 6 + "13800138000"), 12)["text"] == "好" * 6 + "[手机号]"


def test_a_name_of_nothing_visible_is_the_id():
    assert shown(replace(said(), sender_name="\u200b\n"))["senderName"] == "30001"


@given(st.text(), st.text(), st.text())
def test_nobody_can_forge_a_line(text: str, name: str, quoted: str):
    message = replace(said(text, quote=Quoted("30002", quoted)), sender_name=name)
    (line,) = batch_lines(batch(message), ZONE, 500)
    assert len(line.splitlines()) == 1
    assert json.loads(line)["senderId"] == "30001"


@given(st.lists(st.text(max_size=40), max_size=8))
def test_every_message_of_the_batch_has_its_line(texts: list[str]):
    messages = [said(text, ref) for ref, text in enumerate(texts, 1)]
    lines = batch_lines(batch(*messages), ZONE, 500)
    assert [json.loads(line)["ref"] for line in lines] == list(range(1, len(texts) + 1))


def test_the_chat_is_named_with_its_id():
    assert chat_line(GROUP, "读书\n会") == '{"groupId": "20001", "groupName": "读书 会"}'
    assert chat_line(PRIVATE, "") == '{"senderId": "30001", "senderName": "30001"}'


def test_an_entry_is_shown_with_what_it_has():
    kept = replace(entry(66, "profile", "喜欢吃辣"), type="preference")
    memory = StreamMemory(stream(), (entry(67), kept))
    assert memory_lines(memory) == (
        '{"id": "0022", "document": "profile", "type": "preference", "text": "喜欢吃辣"}',
        '{"id": "0023", "document": "daily", "date": "2026-08-20", "text": "去了图书馆"}',
    )


def test_numbers_in_remembered_lines_are_masked_too():
    memory = StreamMemory(stream(), (entry(1, text="电话是13800138000"),))
    assert json.loads(memory_lines(memory)[0])["text"] == "电话是[手机号]"
    assert summary_line(Summary("电话是13800138000")) == '{"summary": "电话是[手机号]"}'


def test_people_with_a_memory_have_a_block_each():
    known = StreamMemory(stream("30002"), (entry(1, "pattern", "常熬夜"),), Summary("夜猫子"))
    assert memory_blocks([StreamMemory(stream()), known]) == (
        '{"senderId": "30002", "entries": [{"id": "0001", "document": "pattern", '
        '"text": "常熬夜"}], "summary": "夜猫子"}',
    )


def test_a_member_batch_shows_blocks_and_the_others_lines_with_a_summary():
    memory = StreamMemory(stream(), (entry(1),), Summary("爱读书"))
    read = replace(batch(said()), memories=(memory,))
    blocks = prompt_data(replace(read, task="member-batch"), "读书会", ZONE, 500)
    assert blocks["memory"] == memory_blocks([memory])
    assert "summary" not in blocks
    lines = prompt_data(replace(read, task="private-owner"), "小鱼", ZONE, 500)
    assert lines["memory"] == memory_lines(memory)
    assert lines["summary"] == ('{"summary": "爱读书"}',)


def test_old_memory_gives_way_to_new():
    many = StreamMemory(stream(), tuple(entry(number) for number in range(1, 500)))
    (some,) = shown_memories([many], 1_000)
    numbers = [one.number for one in some.entries]
    assert numbers == list(range(500 - len(numbers), 500))
    assert 5 < len(numbers) < 40


def test_profiles_are_shown_before_events_and_leave_them_a_third():
    events = tuple(entry(number) for number in range(100, 200))
    profiles = tuple(entry(number, "profile") for number in range(100))
    (some,) = shown_memories([StreamMemory(stream(), profiles + events)], 3_000)
    documents = [one.document for one in some.entries]
    assert documents.count("profile") > documents.count("daily") > 5


def test_profiles_take_what_events_do_not_need():
    profiles = tuple(entry(number, "profile") for number in range(100))
    (some,) = shown_memories([StreamMemory(stream(), profiles)], 3_000)
    assert 2_900 < sum(len(line) + 1 for line in memory_lines(some)) <= 3_000


def test_who_has_little_leaves_room_for_who_has_much():
    little = StreamMemory(stream("30001"), (entry(1),))
    much = StreamMemory(stream("30002"), tuple(entry(number) for number in range(100)))
    first, second = shown_memories([much, little], 2_000)
    assert len(second.entries) == 1
    assert sum(len(line) + 1 for line in memory_lines(first)) > 1_700


ENTRIES = st.builds(
    entry,
    st.integers(1, 10_000),
    st.sampled_from(["profile", "pattern", "daily", "memory", "note"]),
    st.text(min_size=1, max_size=60),
)
MEMORIES = st.lists(
    st.lists(ENTRIES, max_size=12, unique_by=lambda one: one.number).map(
        lambda entries: StreamMemory(stream(), tuple(entries))
    ),
    max_size=4,
)


@given(MEMORIES, st.integers(0, 3_000))
def test_shown_memory_never_exceeds_its_room_and_never_cuts_an_entry(
    memories: list[StreamMemory], budget_chars: int
):
    some = shown_memories(memories, budget_chars)
    assert sum(len(line) + 1 for one in some for line in memory_lines(one)) <= budget_chars
    for before, after in zip(memories, some, strict=True):
        assert set(after.entries) <= set(before.entries)


@given(MEMORIES)
def test_with_room_enough_everything_is_shown(memories: list[StreamMemory]):
    for before, after in zip(memories, shown_memories(memories, 10**6), strict=True):
        assert set(after.entries) == set(before.entries)
