"""When a snapshot is made anew, and what of a memory fits into one."""

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.memory.snapshot import (
    Packed,
    RefreshReason,
    ScopeNow,
    SnapshotContents,
    SnapshotRules,
    is_showable,
    pack,
    refresh_reason,
)
from bot.model import Document, Snapshot, SnapshotEntry, entry_label
from bot.text import single_line

MINUTE = 60_000
RULES = SnapshotRules(ttl_ms=30 * MINUTE, max_age_ms=360 * MINUTE, budget_chars=2000)
KEPT = Snapshot(
    text="【群记忆】约好周六去爬山",
    shown=(1,),
    hash="h",
    streams=frozenset({7}),
    across=True,
    version=3,
    compactions=0,
    injected_at=0,
    active_at=0,
)
SCOPE = ScopeNow(streams=frozenset({7}), across=True, version=3, compactions=0)


# When


@pytest.mark.parametrize(
    ("kept", "scope", "minute", "reason"),
    [
        (None, {}, 0, "first"),
        ({}, {}, 0, None),
        ({}, {}, 30, None),
        ({}, {}, 30.001, "expired"),
        ({"active_at": 10 * MINUTE}, {}, 40, None),
        # Before it was made or used: the clock was set back.
        ({"active_at": 10 * MINUTE}, {}, 9.999, "expired"),
        ({"injected_at": 10 * MINUTE}, {"version": 4}, 9.999, "expired"),
        ({"active_at": 10 * MINUTE, "injected_at": 10 * MINUTE}, {}, 10, None),
        ({"stale": True}, {}, 0, "stale"),
        ({"stale": True, "text": ""}, {}, 0, "stale"),
        ({}, {"compactions": 1}, 0, "compacted"),
        ({"compactions": 2}, {"compactions": 1}, 0, "compacted"),
        ({}, {"version": 4}, 29, None),
        ({"active_at": 360 * MINUTE}, {"version": 4}, 360, None),
        ({"active_at": 360 * MINUTE}, {"version": 4}, 360.001, "aged"),
        ({"active_at": 360 * MINUTE}, {}, 361, None),
        ({}, {"streams": frozenset()}, 0, "reach"),
        ({}, {"streams": frozenset({8})}, 0, "reach"),
        ({}, {"across": False}, 0, "reach"),
        ({"across": False}, {}, 0, "reach"),
        # A stream that began since is a change of memory like any other.
        ({}, {"streams": frozenset({7, 8}), "version": 4}, 29, None),
        # Where nothing is shown there is nothing to keep still.
        ({"text": ""}, {}, 1_000, None),
        ({"text": ""}, {"version": 4}, 1, "first"),
        ({"text": "很长" * 1001}, {}, 0, "over_budget"),
    ],
)
def test_a_snapshot_is_made_anew_for_a_reason_that_has_a_name(
    kept: dict[str, Any] | None, scope: dict[str, Any], minute: float, reason: RefreshReason | None
):
    snapshot = None if kept is None else replace(KEPT, **kept)
    now = round(minute * MINUTE)
    assert refresh_reason(snapshot, replace(SCOPE, **scope), now, RULES) == reason


@pytest.mark.parametrize(
    ("kept", "scope", "showable"),
    [
        ({}, {}, True),
        ({}, {"compactions": 5, "version": 9}, True),
        ({"across": False}, {}, True),
        ({"stale": True}, {}, False),
        ({}, {"streams": frozenset()}, False),
        ({"text": "很长" * 1001}, {}, False),
    ],
)
def test_if_no_new_one_can_be_made_an_old_one_is_shown_only_while_all_of_it_may_be(
    kept: dict[str, Any], scope: dict[str, Any], showable: bool
):
    assert is_showable(replace(KEPT, **kept), replace(SCOPE, **scope), RULES) == showable


# What


def entry(number: int, document: Document = "daily", text: str = "去湖边", **fields: Any):
    """An entry; daily ones are of August."""
    if document in ("daily", "memory"):
        fields.setdefault("date", f"2026-08-{number:02}")
    return SnapshotEntry(number, number, document, text, **fields)


def packed(*entries: SnapshotEntry, budget: int = 2000, summaries: tuple[str, ...] = ()) -> Packed:
    return pack(SnapshotContents(summaries, entries), budget)


def test_a_snapshot_shows_pins_summary_and_documents_in_their_order():
    text = packed(
        entry(1, "memory", "每周三例会"),
        entry(2, "daily", "去了湖边"),
        entry(3, "daily", "下了雨", date="2026-08-02"),
        entry(4, "daily", "晴天", date="2026-08-01"),
        entry(5, "profile", "爱爬山", type="preference"),
        entry(6, "pattern", "总是早起"),
        entry(7, "memory", "不准刷屏", pinned=True),
        summaries=("正在准备春游",),
    ).text
    assert text.splitlines() == [
        "置顶：",
        "- #0007 2026-08-07 不准刷屏",
        "概要：",
        "- 正在准备春游",
        "档案：",
        "- #0005 preference 爱爬山",
        "习惯：",
        "- #0006 总是早起",
        "近事：",
        "## 2026-08-01",
        "- #0004 晴天",
        "## 2026-08-02",
        "- #0002 去了湖边",
        "- #0003 下了雨",
        "长期记忆：",
        "- #0001 2026-08-01 每周三例会",
    ]


def test_nothing_to_show_is_no_text_at_all():
    assert packed().text == ""
    assert packed(entry(1, "note"), entry(2, text=" \n")).text == ""


def test_notes_are_never_shown_not_even_pinned_ones():
    assert packed(entry(1, "note", pinned=True)).shown == ()


def test_what_does_not_fit_is_passed_over_and_what_comes_after_it_is_tried():
    found = packed(entry(3, text="短"), entry(2, text="长" * 60), entry(1, text="也短"), budget=60)
    assert found.shown == (3, 1)
    assert len(found.text) <= 60


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (entry(1, pinned=True), entry(2, "profile")),
        (entry(1, "profile"), entry(2, "pattern")),
        (entry(1, "pattern"), entry(2, "daily")),
        (entry(1, "daily"), entry(2, "memory")),
        (entry(2, "daily"), entry(1, "daily")),
        (entry(2, "memory"), entry(1, "memory")),
        (entry(1, "profile", updated_at=5), entry(2, "profile")),
        (entry(1, "profile"), entry(2, "profile", is_elsewhere=True)),
    ],
)
def test_where_only_one_fits_it_is_the_one_that_matters_more(
    first: SnapshotEntry, second: SnapshotEntry
):
    budget = len(packed(first).text)
    assert packed(second, first, budget=budget).shown == (first.row_id,)


def test_a_summary_comes_after_pins_and_before_all_else():
    budget = len(packed(summaries=("正在准备春游",)).text)
    assert packed(entry(1, "profile"), budget=budget, summaries=("正在准备春游",)).shown == ()
    pin = entry(1, "daily", "短", pinned=True)
    assert packed(pin, budget=len(packed(pin).text), summaries=("概",)).shown == (1,)


TEXTS = st.text(
    alphabet=st.one_of(st.characters(), st.sampled_from("\n\r\x00\u2028\u202e\u200b#-【】 湖边")),
    max_size=60,
)
ENTRIES = st.lists(
    st.builds(
        SnapshotEntry,
        row_id=st.integers(1, 500),
        number=st.integers(1, 500),
        document=st.sampled_from(("profile", "pattern", "daily", "memory", "note")),
        text=TEXTS,
        type=st.sampled_from((None, "name", "preference")),
        date=st.sampled_from((None, "2026-08-20", "2026-08-21")),
        pinned=st.booleans(),
        updated_at=st.integers(0, 5),
        is_elsewhere=st.booleans(),
    ),
    max_size=30,
    unique_by=lambda one: one.row_id,
)
SUMMARIES = st.lists(TEXTS, max_size=3)


@given(ENTRIES, SUMMARIES, st.integers(-10, 600))
def test_a_snapshot_never_exceeds_its_budget_and_never_cuts_an_entry(
    entries: list[SnapshotEntry], summaries: list[str], budget: int
):
    found = pack(SnapshotContents(tuple(summaries), tuple(entries)), budget)
    assert len(found.text) <= max(0, budget)
    lines = found.text.split("\n")
    by_row = {one.row_id: one for one in entries}
    bullets = [line for line in lines if line.startswith("- #")]
    for row_id in found.shown:
        one = by_row[row_id]
        assert any(
            line.startswith(f"- #{entry_label(one.number)}")
            and line.endswith(single_line(one.text))
            for line in bullets
        )
    told = {f"- {single_line(summary)}" for summary in summaries}
    assert len([line for line in bullets if line not in told]) <= len(found.shown) <= len(entries)


@given(ENTRIES, SUMMARIES, st.integers(0, 600), st.randoms())
def test_a_snapshot_does_not_depend_on_the_order_in_which_entries_come(
    entries: list[SnapshotEntry], summaries: list[str], budget: int, random: Any
):
    shuffled = random.sample(entries, len(entries))
    first = pack(SnapshotContents(tuple(summaries), tuple(entries)), budget)
    second = pack(SnapshotContents(tuple(summaries), tuple(shuffled)), budget)
    assert first.text == second.text
    assert first.hash == second.hash
    assert sorted(first.shown) == sorted(second.shown)


@given(ENTRIES)
def test_every_day_has_one_heading_and_the_newest_day_is_the_last(entries: list[SnapshotEntry]):
    text = pack(SnapshotContents((), tuple(entries)), 100_000).text
    days = [line for line in text.split("\n") if re.fullmatch(r"## \d{4}-\d\d-\d\d", line)]
    assert days == sorted(set(days))


@given(ENTRIES, SUMMARIES)
def test_whatever_they_say_entries_make_one_line_each(
    entries: list[SnapshotEntry], summaries: list[str]
):
    found = pack(SnapshotContents(tuple(summaries), tuple(entries)), 100_000)
    lines = found.text.splitlines()
    ours = [line for line in lines if not line.startswith("- ")]
    assert len(lines) - len(ours) == len(found.shown) + sum(bool(single_line(s)) for s in summaries)
    titles = {"置顶：", "概要：", "档案：", "习惯：", "近事：", "长期记忆："}
    assert all(line in titles or line.startswith("## ") for line in ours)
    assert len(ours) == len(set(ours))


def test_the_hash_tells_contents_apart_and_nothing_else():
    one = entry(1, text="去湖边")
    assert packed(one).hash == packed(replace(one, text="  去湖边\u200b ", updated_at=9)).hash
    for other in ({"text": "去山里"}, {"date": "2026-08-09"}, {"pinned": True}, {"number": 9}):
        assert packed(one).hash != packed(replace(one, **other)).hash
    assert packed(one).hash != packed(one, summaries=("概要",)).hash
