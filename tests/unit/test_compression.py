"""Compression: which daily entries are to become memory, and which answers may replace them."""

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.memory.compression import (
    BACKGROUND_CHARS,
    CHUNK,
    MAX_SOURCES,
    MEMORY_CHARS,
    Compressed,
    CompressionRefused,
    Plan,
    alone,
    check,
    compression_schema,
    continued,
    plan,
    prompt_lines,
    still_stands,
)
from bot.model import Entry
from tests.unit.dailies import answer, dailies, day, entry, good_items, item, merged

Items = list[dict[str, Any]]


def planned(entries: list[Entry], at: int = 100, keep_recent: int = 50) -> Plan:
    found = plan(entries, at, keep_recent)
    assert found
    return found


def numbers(entries: tuple[Entry, ...]) -> list[int]:
    return [each.number for each in entries]


def all_planned(entries: list[Entry], at: int, keep_recent: int, chunk: int) -> list[list[int]]:
    """Return what each call of a compression reads."""
    calls, part = [], plan(entries, at, keep_recent, chunk)
    while part:
        calls.append(numbers(part.daily))
        part = continued(entries, part.rest, chunk=chunk)
    return calls


def reason_of(part: Plan, text: str) -> str:
    with pytest.raises(CompressionRefused) as refusal:
        check(part, text)
    return refusal.value.reason


# What is compressed


def test_one_entry_less_than_the_number_is_nothing_to_compress():
    assert plan(dailies(99), 100, 50) is None


def test_at_the_number_all_but_the_newest_are_compressed():
    part = planned(dailies(100))
    assert numbers(part.daily) == list(range(1, 51))
    assert part.rest == ()


def test_a_group_is_compressed_in_two_calls_of_at_most_sixty():
    assert plan(dailies(199), 200, 100) is None
    calls = all_planned(dailies(200), 200, 100, CHUNK)
    assert [len(call) for call in calls] == [50, 50]
    assert [*chain(*calls)] == list(range(1, 101))


def test_the_newest_are_those_of_the_newest_days_whenever_they_were_written():
    late = [entry(500, date=day(0)), *dailies(100)]
    assert 500 in numbers(planned(late).daily)


def test_pinned_entries_stay_and_do_not_take_the_place_of_a_recent_one():
    entries = [replace(each, pinned=each.number <= 10) for each in dailies(100)]
    assert numbers(planned(entries).daily) == list(range(11, 51))


def test_only_pinned_ones_are_nothing_to_compress():
    assert plan([replace(each, pinned=True) for each in dailies(120)], 100, 50) is None


def test_what_was_set_aside_is_passed_over():
    entries = [replace(each, set_aside=each.number == 1) for each in dailies(100)]
    assert 1 not in numbers(planned(entries).daily)


def test_other_documents_do_not_count():
    others = [entry(number, "memory") for number in range(200, 300)]
    assert plan([*dailies(99), *others], 100, 50) is None


def test_what_came_ended_or_was_pinned_meanwhile_is_not_in_the_next_call():
    entries = dailies(200)
    first = planned(entries, 200, 100)
    left = [replace(e, pinned=e.number == 60) for e in entries if e.number != 61]
    second = continued([*left, *dailies(30, first=900)], first.rest)
    assert second
    assert numbers(second.daily) == [n for n in range(51, 101) if n not in (60, 61)]


def test_what_has_come_to_be_among_the_newest_is_not_in_the_next_call():
    entries = dailies(200)
    first = planned(entries, 200, 100)
    left = [e for e in entries if e not in first.daily]
    second = continued(left, first.rest, keep_recent=130)
    assert second
    assert numbers(second.daily) == list(range(51, 71))
    assert continued(left, first.rest, keep_recent=150) is None


def test_a_part_can_be_shown_with_nothing_beside_it():
    part = planned([*dailies(200), entry(300, "memory"), entry(301, "profile", date=None)])
    bare = alone(part)
    assert (bare.daily, bare.rest) == (part.daily, part.rest)
    assert bare.shown == bare.daily
    assert prompt_lines(bare)["daily"] == prompt_lines(part)["daily"]


@given(
    st.lists(st.tuples(st.integers(0, 40), st.booleans()), max_size=300),
    st.integers(1, 200),
    st.integers(0, 150),
    st.integers(1, 70),
)
def test_each_old_entry_is_read_by_exactly_one_call(
    given_days: list[tuple[int, bool]], at: int, keep_recent: int, chunk: int
):
    entries = [
        entry(number, date=day(of_day), pinned=pinned)
        for number, (of_day, pinned) in enumerate(given_days, start=1)
    ]
    calls = all_planned(entries, at, keep_recent, chunk)
    read = [*chain(*calls)]
    by_age = sorted((e for e in entries if not e.pinned), key=lambda e: (e.date or "", e.number))
    expected = by_age[: max(0, len(by_age) - keep_recent)] if len(entries) >= at else []
    assert read == [each.number for each in expected]
    assert all(0 < len(call) <= chunk for call in calls)


# What a call reads


def test_of_memory_the_newest_are_shown_within_their_room_in_order_of_days():
    memory = [entry(n, "memory", "长" * 300, date=day(n % 7)) for n in range(200, 300)]
    part = planned([*dailies(100), *memory])
    assert numbers(part.memory) != []
    assert min(numbers(part.memory)) == 300 - len(part.memory)
    dates = [each.date or "" for each in part.memory]
    assert dates == sorted(dates)
    assert sum(len(line) + 1 for line in prompt_lines(part)["memory"]) <= MEMORY_CHARS


def test_pinned_memory_is_no_source():
    part = planned([*dailies(100), entry(200, "memory", pinned=True)])
    assert part.memory == ()


def test_profile_and_habits_are_shown_within_their_room_and_are_no_sources():
    background = [entry(n, "profile", "话" * 280, type="note", date=None) for n in range(200, 300)]
    part = planned([*dailies(100), *background])
    lines = prompt_lines(part)["background"]
    assert 0 < sum(len(line) for line in lines) <= BACKGROUND_CHARS
    assert not set(part.background) & set(part.sources.values())


def test_the_lines_are_objects_with_a_label_a_day_and_a_text():
    lines = prompt_lines(planned([*dailies(100), entry(300, "memory", "结业了")]))
    assert json.loads(lines["daily"][0]) == {
        "id": "d1",
        "date": day(0),
        "text": "第 1 件事：去湖边走了一圈",
    }
    assert [json.loads(line)["id"] for line in lines["daily"]] == [f"d{n}" for n in range(1, 51)]
    assert json.loads(lines["memory"][0])["id"] == "m1"


def test_a_secret_in_an_old_entry_is_not_shown():
    entries = [entry(1, text="号码是13812345678"), *dailies(99, first=2)]
    assert "13812345678" not in "".join(prompt_lines(planned(entries))["daily"])


@given(st.lists(st.text(max_size=400), min_size=1, max_size=60))
def test_what_a_call_reads_is_bounded_and_one_object_a_line(texts: list[str]):
    entries = [entry(n, text=text or "空") for n, text in enumerate(texts, start=1)]
    memory = [entry(n, "memory", text or "空") for n, text in enumerate(texts, start=500)]
    lines = prompt_lines(planned([*entries, *memory], 1, 0))
    for line in [*lines["daily"], *lines["memory"]]:
        assert "\n" not in line
        assert isinstance(json.loads(line), dict)
    assert sum(len(line) + 1 for line in lines["memory"]) <= MEMORY_CHARS


# What is accepted


def test_a_good_answer_names_its_sources():
    part = planned(dailies(100))
    accepted = check(part, answer(good_items(part)))
    assert {e for one in accepted for e in one.sources} == set(part.daily)
    assert accepted[0] == Compressed(good_items(part)[0]["text"], day(2), part.daily[:6])


def test_the_last_object_counts_with_thinking_prose_and_fences_around_it():
    part = planned(dailies(100))
    text = answer(good_items(part))
    wrapped = f'<think>{{"memory": []}}</think>好的：\n```json\n{text}\n```\n以上。'
    assert check(part, wrapped) == check(part, text)


def test_a_source_may_stand_in_several_items_and_labels_in_any_case():
    part = planned(dailies(100))
    items = good_items(part)
    items.append(item(f"{day(0)} 起迷上了湖边", day(0), " D1 ", "d2", "d1"))
    assert numbers(check(part, answer(items))[-1].sources) == [1, 2]


def test_memory_may_be_taken_up():
    part = planned([*dailies(100), entry(300, "memory", "常去湖边散步", date=day(1))])
    items = good_items(part)
    items[0]["sources"].append("m1")
    assert check(part, answer(items))[0].sources[-1].number == 300


def test_a_fifth_of_the_entries_may_be_left_where_they_are():
    part = planned(dailies(100))
    assert check(part, answer(good_items(part)[1:]))
    assert reason_of(part, answer(good_items(part)[2:])) == "coverage"


@pytest.mark.parametrize("form", ["2026年3月1日", "2026/3/1", "2026.03.01", "2026-3-1", "20260301"])
def test_a_date_counts_in_every_full_form(form: str):
    part = planned(dailies(2), 1, 0)
    told = item(f"{form} 去湖边走了一圈又一圈", day(0), "d1", "d2")
    assert check(part, answer([told]))
    told["date"] = form
    if form != "20260301":
        assert check(part, answer([told]))[0].date == day(0)


# What is refused


def change(place: int, **fields: Any) -> Callable[[Items], Items]:
    def changed(items: Items) -> Items:
        return [*items[:place], {**items[place], **fields}, *items[place + 1 :]]

    return changed


@pytest.mark.parametrize(
    "text",
    [
        "",
        "没有什么值得记的。",
        "[]",
        '{"memories": []}',
        '{"memory": "很多"}',
        "{}",
        '{"daily": []}',
    ],
)
def test_what_is_no_answer_is_refused(text: str):
    assert reason_of(planned(dailies(100)), text) == "unreadable"


def test_an_empty_answer_is_refused():
    assert reason_of(planned(dailies(100)), '{"memory": []}') == "empty"


def test_an_answer_that_breaks_off_is_refused_wherever_it_does():
    part = planned(dailies(100))
    text = answer(good_items(part))
    for end in range(0, len(text), 7):
        assert reason_of(part, text[:end]) == "unreadable"


def test_what_lies_in_an_answer_that_breaks_off_is_no_answer():
    part = planned(dailies(100))
    assert reason_of(part, f'{{"first": {answer(good_items(part))}, "second": ') == "unreadable"


def test_one_vague_sentence_for_all_is_refused():
    part = planned(dailies(100))
    everything = [f"d{n}" for n in range(1, 51)]
    assert reason_of(part, answer([item("大家聊得很开心", day(16), *everything)])) == (
        "sources-too-many"
    )
    assert reason_of(part, answer([item("大家聊得很开心", day(2), *everything[:8])])) != ""
    few = planned(dailies(8), 1, 0)
    labels = [f"d{n}" for n in range(1, 9)]
    long = replace(few, daily=tuple(replace(e, text="字" * 200, date=day(0)) for e in few.daily))
    assert reason_of(long, answer([item("大家聊得很开心", day(0), *labels)])) == "too-short"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (change(0, date=""), "date-missing"),
        (change(0, date=None), "date-missing"),
        (change(0, date="最近"), "date-outside"),
        (change(0, date=day(3)), "date-outside"),
        (change(0, date=f"{day(0)} {day(1)}"), "date-outside"),
        (change(0, text="在湖边走了六次，每次都是一圈"), "date-lost"),
        (change(0, text=f"{day(0)} 至 {day(2)} 在湖边走了六次"), "date-lost"),
        (change(0, text=""), "text-missing"),
        (change(0, text="\u200b \n"), "text-missing"),
        (change(0, text="长" * 401), "text-too-long"),
        (change(0, text="可以打13812345678找到"), "sensitive"),
        (change(0, text=f"{day(0)} {day(1)} 和 30007 一起去湖边走了六次"), "number-invented"),
        (change(0, sources=[]), "sources-missing"),
        (change(0, sources=["d1", "d51"]), "sources-unknown"),
        (change(0, sources=["d1", "m1"]), "sources-unknown"),
        (change(0, sources=["0001"]), "sources-unknown"),
        (change(0, sources=[f"d{n}" for n in range(1, MAX_SOURCES + 2)]), "sources-too-many"),
        (change(3, sources="d1"), "malformed"),
        (change(3, sources=[1, 2]), "malformed"),
        (change(3, text=None), "malformed"),
        (lambda items: [*items, "d1"], "malformed"),
        (lambda items: items[:5], "coverage"),
    ],
)
def test_one_bad_item_and_the_whole_answer_is_refused(
    changed: Callable[[Items], Items], reason: str
):
    part = planned(dailies(100))
    assert reason_of(part, answer(changed(good_items(part)))) == reason


def test_eight_sources_and_four_hundred_characters_are_allowed():
    part = planned(dailies(100))
    items = good_items(part, size=MAX_SOURCES)
    items[0]["text"] = items[0]["text"].ljust(400, "。")
    assert check(part, answer(items))


def test_there_are_no_more_items_than_entries_that_they_name():
    part = planned(dailies(4), 1, 0)
    items = [merged([(f"d{n}", day((n) // 3))]) for n in range(1, 5)]
    assert check(part, answer(items))
    assert reason_of(part, answer([*items, items[0]])) == "items-too-many"


def test_a_person_whom_a_source_names_may_be_named():
    entries = [entry(1, text="和 30007 去湖边"), *dailies(99, first=2)]
    part = planned(entries)
    items = good_items(part)
    items[0]["text"] += "，有一次和 30007 一起，主语是 30001"
    assert check(part, answer(items))


@given(st.data())
def test_whatever_is_accepted_loses_no_day_and_invents_no_source(data: st.DataObject):
    part = planned(dailies(data.draw(st.integers(1, 40))), 1, 0)
    labels = [*part.sources, "d99", "m1"]
    days = st.sampled_from([day(number) for number in range(16)])
    drawn = st.fixed_dictionaries(
        {
            "date": days,
            "text": st.lists(days, max_size=5).map(lambda them: "、".join(them) + "去湖边走了"),
            "sources": st.lists(st.sampled_from(labels), max_size=9),
        }
    )
    good = good_items(part, size=data.draw(st.integers(1, 8)))
    items = [*good, *data.draw(st.lists(drawn, max_size=2))]
    try:
        accepted = check(part, answer(items))
    except CompressionRefused:
        return
    told = [(e, {one.date, *_days(one.text)}) for one in accepted for e in one.sources]
    for source in {e for e, _ in told}:
        assert source in part.daily
        assert any(source.date in known for e, known in told if e == source)
    assert all(1 <= len(one.sources) <= MAX_SOURCES for one in accepted)
    assert all(one.date in {e.date for e in one.sources} for one in accepted)
    assert 5 * len({e for e, _ in told}) >= 4 * len(part.daily)


def _days(text: str) -> list[str]:
    return [day(number) for number in range(20) if day(number) in text]


@given(st.text())
def test_any_text_is_accepted_or_refused(text: str):
    part = planned(dailies(3), 1, 0)
    with pytest.raises(CompressionRefused):
        check(part, text)


def test_an_item_may_stand_for_one_entry():
    part = planned(dailies(1), 1, 0)
    (accepted,) = check(part, answer([merged([("d1", day(0))])]))
    assert accepted.sources == part.daily


# What must still hold when it is written


def test_what_was_shown_must_still_stand():
    memory, profile = entry(300, "memory"), entry(301, "profile", date=None)
    entries = [*dailies(100), memory, profile]
    part = planned(entries)
    assert still_stands(part, entries)
    assert still_stands(part, [*entries, *dailies(9, first=600)])
    assert still_stands(part, [e for e in entries if e.number != 70])
    assert still_stands(part, [replace(e, proofs=(*e.proofs, (9,))) for e in entries])
    for gone in (1, 300, 301):
        assert not still_stands(part, [e for e in entries if e.number != gone])
    assert not still_stands(part, [replace(e, pinned=e.number == 1) for e in entries])
    assert not still_stands(part, [replace(e, text=e.text + "！") for e in entries])


def test_the_schema_is_plain_and_names_the_limits():
    text = json.dumps(compression_schema())
    assert "$ref" not in text
    fields = compression_schema()["properties"]["memory"]["items"]["properties"]
    assert fields["text"]["maxLength"] == 400
    assert fields["sources"]["minItems"] == 1
