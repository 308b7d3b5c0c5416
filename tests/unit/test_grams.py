"""The tokens of messages: whatever stands in a text can be looked up, and each is one token."""

import sqlite3
from contextlib import closing

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bot.search.grams import (
    MAX_KEYWORD_GRAMS,
    MAX_WORD_CHARS,
    all_of,
    any_of,
    day_token,
    fold,
    keyword_tokens,
    message_tokens,
    sender_token,
    word_token,
)

INDEX = (
    "CREATE VIRTUAL TABLE i USING fts5 "
    "(tokens, content = '', detail = none, columnsize = 0, tokenize = 'porter ascii')"
)
VOCABULARY = "CREATE VIRTUAL TABLE v USING fts5vocab (i, 'row')"
PEOPLE_WRITE = st.text(
    st.sampled_from(
        "我们的生日花生项目猫。，！ \n\u3000\tＡＢ１２ｶﾞがコー한글éÀßſİςµ'\"*()-_:^{}~\\/abcXYZes09"
        "𠮷豈ﷺ😀👨\u200d👩\u200d👧🇨🇳\x00\x1c\u200b\u202e"
    ),
    max_size=40,
)


def _stored(*tokens: str) -> set[str]:
    """Return what becomes of tokens in the index."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(INDEX)
        connection.execute(VOCABULARY)
        connection.execute("INSERT INTO i (rowid, tokens) VALUES (1, ?)", (" ".join(tokens),))
        return {term for (term,) in connection.execute("SELECT term FROM v")}


def _finds(text: str, match: str, chat_id: int = 7) -> bool:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(INDEX)
        tokens = message_tokens(chat_id, 3, "2026-08-20", text)
        connection.execute("INSERT INTO i (rowid, tokens) VALUES (1, ?)", (tokens,))
        return bool(connection.execute("SELECT 1 FROM i WHERE i MATCH ?", (match,)).fetchall())


def test_a_message_is_its_pairs_its_characters_its_words_who_said_it_and_when():
    tokens = message_tokens(7, 3, "2026-08-20", "去GPT群")
    assert tokens.split() == [
        *("去gg7", "gpg7", "ptg7", "t群g7", "去g7", "gg7", "pg7", "tg7", "群g7"),
        *("w7wgpt", "m7m3", "d7d20260820", "d7d202608", "d7d2026"),
    ]


@given(PEOPLE_WRITE, st.data())
@example("ßtraße ﷺ", None)
def test_whatever_stands_in_a_text_stands_in_it_folded(text: str, data: st.DataObject | None):
    start = data.draw(st.integers(0, len(text))) if data else 0
    end = data.draw(st.integers(start, len(text))) if data else 3
    assert fold(text[start:end]) in fold(text)
    assert fold(text[start:end].upper()) in fold(text.upper())


@given(PEOPLE_WRITE, PEOPLE_WRITE)
def test_what_stands_in_a_text_but_for_case_stands_in_it_folded(text: str, part: str):
    for one in (part, text[1:4].swapcase(), text[2:3].lower(), text[:2].upper()):
        if one.casefold() in text.casefold():
            assert fold(one) in fold(text)


@given(PEOPLE_WRITE, st.data())
def test_a_keyword_has_only_tokens_that_every_text_has_in_which_it_stands(
    text: str, data: st.DataObject
):
    start = data.draw(st.integers(0, len(text)))
    part = fold(text[start : data.draw(st.integers(start, len(text)))])
    tokens = keyword_tokens(7, part)
    assert bool(tokens) == bool(part.strip())
    assert set(tokens) <= set(message_tokens(7, 3, "2026-08-20", text).split())
    if tokens:
        assert _finds(text, all_of(tokens))
        assert not _finds(text, all_of(tokens), chat_id=17)


@given(st.text())
def test_each_token_of_any_text_is_one_term_of_the_index(text: str):
    tokens = set(message_tokens(7, 3, "2026-08-20", text).split(" "))
    words = {token for token in tokens if token.startswith("w7w")}
    stored = _stored(*sorted(tokens))
    assert tokens - words <= stored
    assert len(stored) <= len(tokens)


@pytest.mark.parametrize(
    ("chat_id", "text", "other_id", "other_text"),
    [
        (1, "3a g1 23", 12, "3a g1 23"),
        (1, "w1 1w w12wa", 12, "a"),
        (2, "m12m1 d12d20260820", 12, ""),
    ],
)
def test_no_text_makes_a_token_of_another_chat(
    chat_id: int, text: str, other_id: int, other_text: str
):
    one = message_tokens(chat_id, 3, "2026-08-20", text).split()
    other = message_tokens(other_id, 1, "2026-08-20", other_text).split()
    assert not set(one) & set(other)


def test_words_are_found_in_all_forms_and_other_tokens_as_they_are():
    assert _finds("running late", all_of([word_token(7, "runs")]))
    assert not _finds("running late", all_of([word_token(7, "runner")]))
    assert not _finds("ab", all_of(keyword_tokens(7, "abs")))
    assert not _finds("a", all_of(keyword_tokens(7, "as")))


def test_who_said_it_and_when_are_looked_up_like_words():
    days = [day_token(7, day) for day in ("2026-08-20", "2026-08", "2026")]
    for token in (sender_token(7, 3), *days):
        assert _finds("", all_of([token]))
    for token in (sender_token(7, 33), day_token(7, "2026-08-2"), day_token(7, "202")):
        assert not _finds("", all_of([token]))


def test_of_a_long_keyword_the_beginning_and_the_end_are_looked_up():
    text = "".join(chr(0x4E00 + number) for number in range(5_000))
    tokens = keyword_tokens(7, text)
    assert len(tokens) == MAX_KEYWORD_GRAMS
    assert tokens[0] == "一丁g7"
    assert tokens[-1] == f"{text[-2:]}g7"


def test_a_run_of_letters_that_no_question_names_is_found_by_its_characters():
    text = "x" * MAX_WORD_CHARS + "yz"
    assert not [one for one in message_tokens(7, 3, "2026-08-20", text).split() if "w7w" in one]
    assert _finds(text, all_of(keyword_tokens(7, "xyz")))


def test_expressions_of_nothing_are_empty():
    assert all_of([]) == any_of([]) == ""
    assert any_of(["a", "b"]) == '("a" OR "b")'
