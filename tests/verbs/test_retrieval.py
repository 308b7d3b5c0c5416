"""Retrieval: with the embedder that comes along, questions about two invented chats find their
answers. What is asked for here is less than what is measured, so that another processor passes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench.retrieval import (
    OWN_SET,
    LabelledChats,
    Marks,
    Question,
    answers,
    answers_by_words,
    marks,
    mean_marks,
    read_chats,
    take_in,
)
from bot.app import App, open_app
from bot.config import Config
from bot.embed import embed_all
from bot.simulate import VirtualClock

Search = Callable[[App, Question, dict[str, str]], Awaitable[list[str]]]


@dataclass(frozen=True)
class Club:
    """The chats of the set, taken in and embedded."""

    app: App
    chats: LabelledChats
    ids: dict[str, str]

    async def marks_by(self, search: Search) -> Marks:
        """Return how well a search does over all questions that have an answer."""
        asked = [question for question in self.chats.questions if question.evidence]
        found = [await search(self.app, question, self.ids) for question in asked]
        pairs = zip(found, asked, strict=True)
        return mean_marks(marks(rows, question.evidence) for rows, question in pairs)

    @property
    def unanswerable(self) -> list[Question]:
        return [question for question in self.chats.questions if not question.evidence]


@pytest.fixture(scope="module")
async def club(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Club]:
    chats = read_chats(OWN_SET)
    root: Path = tmp_path_factory.mktemp("club")
    clock = VirtualClock(1_772_000_000_000)
    config = Config(root=root, sqlite_synchronous="NORMAL", database_url="sqlite:///club.db")
    async with open_app(config, clock) as app:
        ids = await take_in(app, clock, chats)
        embedding = asyncio.create_task(embed_all(app))
        while not embedding.done():
            await asyncio.wait([embedding], timeout=0.002)
            await clock.advance(1)
        assert embedding.result() == len(ids)
        await clock.advance((chats.questions[0].asked_at - clock.now()) / 1000)
        yield Club(app, chats, ids)


async def test_answers_are_among_the_first_ten(club: Club):
    found = await club.marks_by(answers)
    assert found.recall >= 0.85
    assert found.reciprocal >= 0.5


async def test_meaning_finds_what_words_do_not(club: Club):
    both, words = await club.marks_by(answers), await club.marks_by(answers_by_words)
    assert both.recall >= words.recall + 0.2
    assert both.reciprocal >= words.reciprocal + 0.1


async def test_most_questions_that_have_no_answer_find_nothing(club: Club):
    found = [len(await answers(club.app, one, club.ids)) for one in club.unanswerable]
    assert found.count(0) >= len(found) - 1
