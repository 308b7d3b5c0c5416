"""The demo as a newcomer runs it: ``python -m bot demo``, without a key, and how it ends."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest_asyncio

from tests.e2e.command import Outcome, command
from tests.e2e.harness import ROOT

ZONE = ZoneInfo("Asia/Shanghai")
ANSWERS = ROOT / "data" / "sample" / "answers"
CONFESSION = ("辞职", "民宿", "大理", "预算表", "大于")
"""Said in private alone."""
OLD_PLAN = "约定 2026-08-22 去青崖山，早上八点青崖站 B 口集合"
ASKED_TO_KEEP = "我开车从不喝酒，吃饭别给我倒酒"
FORGOTTEN = "每周二四都去跑步"
FORGOTTEN_LINE = "路过河边跑了五公里，我每周二四都跑"
NEW_PLAN = "约定改到 2026-08-23 去青崖山，早上八点半青崖站 B 口集合"
ENDING = "which message proves it"

Happening = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Played:
    """A demo that has ended."""

    outcome: Outcome
    happenings: Sequence[Happening]
    database: Path

    def of(self, kind: str) -> list[Happening]:
        return [one for one in self.happenings if one["kind"] == kind]

    def only(self, kind: str) -> Happening:
        (found,) = self.of(kind)
        return found

    @property
    def entries(self) -> list[dict[str, Any]]:
        return self.only("WeekEnded")["entries"]

    def entries_of(self, scope_id: str) -> list[dict[str, Any]]:
        return [entry for entry in self.entries if entry["scope"]["id"] == scope_id]

    @property
    def ending(self) -> str:
        return self.outcome.output.partition(ENDING)[2]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def played(tmp_path_factory) -> Played:
    folder: Path = tmp_path_factory.mktemp("demo")
    transcript, database = folder / "transcript.jsonl", folder / "qunyi.db"
    outcome = await command(
        *("demo", "--fast", "--transcript", str(transcript)),
        DATABASE_URL=f"sqlite:///{database}",
    )
    assert outcome.status == 0, outcome.errors
    lines = transcript.read_text(encoding="utf-8").splitlines()
    return Played(outcome, [json.loads(line) for line in lines], database)


def prompt(asked: Happening) -> str:
    return "\n".join(message["content"] for message in asked["body"]["messages"])


def is_of_group(asked: Happening) -> bool:
    """Whether what a request asks about is the group's, or its members' within it."""
    if asked["purpose"] == "chat":
        return '"groupId": "20001"' in prompt(asked)
    return asked["purpose"] in {"reflect.group", "reflect.member-batch", "compress.group"}


def records(name: str) -> list[dict[str, Any]]:
    lines = (ANSWERS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def facts() -> list[dict[str, Any]]:
    return [*records("group"), *records("members"), *records("private")]


def texts(entries: Sequence[dict[str, Any]]) -> list[str]:
    return [entry["text"] for entry in entries]


async def test_it_says_at_both_ends_in_both_languages_that_the_answers_are_recorded(played: Played):
    assert played.outcome.errors == ""
    beginning = "\n".join(played.outcome.lines[:10])
    for part in (beginning, played.ending):
        assert "模型的回答是录制的" in part
        assert "answers are recorded" in part


async def test_it_leaves_the_database_of_the_real_bot_alone(played: Played):
    assert not played.database.exists()


async def test_the_week_has_what_was_promised(played: Played):
    said = played.of("Said")
    in_group = [one for one in said if one["chat"]["kind"] == "group"]
    assert len(in_group) >= 300
    assert len({one["sender_id"] for one in in_group}) == 5
    assert {one["sender_id"] for one in in_group if one["name"] == "小鱼"} == {30001, 30002}
    assert len(played.of("Recalled")) == 2
    assert len(played.of("Renamed")) == 1
    assert any(one["quoted"] for one in said)


async def test_what_was_confessed_in_private_is_in_no_prompt_of_the_group(played: Played):
    asked = played.of("Asked")
    of_group = [prompt(one) for one in asked if is_of_group(one)]
    elsewhere = [prompt(one) for one in asked if not is_of_group(one)]
    assert len(of_group) > 30
    for word in CONFESSION:
        assert any(word in one for one in elsewhere), "the private chat's own prompts show it"
        assert not any(word in one for one in of_group), word


async def test_what_was_confessed_in_private_is_said_by_nobody_in_the_group(played: Played):
    for one in (*played.of("Said"), *played.of("Sent"), *played.of("SnapshotMade")):
        if one["chat"]["kind"] == "group":
            assert not any(word in one["text"] for word in CONFESSION)


async def test_a_confession_is_remembered_in_its_private_stream_alone(played: Played):
    kept = [e for e in played.entries if any(word in e["text"] for word in CONFESSION)]
    assert len(kept) == 3
    assert {(e["scope"]["id"], e["origin"]["kind"]) for e in kept} == {("30002", "private")}


async def test_after_its_recall_a_line_is_in_no_prompt_and_nothing_remembered_rests_on_it(
    played: Played,
):
    was_shown = False
    for place, recalled in enumerate(played.happenings):
        if recalled["kind"] != "Recalled":
            continue
        before, after = played.happenings[:place], played.happenings[place:]
        gone = [recalled["text"], *recalled["fallen"]]
        was_shown |= any(gone[0] in prompt(one) for one in before if one["kind"] == "Asked")
        for one in after:
            if one["kind"] == "Asked":
                assert not any(text in prompt(one) for text in gone)
            elif one["kind"] != "Recalled":
                assert not any(text in json.dumps(one, ensure_ascii=False) for text in gone)
    assert was_shown, "one of them had been reflected before it was taken back"
    assert any(one["fallen"] for one in played.of("Recalled"))


async def test_a_recalled_line_is_not_in_the_export(played: Played):
    exported = json.dumps(played.only("Exported")["value"], ensure_ascii=False)
    assert NEW_PLAN in exported
    for recalled in played.of("Recalled"):
        for text in (recalled["text"], *recalled["fallen"]):
            assert text not in exported


async def test_what_somebody_asked_to_be_remembered_is_in_the_pack_of_their_next_question(
    played: Played,
):
    (shown,) = played.of("PackShown")
    place = played.happenings.index(shown)
    asked = [o for o in played.happenings[:place] if o["kind"] == "Asked"][-1]
    assert ASKED_TO_KEEP in shown["text"]
    assert shown["text"] in asked["body"]["messages"][-1]["content"]
    assert shown["text"].splitlines()[-1] in played.outcome.output


async def test_later_it_is_in_their_snapshot_and_in_nobody_elses(played: Played):
    asking = [one for one in played.of("SnapshotMade") if ASKED_TO_KEEP in one["text"]]
    assert [one["scope"]["id"] for one in asking] == ["30004"]
    (entry,) = [e for e in played.entries if e["text"] == ASKED_TO_KEEP]
    assert (entry["scope"]["id"], entry["document"]) == ("30004", "profile")


async def test_what_somebody_had_forgotten_is_in_no_prompt_from_the_very_next_on(played: Played):
    gone = played.only("Forgotten")
    assert (gone["by"], gone["fallen"]) == (30002, [FORGOTTEN])
    place = played.happenings.index(gone)
    before, after = played.happenings[:place], played.happenings[place + 1 :]
    shown = [prompt(o) for o in before if o["kind"] == "Asked"]
    assert FORGOTTEN in shown[-1]
    assert any(FORGOTTEN_LINE in one for one in shown)
    asked = [prompt(o) for o in after if o["kind"] == "Asked"]
    assert '"senderId": "30002"' in asked[0]
    for one in after:
        told = prompt(one) if one["kind"] == "Asked" else json.dumps(one, ensure_ascii=False)
        assert FORGOTTEN not in told
        assert FORGOTTEN_LINE not in told


async def test_the_changed_plan_is_superseded(played: Played):
    superseded = [e["text"] for one in played.of("Reflected") for e in one["superseded"]]
    assert superseded == [OLD_PLAN]
    assert OLD_PLAN not in texts(played.entries)
    assert NEW_PLAN in texts(played.entries)


async def test_the_snapshot_shows_the_new_plan_from_then_on(played: Played):
    shown = [one["text"] for one in played.of("SnapshotMade") if one["scope"]["kind"] == "group"]
    assert OLD_PLAN in shown[0]
    assert OLD_PLAN not in shown[-1]
    assert NEW_PLAN in shown[-1]


async def test_the_two_equal_cards_are_kept_apart(played: Played):
    first, second = played.entries_of("30001"), played.entries_of("30002")
    assert any("插画" in text for text in texts(first))
    assert any("后端" in text for text in texts(second))
    assert not set(texts(first)) & set(texts(second))
    for entry in (*first, *second):
        senders = {proof["sender_id"] for proof in entry["proofs"]}
        assert entry["scope"]["id"] in senders, entry


async def test_a_new_name_makes_nobody_new(played: Played):
    (renamed,) = played.of("Renamed")
    names = {p["name"] for e in played.entries for p in e["proofs"] if p["sender_id"] == "30003"}
    assert {renamed["former"], renamed["card"]} <= names
    assert len(played.entries_of("30003")) == 2


async def test_whatever_the_model_got_wrong_was_refused_and_is_remembered_nowhere(played: Played):
    refused = [one for done in played.of("Reflected") for one in done["refused"]]
    wrong = [record["text"] for record in facts() if "wrong" in record]
    assert len(wrong) == 7
    for text in wrong:
        assert [one["reason"] for one in refused if text in one["text"]], text
    kept = [(e["scope"]["id"], e["text"]) for e in played.entries]
    bad = [(r.get("senderId", ""), r["text"]) for r in facts() if "wrong" in r]
    assert not set(bad) & set(kept)
    assert not any("13800000000" in entry["text"] for entry in played.entries)
    assert len(refused) == len(wrong), "and nothing else was"


async def test_a_vague_compression_is_refused_and_a_good_one_taken(played: Played):
    kinds = [o["kind"] for o in played.happenings if o["kind"] in ("PutOff", "Compressed")]
    assert kinds == ["PutOff", "Compressed", "Compressed"]
    assert "CompressionRefused" in played.only("PutOff")["error"]
    for done in played.of("Compressed"):
        assert len(done["made"]) < len(done["sources"])


async def test_every_recorded_answer_is_asked_for_once(played: Played):
    used = played.only("RecordsUsed")["value"]
    keys = [record["key"] for record in [*facts(), *records("session")]]
    keys += [record["to"] for record in records("chat")]
    assert used == dict.fromkeys(keys, 1)


async def test_every_trigger_is_seen(played: Played):
    assert {"idle", "count", "max-wait"} <= {one["trigger"] for one in played.of("Reflected")}


async def test_the_closing_lists_name_for_each_entry_a_message_that_proves_it(played: Played):
    assert len(played.entries) >= 30
    for entry in played.entries:
        assert entry["proofs"], entry
        assert f"#{entry['label']} " in played.ending
        for proof in entry["proofs"]:
            at = datetime.fromtimestamp(proof["at"] / 1000, ZONE).strftime("%m-%d %H:%M")
            assert f"{at} {proof['name']}({proof['sender_id']})：" in played.ending


async def test_to_let_the_configured_model_answer_one_must_be_configured():
    outcome = await command("demo", "--fast", "--live")
    assert outcome.status == 1
    assert outcome.output == ""
    assert "CHAT_MODEL" in outcome.errors
    assert "Traceback" not in outcome.errors
