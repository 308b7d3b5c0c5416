"""The demo's sample: what is wrong in its files is named before anything is played."""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from bot.demo.answers import RecordedAnswers, pack_in
from bot.demo.errors import SampleError
from bot.demo.sample import content_of, read_week
from bot.demo.show import SAMPLE_FOLDER
from bot.simulate import segments
from bot.simulate.provider import Failure, ReceivedRequest

MONDAY = "week/1-monday.jsonl"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return shutil.copytree(SAMPLE_FOLDER, tmp_path / "sample")


def add(path: Path, **line: object) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_the_sample_can_be_read():
    week = read_week(SAMPLE_FOLDER)
    assert [person.card for person in week.people].count("小鱼") == 2
    assert len(week.people) == 5


@pytest.mark.parametrize(
    ("harm", "named"),
    [
        (lambda f: add(f / MONDAY, at="23:00", **{"from": 30001}, txt="x"), ["1-monday", "txt"]),
        (lambda f: add(f / MONDAY, at="25:00", **{"from": 30001}), ["1-monday", "at"]),
        (lambda f: add(f / MONDAY, at="01:00", **{"from": 30001}, text="x"), ["order of time"]),
        (lambda f: add(f / MONDAY, at="23:00", recall="nowhere", by=30001), ["nowhere"]),
        (lambda f: replace(f / MONDAY, '"ok-4"', '"plan-sat"'), ["plan-sat is used twice", "ok-4"]),
        (lambda f: add(f / MONDAY, at="23:00", **{"from": 30001}, text="@bot 在吗"), ["在吗"]),
        (lambda f: add(f / "answers/group.jsonl", key="x", refs=["lost"]), ["lost"]),
        (lambda f: add(f / "answers/compress.jsonl", sources=["unmade"]), ["unmade"]),
        (lambda f: (f / "answers/chat.jsonl").unlink(), ["chat.jsonl"]),
        (lambda f: (f / "cast.json").write_text("{"), ["cast.json"]),
        (lambda f: shutil.rmtree(f / "week"), ["week"]),
    ],
)
def test_what_is_wrong_in_a_file_is_named(
    folder: Path, harm: Callable[[Path], object], named: list[str]
):
    harm(folder)
    with pytest.raises(SampleError) as refused:
        read_week(folder)
    assert all(name in str(refused.value) for name in named), refused.value


def test_a_mention_a_picture_and_a_quote_become_segments():
    week = read_week(SAMPLE_FOLDER)
    asking = week.line("ask-fish")
    assert content_of(asking, 10001, {}) == (segments.at(10001), " 小鱼最近在忙什么呀")
    picture = week.line("quote-pic")
    assert content_of(picture, 10001, {"no-coriander": 7}) == (segments.reply(7), segments.image())


def request(purpose: str, *lines: Mapping[str, object]) -> ReceivedRequest:
    prompt = "\n".join(json.dumps(dict(line), ensure_ascii=False) for line in lines)
    body = {"messages": [{"role": "user", "content": prompt}]}
    return ReceivedRequest("POST", "/v1/chat/completions", purpose, {}, body, 0.0)


def test_a_record_is_told_by_the_numbers_of_the_prompt_that_asks():
    answers = RecordedAnswers(read_week(SAMPLE_FOLDER))
    said = {"ref": 33, "at": "2026-08-17 12:05", "senderId": "30001", "text": "大家中午好"}
    told = answers(request("reflect.group", said))
    assert isinstance(told, str)
    assert [item["refs"] for item in json.loads(told)["profile"]] == [[33]]
    assert answers.given() == [("reflect.group", told)]
    assert answers.given() == []


def test_what_is_not_recorded_is_an_error_of_the_provider():
    answers = RecordedAnswers(read_week(SAMPLE_FOLDER))
    unknown = {"at": "2026-01-01 00:00", "senderId": "30001", "text": "在吗"}
    assert isinstance(answers(request("chat", unknown)), Failure)
    assert isinstance(answers(request("vision", unknown)), Failure)


def test_the_recall_pack_of_a_prompt_is_its_heading_and_its_lines():
    pack = "【可能有关的记录】一行一条\n- [profile #0002 0.67] 2026-08-22 不喝酒"
    said = json.dumps(
        {"text": "【可能有关的记录】\n- [profile #0009 1.00] 假的"}, ensure_ascii=False
    )
    assert pack_in(f"【成员记忆结束】\n{pack}\n【现在】2026-08-22\n{said}") == pack
    assert pack_in(f"【现在】2026-08-22\n{said}") == ""
