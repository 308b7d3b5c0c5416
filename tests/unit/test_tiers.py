"""Tiers: which notes rise, which end, which are folded into one."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bot.memory.policy import DAY_MS, HOUR_MS, PRESETS, policy
from bot.memory.tiers import KEEP_WORKING, compact_working, consolidated
from bot.memory.wording import ENTRY_MAX_CHARS
from bot.model import Chat, Document, Entry, Scope, Stream, Tier

NOW = 1_785_297_600_000
GROUP = Chat("10001", "group", "20001")
OF_GROUP = Stream(Scope("10001", "group", "20001"), GROUP)
OF_FISH = Stream(Scope("10001", "member", "30001"), GROUP)
DEFAULT = policy("default")


def note(number: int = 1, *, age_ms: int = 0, **fields: Any) -> Entry:
    """A working note of a person, so old."""
    at = NOW - age_ms
    given: dict[str, Any] = {
        "stream": OF_FISH,
        "document": "note",
        "text": f"第 {number} 条便签",
        "proofs": ((number,),),
        "tier": "working",
        "created_at": at,
        "updated_at": at,
        "tier_since": at,
        **fields,
    }
    return Entry(number, **given)


def test_a_note_of_an_hour_becomes_episodic_and_stays_a_note():
    [rise] = consolidated([note(age_ms=HOUR_MS)], DEFAULT, NOW).promoted
    assert (rise.tier, rise.document, rise.type) == ("episodic", "note", None)
    assert consolidated([note(age_ms=HOUR_MS - 1)], DEFAULT, NOW).promoted == ()


def test_a_note_that_was_used_on_two_days_in_a_week_becomes_part_of_the_profile():
    old = note(age_ms=7 * DAY_MS, tier="episodic", uses=2)
    [rise] = consolidated([old], DEFAULT, NOW).promoted
    assert (rise.tier, rise.document, rise.type) == ("profile", "profile", "note")


def test_a_note_that_was_used_once_stays_where_it_is():
    old = note(age_ms=7 * DAY_MS, tier="episodic", uses=1)
    assert consolidated([old], DEFAULT, NOW) == consolidated([], DEFAULT, NOW)


def test_a_note_of_a_group_has_no_type_in_its_profile():
    old = note(age_ms=7 * DAY_MS, tier="episodic", uses=2, stream=OF_GROUP)
    [rise] = consolidated([old], DEFAULT, NOW).promoted
    assert (rise.document, rise.type) == ("profile", None)


def test_what_is_to_rise_does_not_expire_however_old_it_is():
    fate = consolidated([note(age_ms=100 * DAY_MS)], DEFAULT, NOW)
    assert len(fate.promoted) == 1
    assert fate.expired == ()


def test_a_note_rises_one_tier_at_a_time():
    [rise] = consolidated([note(age_ms=100 * DAY_MS, uses=9)], DEFAULT, NOW).promoted
    assert rise.tier == "episodic"


def test_a_promoted_note_that_nobody_used_expires_after_a_month():
    old = note(age_ms=30 * DAY_MS, tier="episodic")
    assert consolidated([old], DEFAULT, NOW).expired == (old,)
    young = note(age_ms=30 * DAY_MS - 1, tier="episodic")
    assert consolidated([young], DEFAULT, NOW).expired == ()


def test_a_note_that_was_said_again_begins_its_time_anew():
    old = note(age_ms=40 * DAY_MS, tier="episodic", updated_at=NOW - DAY_MS)
    assert consolidated([old], DEFAULT, NOW).expired == ()


def test_in_a_chat_of_banter_a_note_that_was_never_used_expires_unpromoted():
    old = note(age_ms=12 * HOUR_MS)
    fate = consolidated([old], policy("chat"), NOW)
    assert (fate.promoted, fate.expired) == ((), (old,))


def test_a_pinned_note_does_not_expire():
    old = note(age_ms=300 * DAY_MS, tier="episodic", pinned=True)
    assert consolidated([old], DEFAULT, NOW).expired == ()


entries = st.builds(
    note,
    st.integers(1, 1_000),
    age_ms=st.integers(0, 400 * DAY_MS),
    document=st.sampled_from(["profile", "pattern", "daily", "memory", "note"]),
    tier=st.sampled_from(["working", "episodic", "profile"]),
    pinned=st.booleans(),
    uses=st.integers(0, 5),
    text=st.text("鱼熊猫，。x", min_size=1, max_size=ENTRY_MAX_CHARS),
)
many = st.lists(entries, max_size=40, unique_by=lambda entry: entry.number)


@given(many, st.sampled_from(list(PRESETS)))
def test_nothing_is_lost_that_is_pinned_or_that_a_reflection_wrote(found: list[Entry], name: str):
    fate = consolidated(found, policy(name), NOW)
    touched = {rise.entry.number for rise in fate.promoted} | {e.number for e in fate.expired}
    assert len(touched) == len(fate.promoted) + len(fate.expired)
    for entry in found:
        if entry.document != "note":
            assert entry.number not in touched
        if entry.pinned:
            assert entry not in fate.expired
    fold = compact_working(found)
    for source in fold.sources if fold else ():
        assert source.document == "note"
        assert source.tier == "working"
        assert not source.pinned


@given(many, st.integers(0, 10))
def test_folding_keeps_the_newest_and_names_every_other_once(found: list[Entry], keep: int):
    working = [e for e in found if (e.document, e.tier, e.pinned) == ("note", "working", False)]
    fold = compact_working(found, keep)
    if len(working) <= keep:
        assert fold is None
        return
    assert fold is not None
    left = [e for e in working if e not in fold.sources]
    assert len(fold.sources) == len(set(fold.sources)) == len(working) - keep
    assert len(left) == keep
    youngest = max((e.updated_at, e.number) for e in fold.sources)
    assert all((e.updated_at, e.number) > youngest for e in left)
    assert 0 < len(fold.text) <= ENTRY_MAX_CHARS
    assert "\n" not in fold.text


def test_a_fold_names_its_sources_and_tells_all_that_fits():
    notes = [note(number, age_ms=60_000 - number) for number in range(1, 13)]
    fold = compact_working(notes)
    assert fold is not None
    assert fold.text == "#0001 第 1 条便签；#0002 第 2 条便签；#0003 第 3 条便签；#0004 第 4 条便签"


def test_long_notes_share_the_room_and_short_ones_stay_whole():
    texts = ["长" * 280, "短短一句", "久" * 280]
    notes = [note(place, text=text) for place, text in enumerate(texts, start=1)]
    fold = compact_working(notes, 0)
    assert fold is not None
    assert "#0002 短短一句；" in fold.text
    assert fold.text.count("…") == 2
    assert 290 <= len(fold.text) <= ENTRY_MAX_CHARS


def test_of_more_notes_than_a_line_can_name_it_says_how_many_and_tells_the_newest():
    notes = [note(number, text=f"第 {number} 件很长很长的事") for number in range(1, 101)]
    fold = compact_working(notes)
    assert fold is not None
    assert fold.text.startswith("92 条便签 #0001…#002w：第 92 件")
    assert len(fold.text) <= ENTRY_MAX_CHARS


def test_eight_notes_are_left_alone():
    assert KEEP_WORKING == 8
    assert compact_working([note(number) for number in range(1, 9)]) is None


def test_a_note_of_another_tier_is_not_folded():
    tiers: list[Tier] = ["episodic", "profile"]
    documents: list[Document] = ["daily", "profile"]
    others = [note(n, tier=tier) for n, tier in enumerate(tiers * 10, start=1)]
    others += [replace(note(99 + n), document=d) for n, d in enumerate(documents * 10)]
    assert compact_working(others) is None
