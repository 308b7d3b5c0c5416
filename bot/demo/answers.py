"""What the model answers in the demo: recorded, and told by the words of each prompt.

See ``docs/demo.md``, "The answers". A record refers to lines of the sample by their keys. Which
messages a prompt shows, and under which numbers, is the program's business; so the keys become the
numbers of the very prompt that asks, as a model would copy them from it.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from bot.clock import local_time
from bot.demo.sample import ANSWER_MARK, ZONE, Week
from bot.simulate.provider import Failure, Outcome, ReceivedRequest

Record = Mapping[str, Any]
Shown = Mapping[str, Any]
"""One JSON line of a prompt."""

BOT = "BOT"
PACK_HEADING = "【可能有关的记录】"
_FIELDS = ("type", "date", "text", "why")


class RecordedAnswers:
    """Answers requests as a provider would, from the records of a sample.

    Attributes:
        used: how often each record was given as an answer, by its key.
    """

    def __init__(self, week: Week) -> None:
        self._week = week
        self._records = week.answers
        self._keys = _keys_by_place(week)
        self._texts = {r["key"]: r["text"] for r in week.facts if "text" in r}
        self._tries: Counter[str] = Counter()
        self._given: list[tuple[str, str]] = []
        self.used: Counter[str] = Counter()

    def __call__(self, request: ReceivedRequest) -> Outcome:
        """Return what the model says to ``request``."""
        outcome = self._outcome(request)
        if isinstance(outcome, str):
            self._given.append((request.purpose, outcome))
        return outcome

    def given(self) -> list[tuple[str, str]]:
        """Return what was answered since the last call, each with its purpose."""
        given, self._given = self._given, []
        return given

    def _outcome(self, request: ReceivedRequest) -> Outcome:
        messages = request.body["messages"]
        if len(messages) > 1 and not request.purpose.startswith("chat"):
            # It is asked to mend what the checks refused, and has nothing better.
            return "{}"
        shown = shown_lines(messages[-1]["content"])
        match request.purpose.partition("."):
            case "chat", _, _:
                return self._chat(shown)
            case "reflect", _, "group":
                return _json(self._facts("group", shown))
            case "reflect", _, "private-owner":
                return _json(self._facts("private", shown))
            case "reflect", _, "member-batch":
                return _json(self._members(shown))
            case "compress", _, _:
                return _json(self._compression(shown))
            case "summarize", _, _:
                return _json(self._summary(shown))
        return Failure(404, "not_recorded", f"nothing is recorded for {request.purpose}")

    def _chat(self, shown: Sequence[Shown]) -> Outcome:
        key = next((key for line in reversed(shown) if (key := self._key_of(line))), "")
        for record in self._records["chat"]:
            if record["to"] == key:
                self.used[key] += 1
                return record["text"]
        return Failure(404, "not_recorded", "no answer to this line is recorded")

    def _facts(self, name: str, shown: Sequence[Shown]) -> dict[str, Any]:
        return self._told(self._records[name], shown)

    def _members(self, shown: Sequence[Shown]) -> dict[str, Any]:
        records = self._records["members"]
        members = []
        for sender_id in dict.fromkeys(record["senderId"] for record in records):
            told = self._told([r for r in records if r["senderId"] == sender_id], shown)
            if told:
                members.append({"senderId": sender_id, **told})
        return {"members": members} if members else {}

    def _told(self, records: Iterable[Record], shown: Sequence[Shown]) -> dict[str, Any]:
        """Return the records whose last line is among the messages that a prompt shows."""
        refs = {key: line["ref"] for line in shown if "ref" in line and (key := self._key_of(line))}
        answer: dict[str, Any] = {}
        for record in records:
            if record["refs"][-1] not in refs:
                continue
            self.used[record["key"]] += 1
            if record["in"] == "summary":
                answer["summary"] = record["text"]
            else:
                answer.setdefault(record["in"], []).append(self._item(record, refs, shown))
        return answer

    def _item(
        self, record: Record, refs: Mapping[str, int], shown: Sequence[Shown]
    ) -> dict[str, Any]:
        item = {name: record[name] for name in _FIELDS if name in record}
        if record["in"] == "retract":
            item["id"] = self._label(record["entry"], shown)
        # A number stands for itself: one that the model made up.
        numbers = (ref if isinstance(ref, int) else refs.get(ref) for ref in record["refs"])
        return {**item, "refs": [number for number in numbers if number is not None]}

    def _label(self, key: str, shown: Sequence[Shown]) -> str:
        """Return under which id a prompt shows the entry that a record became."""
        text = self._texts[key]
        return next((one["id"] for one in shown if one.get("text") == text and "id" in one), "")

    def _compression(self, shown: Sequence[Shown]) -> dict[str, Any]:
        labels = {one["text"]: one["id"] for one in shown if "id" in one}
        known = {key: labels[text] for key, text in self._texts.items() if text in labels}
        fitting = [r for r in self._records["compress"] if known.keys() >= set(r["sources"])]
        vague = [record for record in fitting if "wrong" in record]
        self._tries["compress"] += bool(vague)
        chosen = (
            vague
            if vague and self._tries["compress"] == 1
            else [record for record in fitting if "wrong" not in record]
        )
        return {
            "memory": [
                {
                    "date": record["date"],
                    "text": record["text"],
                    "sources": [known[key] for key in record["sources"]],
                }
                for record in chosen
            ]
        }

    def _summary(self, shown: Sequence[Shown]) -> dict[str, Any]:
        """Return the record of a conversation up to a line that is among what a prompt shows."""
        keys = {self._key_of(line) for line in shown}
        for record in self._records["session"]:
            if record["to"] in keys:
                self.used[record["key"]] += 1
                return {name: record[name] for name in record.keys() - {"key", "to"}}
        return {}

    def _key_of(self, line: Shown) -> str:
        return self._keys.get((line.get("at", ""), line.get("senderId", "")), "")


def shown_lines(prompt: str) -> list[dict[str, Any]]:
    """Return the lines of JSON that a prompt shows, with the entries that stand in them."""
    return list(_shown(prompt))


def _shown(prompt: str) -> Iterator[dict[str, Any]]:
    for text in prompt.splitlines():
        if not text.startswith("{"):
            continue
        try:
            line = json.loads(text)
        except ValueError:
            continue
        yield line
        yield from line.get("entries", ())


def pack_in(prompt: str) -> str:
    """Return the recall pack as a prompt shows it, with its heading; ``""`` if it shows none.

    People's words stand in lines of JSON, so none of them can pass for either.
    """
    lines = iter(prompt.splitlines())
    heading = next((line for line in lines if line.startswith(PACK_HEADING)), "")
    entries = takewhile(lambda line: line.startswith("- ["), lines)
    return "\n".join((heading, *entries)) if heading else ""


def _keys_by_place(week: Week) -> dict[tuple[str, str], str]:
    """Return the key of each line, and of the bot's answer to it, by what a prompt shows of it."""
    keys: dict[tuple[str, str], str] = {}
    for line in week.lines:
        if not line.key:
            continue
        at = local_time(line.at, ZONE).strftime("%Y-%m-%d %H:%M")
        keys[at, str(line.sender_id)] = line.key
        if line.is_asking:
            keys[at, BOT] = ANSWER_MARK + line.key
    return keys


def _json(answer: Mapping[str, Any]) -> str:
    return json.dumps(answer, ensure_ascii=False)
