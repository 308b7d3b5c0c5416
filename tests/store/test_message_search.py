"""The search of messages: whatever stands in a text is found, in one chat only."""

import random
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.model import Chat, Message
from bot.search.grams import fold
from bot.store.database import Database, open_database
from bot.store.message_index import clear_message_index, index_step
from bot.store.message_search import (
    MAX_READ,
    Window,
    kept,
    keyword_hits,
    lexical_hits,
)
from bot.store.messages import Recall, recall_message, set_apart
from tests.store.rows import (
    ALICE,
    BOT,
    BRUNO,
    GROUP,
    MINUTE,
    NOON,
    OTHER_GROUP,
    PRIVATE,
    SECOND,
    carded,
    said,
    store,
)
from tests.unit.test_search_tokens import HOSTILE

DAY = 24 * 60 * MINUTE
EVERYTHING = Window()
UNKNOWN_CHAT = Chat(BOT, "group", "29999")


async def tell(db: Database, *texts: str, chat: Chat = GROUP, by: str = ALICE) -> list[int]:
    """Let somebody say some texts, a minute apart."""
    messages = [
        said(text, id=str(n), at=NOON + n * MINUTE, chat=chat, by=by)
        for n, text in enumerate(texts, start=1)
    ]
    return [receipt.row_id for receipt in await store(db, *messages)]


async def keyword(
    db: Database, *keywords: str, chat: Chat = GROUP, window: Window = EVERYTHING, limit: int = 32
) -> list[str]:
    found = await keyword_hits(db, chat, keywords, window, limit)
    return [stored.message.text for stored in found]


async def lexical(
    db: Database, question: str, chat: Chat = GROUP, window: Window = EVERYTHING, limit: int = 32
) -> list[int]:
    return [hit.row_id for hit in await lexical_hits(db, chat, question, window, limit)]


# --- keywords: everything that stands in a text is found ---------------------------------------

TALK = [
    "周末去湖边钓鱼吗",
    "我对花生过敏",
    "今天是小鱼的生日🎂",
    "项目什么时候上线",
    "GPT群里发了链接 https://example.com/a_b?c=1",
    'Running late, C++ and "quotes" 100% don\'t',
    "小 鱼 和  Big Bear",
    "👨‍👩‍👧 🇨🇳 😀",
    "ＡＢＣ１２３ ｶﾗｵｹ",
    "ça va? Straße İstanbul",
    "NOT AND OR NEAR(花生 生日)",
    "第一行\n第二行",
]


@pytest.fixture
async def talk(db: Database) -> Database:
    """A group in which something was said of every kind."""
    await tell(db, *TALK)
    await tell(db, *TALK, chat=OTHER_GROUP, by=BRUNO)
    return db


@pytest.mark.parametrize(
    ("part", "texts"),
    [
        ("鱼", ["小 鱼 和  Big Bear", "今天是小鱼的生日🎂", "周末去湖边钓鱼吗"]),
        ("生日", ["NOT AND OR NEAR(花生 生日)", "今天是小鱼的生日🎂"]),
        ("花生", ["NOT AND OR NEAR(花生 生日)", "我对花生过敏"]),
        ("湖边钓", ["周末去湖边钓鱼吗"]),
        ("gpt群", [TALK[4]]),
        ("PT群", [TALK[4]]),
        ("t", [TALK[10], TALK[9], TALK[5], TALK[4]]),
        ("unnin", [TALK[5]]),
        ("example.com/a_", [TALK[4]]),
        ("C++", [TALK[5]]),
        ('"quotes" 1', [TALK[5]]),
        ("don't", [TALK[5]]),
        ("%", [TALK[5]]),
        ("😀", [TALK[7]]),
        ("🎂", [TALK[2]]),
        ("小 鱼", [TALK[6]]),
        ("  Big", [TALK[6]]),
        ("123", [TALK[8]]),
        ("カラオケ", [TALK[8]]),
        ("strasse", [TALK[9]]),
        ("行\n第", [TALK[11]]),
        ("NOT AND", [TALK[10]]),
        ("NEAR(花生", [TALK[10]]),
        ("生花", []),
        ("钓湖", []),
        ("小鱼 ", []),
        (" ", []),
        ("", []),
    ],
)
async def test_any_part_of_a_text_is_found_newest_first(
    talk: Database, part: str, texts: Sequence[str]
):
    assert await keyword(talk, part) == list(texts)


async def test_all_of_several_keywords_are_wanted(talk: Database):
    assert await keyword(talk, "生日", "花生") == [TALK[10]]
    assert await keyword(talk, "生日", "", " ", "小鱼") == [TALK[2]]
    assert await keyword(talk, "生日", "过敏") == []
    assert await keyword(talk) == []


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
async def test_no_keyword_and_no_question_breaks_a_search(talk: Database, text: str):
    assert set(await keyword(talk, text)) <= {one for one in TALK if fold(text) in fold(one)}
    assert len(await lexical(talk, text)) <= len(TALK)


@pytest.fixture(scope="module")
async def mixed(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Database]:
    """A group with 300 texts of few characters, so that parts of one stand in others."""
    path = tmp_path_factory.mktemp("mixed") / "qunyi.db"
    async with open_database(path, now=NOON) as db:
        await tell(db, *_texts())
        yield db


def _texts() -> list[str]:
    dice = random.Random(5)
    alphabet = "的了花生日项目群聊鱼GPTgpt09 \n。,!'\"*-_😀🎂éßＡｶ\u200b"
    return ["".join(dice.choices(alphabet, k=dice.randint(1, 14))) for _ in range(300)]


@given(st.data())
@settings(max_examples=150)
async def test_whatever_looking_at_every_text_finds_is_found(mixed: Database, data: st.DataObject):
    texts = _texts()
    source = data.draw(st.sampled_from(texts))
    start = data.draw(st.integers(0, len(source) - 1))
    part = source[start : data.draw(st.integers(start + 1, len(source)))]
    part = data.draw(st.sampled_from([part, part.swapcase(), part.upper(), part.lower()]))
    brute = {text for text in texts if part.casefold() in text.casefold()}
    if part.replace("\u200b", "").strip():
        assert brute <= set(await keyword(mixed, part, limit=300))


@given(st.text('花生日项目ab "*', min_size=1, max_size=4))
async def test_what_is_found_has_the_keyword(mixed: Database, part: str):
    for text in await keyword(mixed, part, limit=300):
        assert fold(part) in fold(text)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12), st.data())
@settings(max_examples=30)
async def test_any_text_at_all_is_found_by_any_part_of_it(text: str, data: st.DataObject):
    start = data.draw(st.integers(0, len(text) - 1))
    part = text[start : data.draw(st.integers(start + 1, len(text)))]
    with TemporaryDirectory() as folder:
        async with open_database(Path(folder) / "qunyi.db", now=NOON) as db:
            await tell(db, text)
            assert await keyword(db, part) == ([text] if fold(part).strip() else [])


async def test_only_so_many_are_found_and_they_are_the_newest_by_time(db: Database):
    late = said("花生 旧", id="h", at=NOON - DAY)
    await store(db, *(said(f"花生{n}", id=str(n), at=NOON + n * SECOND) for n in range(9)), late)
    assert await keyword(db, "花生", limit=3) == ["花生8", "花生7", "花生6"]
    assert (await keyword(db, "花生"))[-1] == "花生 旧"


async def test_that_too_many_had_to_be_read_is_told(db: Database):
    await tell(db, "日生日")
    await _repeat(db, "花生生日生花", MAX_READ + 2_000)
    part = await kept(db, GROUP, ["日生日"], EVERYTHING, 5)
    assert (part.messages, part.is_whole) == ([], False)
    recent = await kept(db, GROUP, ["生生日"], EVERYTHING, 5)
    assert (len(recent.messages), recent.is_whole) == (5, True)


async def _repeat(db: Database, text: str, times: int) -> None:
    async with db.transaction() as tx:
        await tx.execute_fetchall(
            "INSERT INTO messages (chat_id, member_id, platform_id, direction, kind, sent_at,"
            " received_at, local_date, sender_name, segments, text)"
            " SELECT chat_id, member_id, 'r' || value, direction, kind, sent_at + value,"
            " received_at, local_date, '', '[]', ? FROM messages, (WITH RECURSIVE n (value) AS"
            " (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < ?) SELECT value FROM n)"
            " WHERE messages.id = 1",
            (text, times),
        )
    await store(db, said("还在说", id="last", at=NOON + DAY))


async def test_a_search_tells_that_older_messages_are_not_indexed_yet(db: Database):
    await tell(db, "花生 一", "花生 二")
    await clear_message_index(db)
    await index_step(db, 1)
    part = await kept(db, GROUP, ["花生"], EVERYTHING, 5)
    assert [one.message.text for one in part.messages] == ["花生 二"]
    assert not part.is_whole
    await index_step(db, 1)
    await index_step(db, 1)
    whole = await kept(db, GROUP, ["花生"], EVERYTHING, 5)
    assert (len(whole.messages), whole.is_whole) == (2, True)


# --- isolation and what is gone ---------------------------------------------------------------


async def test_nothing_of_another_chat_is_found(db: Database):
    await tell(db, "花生 在这里")
    await tell(db, "花生 在那里 g1 w1w m1m1 花生g1", chat=OTHER_GROUP)
    await tell(db, "花生 私下", chat=PRIVATE)
    for chat, text in ((GROUP, "花生 在这里"), (PRIVATE, "花生 私下"), (UNKNOWN_CHAT, "")):
        found = [text] if text else []
        assert await keyword(db, "花生", chat=chat) == found
        assert len(await lexical(db, "花生", chat=chat)) == len(found)


async def test_not_even_a_wrong_index_shows_what_another_chat_said(db: Database):
    await tell(db, "在这里")
    [there] = await tell(db, "花生 在那里", chat=OTHER_GROUP)
    async with db.transaction() as tx:
        await tx.execute_fetchall(
            "INSERT INTO message_index (rowid, tokens) VALUES (?, '花生g1')", [there]
        )
    assert await keyword(db, "花生") == []
    assert await lexical(db, "花生") == []


async def test_scores_do_not_depend_on_other_chats(db: Database):
    await tell(db, "周末去爬山", "周末去湖边钓鱼", "爬山")
    before = await lexical_hits(db, GROUP, "周末爬山", EVERYTHING, 9)
    await tell(db, *(f"第{n}次爬山" for n in range(60)), chat=OTHER_GROUP)
    assert await lexical_hits(db, GROUP, "周末爬山", EVERYTHING, 9) == before


async def test_what_is_recalled_or_forgotten_is_not_found(db: Database):
    rows = await tell(db, "花生 一", "花生 二", "花生 三")
    async with db.transaction() as tx:
        await recall_message(tx, Recall(GROUP, "1", ALICE, NOON + DAY))
        await set_apart(tx, rows[1], NOON + DAY)
    assert await keyword(db, "花生") == ["花生 三"]
    assert await lexical(db, "花生") == [rows[2]]


# --- windows ----------------------------------------------------------------------------------


@pytest.fixture
async def year(db: Database) -> Database:
    """Somebody spoke of peanuts every day of a year, another one every second day."""
    alice = [_daily(n, ALICE) for n in range(365)]
    bruno = [_daily(n, BRUNO) for n in range(0, 365, 2)]
    await store(db, *alice, *bruno)
    return db


def _daily(number: int, by: str) -> Message:
    return said(f"花生{number} {by}", id=f"{by}{number}", at=NOON + number * DAY, by=by)


def _days(texts: Sequence[str]) -> list[int]:
    return [int(text.split()[0][2:]) for text in texts]


@pytest.mark.parametrize(
    ("window", "days"),
    [
        (Window(since=NOON + 363 * DAY), [364, 363]),
        (Window(since=NOON + 363 * DAY + 1), [364]),
        (Window(until=NOON + 2 * DAY), [1, 0]),
        (Window(until=NOON + 2 * DAY + 1), [2, 1, 0]),
        (Window(since=NOON + 100 * DAY, until=NOON + 103 * DAY), [102, 101, 100]),
        (Window(since=NOON + 5 * DAY, until=NOON + 5 * DAY), []),
        (Window(since=NOON + 50 * DAY, until=NOON + 20 * DAY), []),
        (Window(since=NOON + 9_999 * DAY), []),
        (Window(since=-(10**15), until=10**15), list(range(364, -1, -1))),
        (Window(since=0, until=NOON + 40 * DAY), list(range(39, -1, -1))),
        (Window(not_before=NOON + 363 * DAY), [364]),
        (Window(since=NOON + 362 * DAY, not_before=NOON + 363 * DAY), [364, 363, 362]),
    ],
)
async def test_only_what_was_said_in_a_stretch_of_time_is_found(
    year: Database, window: Window, days: list[int]
):
    window = Window(ALICE, window.since, window.until, window.hidden, window.not_before)
    assert _days(await keyword(year, "花生", window=window, limit=400)) == days
    assert len(await lexical(year, "花生", window=window, limit=400)) == min(300, len(days))


async def test_only_what_somebody_said_is_found(year: Database):
    window = Window(sender_id=BRUNO)
    assert _days(await keyword(year, "花生", window=window, limit=3)) == [364, 362, 360]
    assert len(await lexical(year, "花生", window=window, limit=3)) == 3
    nobody = Window(sender_id="39999")
    assert await keyword(year, "花生", window=nobody) == []
    assert await lexical(year, "花生", window=nobody) == []


async def test_what_is_in_the_prompt_already_is_not_found(db: Database):
    rows = await tell(db, "花生 一", "花生 二", "花生 三")
    window = Window(hidden=frozenset(rows[1:]))
    assert await keyword(db, "花生", window=window) == ["花生 一"]
    assert await lexical(db, "花生", window=window) == [rows[0]]


# --- questions --------------------------------------------------------------------------------


async def test_what_has_more_of_a_question_and_the_rarer_words_comes_first(db: Database):
    rows = await tell(db, "周末去爬山", "周末去湖边钓鱼", "周末加班", "周末睡觉", "买了湖边的房子")
    assert (await lexical(db, "周末谁去钓鱼？"))[0] == rows[1]
    assert (await lexical(db, "湖边的周末"))[0] == rows[1]
    assert rows[4] in (await lexical(db, "湖边的周末"))[:2]


async def test_of_equals_the_shorter_then_the_newer_comes_first(db: Database):
    rows = await tell(db, "钓鱼", "钓鱼，还有别的很多很多事情要做", "钓鱼")
    assert await lexical(db, "钓鱼") == [rows[2], rows[0], rows[1]]


async def test_words_in_other_forms_are_found(db: Database):
    rows = await tell(db, "everybody likes running", "nobody walks")
    assert await lexical(db, "who runs?") == [rows[0]]


async def test_a_longer_word_is_found_as_it_is_only(db: Database):
    rows = await tell(db, "中华人民共和国成立", "共和国人民和中华")
    assert await lexical(db, "中华人民共和国") == rows[:2]
    assert (await lexical_hits(db, GROUP, "中华人民共和国", EVERYTHING, 9))[0].row_id == rows[0]


async def test_whom_a_question_names_counts_by_all_their_names(db: Database):
    messages = [
        carded("小鱼", by=ALICE, id="1", at=NOON),
        carded("鲸鱼", by=ALICE, id="2", at=NOON + MINUTE),
        carded("大熊", by=BRUNO, id="3", at=NOON + 2 * MINUTE),
        said("项目明天上线", id="4", at=NOON + 3 * MINUTE, by=ALICE),
        said("项目明天上线", id="5", at=NOON + 4 * MINUTE, by=BRUNO),
    ]
    rows = [receipt.row_id for receipt in await store(db, *messages)]
    assert await lexical(db, "小鱼说项目怎么样") == [rows[3], rows[4]]
    assert await lexical(db, "鲸鱼说项目怎么样") == [rows[3], rows[4]]
    assert await lexical(db, "大熊说项目怎么样") == [rows[4], rows[3]]


async def test_names_with_spaces_and_signs_are_names(db: Database):
    names = ("Big Bear", "小 鱼", 'OR "*"', "🐱 猫")
    messages = [carded(name, by=f"3000{n}", id=f"c{n}") for n, name in enumerate(names)]
    messages += [
        said("项目明天上线", id=f"s{n}", at=NOON + n * MINUTE, by=f"3000{n}") for n in range(4)
    ]
    rows = [receipt.row_id for receipt in await store(db, *messages)][4:]
    for name, row in zip(names, rows, strict=True):
        assert (await lexical(db, f"{name} 说项目怎么样"))[0] == row


async def test_a_question_that_asks_for_nothing_but_a_person_finds_what_they_said(db: Database):
    messages = [
        carded("小鱼", by=ALICE, id="1", at=NOON),
        carded("大熊", by=BRUNO, id="2", at=NOON + MINUTE),
        carded("小鱼", by=ALICE, id="3", at=NOON + 2 * MINUTE),
    ]
    rows = [receipt.row_id for receipt in await store(db, *messages)]
    assert await lexical(db, "小鱼说了什么") == [rows[2], rows[0]]


async def test_a_day_that_a_question_names_counts(year: Database):
    [best] = await lexical_hits(year, GROUP, "2026年10月1日的花生", Window(sender_id=ALICE), 1)
    [found] = await keyword_hits(year, GROUP, ["花生10 "], Window(sender_id=ALICE), 1)
    assert found.message.local_date == "2026-10-01"
    assert best.row_id == found.row_id
    assert len(await lexical(year, "10月1日")) == 2
    assert len(await lexical(year, "10月", limit=99)) == 31 + 16
