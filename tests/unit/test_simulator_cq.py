from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from nonebot.adapters.onebot.v11 import Message

from bot.simulate import cq, segments

parameters = st.dictionaries(
    st.from_regex(r"[a-z_]{1,6}", fullmatch=True), st.text(min_size=1, max_size=20), max_size=3
)
codes = st.builds(
    lambda kind, data: segments.segment(kind, **data),
    st.sampled_from(["at", "face", "image", "reply", "json"]),
    parameters,
)
texts = st.text(min_size=1, max_size=30).map(segments.text)


def joined(message: list[segments.RawSegment]) -> list[segments.RawSegment]:
    """Neighbouring texts become one: the string format cannot keep them apart."""
    result: list[segments.RawSegment] = []
    for each in message:
        if result and each["type"] == result[-1]["type"] == "text":
            result[-1] = segments.text(result[-1]["data"]["text"] + each["data"]["text"])
        else:
            result.append(each)
    return result


@given(st.lists(st.one_of(texts, codes), max_size=6))
def test_any_message_survives_the_string_format(message: list[segments.RawSegment]):
    assert list(cq.decode(cq.encode(message))) == joined(message)


@given(st.text(max_size=60))
def test_escaped_text_executes_nothing(content: str):
    written = cq.encode([segments.text(content)])
    assert cq.codes(written) == ()


@given(st.lists(st.one_of(texts, codes), max_size=4))
def test_nonebot_reads_the_string_format_alike(message: list[segments.RawSegment]):
    read: list[dict[str, Any]] = [
        {"type": each.type, "data": each.data} for each in Message(cq.encode(message))
    ]
    assert read == joined(message)


def test_text_that_looks_like_a_code_is_a_code_when_it_is_sent_raw():
    assert cq.codes("看[CQ:at,qq=all]这里[CQ:face,id=1]") == ("[CQ:at,qq=all]", "[CQ:face,id=1]")
    assert cq.decode("看[CQ:at,qq=all]") == (segments.text("看"), segments.at_all())


def test_a_parameter_may_hold_json():
    card = segments.json_card('[分享]a,b & "c"')
    assert cq.decode(cq.encode([card])) == (card,)


def test_objects_within_a_segment_become_json_text():
    (decoded,) = cq.decode(cq.encode([segments.face(178, "斜眼笑")]))
    assert decoded["data"]["id"] == "178"
    assert '"/斜眼笑"' in decoded["data"]["raw"]
