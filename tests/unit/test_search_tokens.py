"""The words of texts and questions: what is indexed can be found again, and nothing ever raises."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.search.tokens import (
    MAX_PHRASES,
    bigrams,
    holders,
    in_pairs,
    index_pairs,
    index_words,
    is_exact,
    question,
    question_phrases,
)

HOSTILE = [
    "",
    " \n\t",
    '"',
    '""',
    "'; DROP TABLE entries; --",
    "NOT",
    "AND OR NOT",
    "NEAR(猫 狗, 5)",
    "stream : s1",
    "stream:s1 OR words:猫",
    "{stream words} : 猫",
    "- stream : 猫",
    "猫*",
    "^猫",
    "猫 + 狗",
    "(((((",
    "猫)",
    "a AND (b",
    "\x00",
    "猫\x00狗",
    "😀",
    "👨‍👩‍👧 🇨🇳",
    "\ud800",
    "猫\ud83d",
    "\u202e猫\u2028狗\u200b",
    "ﷺ㍿½①",
    "⺀ ᦰ ᳲ",
    "猫" * 10_000,
    "长长的问题" * 2_000,
    "word " * 5_000,
    "x" * 100_000,
]
"""What people may write to break or bend a query."""

INDEX = "CREATE VIRTUAL TABLE i USING fts5 (words, tokenize = 'porter unicode61')"
MIXED = st.text(
    st.sampled_from(
        "我们的群聊猫狗一二三，。！ \n。ＡＢ１２ｶﾞがコーヒー한글éÀß😀'\"*()-_abcXYZ09𠮷豈"
    )
)


@pytest.fixture
def index() -> Iterator[sqlite3.Connection]:
    """An index of nothing."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(INDEX)
        yield connection


def _finds(text: str, match: str) -> bool:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(INDEX)
        connection.execute("INSERT INTO i VALUES (?)", (index_words(text),))
        return bool(connection.execute("SELECT 1 FROM i WHERE words MATCH ?", (match,)).fetchall())


# --- the words of a text ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("我喜欢吃辣", "我 喜 欢 吃 辣"),
        ("明天7点，去KTV！", "明 天 7 点 去 ktv"),
        ("ＡＢＣ１２３", "abc123"),
        ("ｶﾗｵｹ", "カ ラ オ ケ"),
        ("コーヒー", "コ ー ヒ ー"),
        ("喜\u200b欢 he\u200bllo", "喜 欢 hello"),
        ("don't_stop", "don t stop"),
        ("😀🇨🇳…", ""),
        ("", ""),
    ],
)
def test_each_cjk_character_is_a_word_and_each_run_of_letters_is_one(text: str, words: str):
    assert index_words(text) == words


@given(st.text())
def test_the_words_of_words_are_the_same_words(text: str):
    assert index_words(index_words(text)) == index_words(text)


@given(st.text(), st.text())
def test_the_words_of_a_text_do_not_depend_on_what_stands_beside_it(before: str, after: str):
    assert index_words(f"{before} {after}").split() == [
        *index_words(before).split(),
        *index_words(after).split(),
    ]


# --- questions --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "phrases"),
    [
        ("猫？", ['"猫"']),
        ("火锅店", ['"火 锅"', '"锅 店"']),
        ("我喜欢吃什么", ['"我 喜"', '"喜 欢"', '"欢 吃"', '"吃 什"']),
        ("what is the PYTHON version", ['"python"', '"version"']),
        ("周五 KTV", ['"周 五"', '"ktv"']),
        ("春游、春游！", ['"春 游"']),
        ("在吗", []),
        ("你是谁", []),
        ("😀？", []),
        ("", []),
    ],
)
def test_a_question_looks_up_what_tells_something(text: str, phrases: list[str]):
    assert list(question_phrases(text)) == phrases
    assert question(text) == " OR ".join(phrases)


def test_a_question_finds_words_in_other_forms():
    assert _finds("everybody likes running", question("who likes to run?"))


def test_a_long_question_is_its_beginning_and_its_end():
    text = "".join(chr(0x4E00 + number) for number in range(5_000))
    phrases = question_phrases(text)
    assert len(phrases) == MAX_PHRASES
    assert phrases[0] == '"一 丁"'
    assert phrases[-1] == f'"{text[-2]} {text[-1]}"'


def test_who_has_a_dictionary_says_what_is_looked_up_together():
    assert question_phrases("北京大学", lambda run: [run]) == ('"北 京 大 学"',)
    assert list(bigrams("北京大学")) == ["北京", "京大", "大学"]


def test_a_dictionary_cannot_put_anything_but_words_into_a_query():
    assert question_phrases("北京", lambda run: ['"', "", '北" OR "京', " "]) == ('"北 or 京"',)


# --- pairs ------------------------------------------------------------------------------------


def test_pairs_are_neighbours_of_which_both_are_cjk():
    assert index_pairs("去湖边KTV，唱歌") == "去湖 湖边 唱歌"
    assert index_pairs("猫") == index_pairs("two words") == ""
    assert index_pairs("去湖边", "s7") == "s7去湖 s7湖边"


def test_a_phrase_of_cjk_characters_is_looked_up_in_pairs():
    assert in_pairs('"湖 边 钓"') == '"湖边 边钓"'
    assert in_pairs('"湖 边 钓"', "s7") == '"s7湖边 s7边钓"'
    assert [in_pairs(phrase) for phrase in ('"猫"', '"ktv"', '"唱 ktv"')] == ["", "", ""]


@given(MIXED)
def test_whatever_a_question_looks_up_in_pairs_is_found_where_it_stands(text: str):
    for phrase in question_phrases(text):
        if pairs := in_pairs(phrase):
            assert pairs.strip('"') in index_pairs(text)
            assert holders(phrase, {1: f" {index_words(text)} ", 2: " 别 的 "}) == [1]


def test_only_cjk_phrases_have_one_form():
    assert [is_exact(phrase) for phrase in ('"猫"', '"湖 边"', '"run"')] == [True, True, False]


# --- hostile ----------------------------------------------------------------------------------


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_no_text_breaks_a_query(index: sqlite3.Connection, text: str):
    index.execute("INSERT INTO i VALUES (?)", (index_words(text),))
    for match in question_phrases(text):
        if match:
            index.execute("SELECT rowid FROM i WHERE words MATCH ?", (match,)).fetchall()


@given(st.text())
def test_a_query_is_made_of_quoted_words_only(text: str):
    for match in question_phrases(text):
        assert re.fullmatch(r'|"[^\s"]+( [^\s"]+)*"', match)
