"""Reading message segments: both formats, odd types, nothing lost and nothing raised."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.model import EVERYONE, Segment
from bot.onebot.segments import at_segment, read_segments, reply_segment, text_segment

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
KEYS = st.sampled_from(["type", "data", "text", "qq", "id", "content", "messages"]) | st.text()
JSON_LIKE = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=20
)
CODE_LIKE = st.text(alphabet="[]CQ:at,=&#;q19amp44\r\n ", max_size=60)


def escaped(text: str, *, in_parameter: bool = False) -> str:
    """Write ``text`` as a client writes it into a CQ string."""
    text = text.replace("&", "&amp;").replace("[", "&#91;").replace("]", "&#93;")
    return text.replace(",", "&#44;") if in_parameter else text


def as_pairs(segments: tuple[Segment, ...]) -> list[tuple[str, dict[str, object]]]:
    return [(segment.type, dict(segment.data)) for segment in segments]


def test_an_array_becomes_segments_in_order():
    message = [
        {"type": "at", "data": {"qq": "10001"}},
        {"type": "text", "data": {"text": " 你好"}},
    ]
    assert as_pairs(read_segments(message)) == [
        ("at", {"qq": "10001"}),
        ("text", {"text": " 你好"}),
    ]


def test_a_string_becomes_the_same_segments_as_an_array():
    assert as_pairs(read_segments("[CQ:reply,id=-700][CQ:at,qq=10001] 你好")) == [
        ("reply", {"id": "-700"}),
        ("at", {"qq": "10001"}),
        ("text", {"text": " 你好"}),
    ]


def test_entities_are_undone_once():
    assert read_segments("&amp;#91;1&#93; &amp;amp;") == (text_segment("&#91;1] &amp;"),)


def test_the_comma_entity_means_a_comma_in_parameters_only():
    segments = read_segments("a&#44;b[CQ:share,title=a&#44;b]")
    assert as_pairs(segments) == [("text", {"text": "a&#44;b"}), ("share", {"title": "a,b"})]


def test_a_parameter_may_hold_json():
    card = json.dumps({"prompt": "[分享]标题", "meta": {"a": [1, 2]}}, ensure_ascii=False)
    segments = read_segments(f"[CQ:json,data={escaped(card, in_parameter=True)}]")
    assert as_pairs(segments) == [("json", {"data": card})]


def test_json_whose_commas_were_not_escaped_is_read_whole():
    segments = read_segments('[CQ:json,data={"a":"x=1","b":2},token=9]')
    assert as_pairs(segments) == [("json", {"data": '{"a":"x=1","b":2}', "token": "9"})]


def test_a_value_may_hold_equals_signs_and_line_breaks():
    segments = read_segments("[CQ:image,file=a.gif,url=https://example.invalid/?a=1\n2]")
    assert segments[0].data["url"] == "https://example.invalid/?a=1\n2"


def test_an_unknown_code_is_kept():
    assert as_pairs(read_segments("[CQ:new-thing,a=1][CQ:shake]")) == [
        ("new-thing", {"a": "1"}),
        ("shake", {}),
    ]


@pytest.mark.parametrize(
    "text", ["[CQ:at", "[CQ:]", "[CQ:at,10001]", "[CQ :at,qq=1]", "[cq:at,qq=1]", "CQ:at,qq=1]"]
)
def test_a_malformed_code_is_text(text: str):
    assert read_segments(text) == (text_segment(text),)


def test_a_malformed_code_does_not_hide_the_good_one_inside():
    assert as_pairs(read_segments("[CQ:at,qq=[CQ:at,qq=30001]")) == [
        ("text", {"text": "[CQ:at,qq="}),
        ("at", {"qq": "30001"}),
    ]


def test_codes_in_a_text_segment_are_only_text():
    text = "[CQ:at,qq=all]&#91;"
    assert read_segments([{"type": "text", "data": {"text": text}}]) == (text_segment(text),)
    assert read_segments([text]) == (text_segment(text),)


def test_one_segment_object_is_a_message():
    assert as_pairs(read_segments({"type": "face", "data": {"id": 178}})) == [
        ("face", {"id": "178"})
    ]


def test_ids_become_text_and_other_numbers_stay():
    segments = read_segments([{"type": "at", "data": {"qq": 30001, "sub_type": 1, "id": True}}])
    assert as_pairs(segments) == [("at", {"qq": "30001", "sub_type": 1, "id": True})]


def test_old_line_ends_become_new_ones():
    assert read_segments("a\r\nb\rc\nd") == (text_segment("a\nb\nc\nd"),)


def test_what_a_database_cannot_hold_is_replaced():
    message = [
        {"type": "text", "data": {"text": "a\x00b\ud800"}},
        {"type": "json", "data": {"data": "\udfff", "n": float("nan")}},
    ]
    assert as_pairs(read_segments(message)) == [
        ("text", {"text": "ab\ufffd"}),
        ("json", {"data": "\ufffd", "n": None}),
    ]


def test_junk_becomes_nothing():
    message = [
        None,
        1,
        [],
        {},
        {"type": 3},
        {"type": " "},
        {"type": "text"},
        {"type": "text", "data": 5},
    ]
    assert read_segments(message) == ()
    assert read_segments(None) == ()


def test_data_of_a_wrong_type_is_empty():
    assert read_segments([{"type": "image", "data": "x"}, {"type": "record"}]) == (
        Segment("image", {}),
        Segment("record", {}),
    )


def test_a_text_that_is_a_number_is_its_digits():
    assert read_segments([{"type": "text", "data": {"text": 12}}]) == (text_segment("12"),)


@pytest.mark.parametrize("message", [[], "", None, 5, [None]])
def test_the_raw_message_stands_in_for_an_unusable_one(message: object):
    assert as_pairs(read_segments(message, "[CQ:face,id=1]")) == [("face", {"id": "1"})]


def test_only_three_kinds_of_segment_are_built():
    assert text_segment("[CQ:at,qq=all]").as_json() == {
        "type": "text",
        "data": {"text": "[CQ:at,qq=all]"},
    }
    assert at_segment("30001").as_json() == {"type": "at", "data": {"qq": "30001"}}
    assert reply_segment("-5").as_json() == {"type": "reply", "data": {"id": "-5"}}


def test_the_bot_cannot_mention_everyone():
    with pytest.raises(ValueError, match="everyone"):
        at_segment(EVERYONE)


@given(JSON_LIKE | CODE_LIKE, JSON_LIKE | CODE_LIKE)
def test_reading_never_raises_and_gives_storable_json(message: object, raw_message: object):
    for segment in read_segments(message, raw_message):
        json.dumps(segment.as_json(), ensure_ascii=False, allow_nan=False).encode()


@given(st.text(alphabet="&#;ampq[]CQ:,=4149 3\n字"))
def test_text_survives_a_cq_string(text: str):
    read = "".join(segment.data["text"] for segment in read_segments(escaped(text)))
    assert read == text


@given(st.text(alphabet="&#;ampq[]CQ:,=4149 3\n字"))
def test_a_parameter_survives_a_cq_string(value: str):
    code = f"[CQ:share,title={escaped(value, in_parameter=True)}]"
    assert as_pairs(read_segments(code)) == [("share", {"title": value})]


@given(CODE_LIKE.filter(lambda text: "[CQ:" not in text and "&" not in text))
def test_a_string_without_codes_is_one_text(text: str):
    unix = text.replace("\r\n", "\n").replace("\r", "\n")
    assert read_segments(text) == ((text_segment(unix),) if text else ())
