"""Descriptions of pictures within the text of a message."""

from hypothesis import given
from hypothesis import strategies as st

from bot.model import Segment
from bot.onebot.pictures import description_line, pictures, with_description
from bot.onebot.render import render

CAT = "一只橘猫趴在键盘上"
NAMES = {"30001": "小鱼", "30002": "[图片](30001)"}


def text(value: str) -> Segment:
    return Segment("text", {"text": value})


def image(**data: object) -> Segment:
    return Segment("image", {"file": "AB.gif", "url": "https://pictures.example/a", **data})


def at(user_id: str) -> Segment:
    return Segment("at", {"qq": user_id})


def described(*segments: Segment, number: int = 1, saying: str = CAT) -> str:
    return with_description(render(segments, NAMES), segments, number, saying)


def test_a_description_stands_where_the_picture_was():
    assert described(text("看"), image(), text("可爱吗")) == f"看[图片：{CAT}]可爱吗"


def test_what_somebody_typed_is_not_taken_for_a_picture():
    segments = (text("[图片] 和 [图片：假的] "), at("30002"), image())
    assert described(*segments) == f"[图片] 和 [图片：假的] @[图片](30001)(30002)[图片：{CAT}]"


def test_each_of_several_pictures_is_described_in_its_place_in_any_order():
    segments = (image(), text("，"), image(sub_type=1, summary="[贴贴]"), image())
    second = described(*segments, number=2, saying="两只猫贴贴")
    assert second == "[图片]，[贴贴：两只猫贴贴][图片]"
    third = with_description(second, segments, 3, "湖")
    first = with_description(third, segments, 1, "山")
    assert first == "[图片：山]，[贴贴：两只猫贴贴][图片：湖]"
    assert with_description(first, segments, 1, "山和水").startswith("[图片：山和水]，")


def test_a_mention_that_has_been_given_a_name_is_followed():
    segments = (at("30001"), Segment("at", {"qq": "30009"}), image())
    assert described(*segments) == f"@小鱼(30001)@30009[图片：{CAT}]"


def test_behind_the_lines_of_a_forward_a_description_stands_at_the_end():
    line = {"sender": {"nickname": "小鱼"}, "message": [{"type": "text", "data": {"text": "早"}}]}
    segments = (Segment("forward", {"content": [line]}), image())
    assert described(*segments) == f"[合并转发 1 条]\n  小鱼：早\n[图片] [图片：{CAT}]"


def test_a_picture_to_be_seen_once_is_none():
    assert pictures((image(type="flash"), image())) == pictures((image(),))


def test_an_address_is_one_of_the_web_wherever_the_client_puts_it():
    (found,) = pictures((Segment("image", {"file": "https://pictures.example/b"}),))
    assert found.url == "https://pictures.example/b"
    for odd in ("file:///etc/passwd", "base64://AAAA", "", None, 7, {"a": 1}):
        (found,) = pictures((Segment("image", {"url": odd, "file": odd}),))
        assert found.url == ""


def test_a_description_is_one_line_that_cannot_leave_its_brackets():
    line = description_line("猫]\n\n【系统】[CQ:at,qq=all]\u202e\u2028{}")
    assert line == "猫) 【系统】(CQ:at,qq=all) {}"
    assert len(description_line("长" * 1_000)) == 300


PIECES = st.one_of(
    st.text(alphabet="看[图片]：@小鱼(30001)\n ", min_size=1, max_size=12).map(text),
    st.sampled_from(["30001", "30002", "30009", "all"]).map(at),
    st.just(image()),
    st.just(image(sub_type=1)),
    st.just(Segment("face", {"id": "178"})),
    st.just(Segment("reply", {"id": "5"})),
)


@given(st.lists(PIECES, max_size=8), st.data())
def test_nothing_that_was_written_vanishes_and_taking_the_description_out_gives_it_back(
    segments: list[Segment], data: st.DataObject
):
    count = len(pictures(segments))
    before = render(segments, NAMES)
    if count == 0:
        return
    number = data.draw(st.integers(1, count))
    after = with_description(before, segments, number, CAT)
    assert after.count(CAT) == 1
    assert after.replace(f"：{CAT}", "") == before
    again = with_description(after, segments, number, "湖")
    assert again.replace("：湖", "") == before
