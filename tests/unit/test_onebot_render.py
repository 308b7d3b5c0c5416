"""Rendering segments: readable, total, and one line wherever a name or label is shown."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.model import Segment
from bot.onebot.forward import forward_id
from bot.onebot.render import render
from bot.onebot.segments import read_segments

NAMES = {"30001": "小鱼", "30002": "阿\n山\u202e"}
HOSTILE = st.text(alphabet="小鱼\n\r\u2028\u2029\x85\x0b\x1c\u202e\u200b\x00[](): ,", max_size=40)
TYPES = st.sampled_from(
    "at image mface face file json xml forward node dice music share location contact".split()
)


def shown(type_: str, **data: object) -> str:
    return render([Segment(type_, data)], NAMES)


def forward_of(count: int, text: str = "你好") -> dict[str, object]:
    node = {
        "sender": {"user_id": 30001, "nickname": "小鱼"},
        "message": [{"type": "text", "data": {"text": text}}],
    }
    return {"messages": [node] * count}


def test_a_message_reads_like_what_people_saw():
    segments = read_segments(
        "[CQ:reply,id=5][CQ:at,qq=30001] 看这个[CQ:image,file=a.jpg][CQ:face,id=178]"
    )
    assert render(segments, NAMES) == "@小鱼(30001) 看这个[图片][表情:斜眼笑]"


def test_a_mention_is_shown_by_its_own_name_first():
    assert shown("at", qq="30001", name="@群名片") == "@群名片(30001)"
    assert shown("at", qq="30001", name="群名片") == "@群名片(30001)"


def test_a_mention_without_any_name_is_shown_by_id():
    assert shown("at", qq="30009") == "@30009"
    assert shown("at", qq="30009", name="\u200b\n") == "@30009"


def test_names_may_be_looked_up_by_a_function():
    segments = [Segment("at", {"qq": "30001"}), Segment("at", {"qq": "30003"})]
    assert render(segments, {"30001": "小鱼"}.get) == "@小鱼(30001)@30003"


def test_everyone_has_no_id():
    assert shown("at", qq="all") == "@全体成员"
    assert shown("at", qq="ALL", name="@全体成员") == "@全体成员"


def test_a_name_of_many_lines_is_shown_on_one():
    assert shown("at", qq="30002") == "@阿 山(30002)"


def test_text_is_kept_as_it_was_written():
    assert shown("text", text="a\u202eb\u200b  c\r\nd\x00") == "a\u202eb\u200b  c\nd"


@pytest.mark.parametrize(
    ("segment", "expected"),
    [
        (("image", {"file": "a.jpg", "summary": "[图片]", "sub_type": 0}), "[图片]"),
        (("image", {"summary": "[动画表情]", "file": "AB.gif", "sub_type": 1}), "[动画表情]"),
        (("image", {"sub_type": "1"}), "[动画表情]"),
        (("image", {"subType": 7, "summary": ""}), "[动画表情]"),
        (("image", {"summary": "[贴贴]", "emoji_id": "ab12", "emoji_package_id": 235}), "[贴贴]"),
        (("image", {"type": "flash"}), "[闪照]"),
        (("image", {}), "[图片]"),
        (("mface", {"summary": "[贴\n贴]"}), "[贴 贴]"),
        (("mface", {}), "[商城表情]"),
        (("record", {"file": "a.amr"}), "[语音]"),
        (("video", {"file": "a.mp4"}), "[视频]"),
        (
            ("face", {"id": "178", "raw": {"faceIndex": 178, "faceText": "/斜眼笑"}}),
            "[表情:斜眼笑]",
        ),
        (("face", {"id": "9999", "raw": {"faceText": ""}}), "[表情:9999]"),
        (("face", {"id": 14}), "[表情:微笑]"),
        (("face", {"raw": None}), "[表情]"),
        (("file", {"file": "a.pdf", "file_size": "12"}), "[文件:a.pdf]"),
        (("file", {"name": "b.pdf", "file": "/tmp/x"}), "[文件:b.pdf]"),
        (("file", {"file": "C:\\Users\\x\\c.pdf"}), "[文件:c.pdf]"),
        (("file", {}), "[文件]"),
        (("json", {"data": '{"app":"x","prompt":"[分享]标题"}'}), "[卡片:[分享]标题]"),
        (("json", {"data": {"meta": {"news": {"title": "新\n闻"}}}}), "[卡片:新 闻]"),
        (("json", {"data": "{broken"}), "[卡片]"),
        (("json", {"data": "[" * 100_000}), "[卡片]"),
        (("json", {"data": "[1]"}), "[卡片]"),
        (("json", {"data": 5}), "[卡片]"),
        (("xml", {"data": '<msg brief="&#91;分享] A&amp;B"/>'}), "[卡片:[分享] A&B]"),
        (("xml", {"data": "<msg><item><title size='3'>标题</title></item></msg>"}), "[卡片:标题]"),
        (("forward", {"id": "73000"}), "[合并转发]"),
        (("poke", {"type": "1", "id": "1"}), "[戳一戳]"),
        (("dice", {"result": 4}), "[骰子:4]"),
        (("rps", {}), "[猜拳]"),
        (("music", {"type": "custom", "title": "歌"}), "[音乐:歌]"),
        (("share", {"title": "标题", "url": "https://example.invalid"}), "[链接:标题]"),
        (("location", {"lat": 1.5, "title": "公园"}), "[位置:公园]"),
        (("contact", {"type": "qq", "id": 30005}), "[推荐好友:30005]"),
        (("contact", {"type": "group", "id": "20005"}), "[推荐群:20005]"),
        (("markdown", {"content": "# 标题\r\n正文"}), "# 标题\n正文"),
        (("markdown", {}), "[Markdown]"),
        (("reply", {"id": "5"}), ""),
        (("brand_new", {"a": 1}), "[brand_new]"),
        (("bad\ntype]", {}), "[bad type]]"),
    ],
)
def test_each_kind_of_segment_has_a_readable_form(
    segment: tuple[str, dict[str, object]], expected: str
):
    assert render([Segment(*segment)], NAMES) == expected


def test_a_label_is_bounded():
    assert len(shown("file", name="长" * 5000)) < 80
    assert len(shown("mface", summary="长" * 5000)) < 80
    assert len(shown("x" * 5000)) < 80


def test_a_forward_shows_its_lines_where_they_are_inside():
    content = [
        {
            "sender": {"user_id": 30001, "nickname": "昵称", "card": "小鱼"},
            "message": "第一行\n第二行",
        },
        {
            "type": "node",
            "data": {
                "user_id": "30002",
                "nickname": "阿山",
                "content": [{"type": "image", "data": {}}],
            },
        },
        {"type": "node", "data": {"uin": 30003, "name": "阿海", "content": "[CQ:face,id=14]"}},
    ]
    assert shown("forward", id="1", content=content).split("\n") == [
        "[合并转发 3 条]",
        "  小鱼(30001)：第一行 第二行",
        "  阿山(30002)：[图片]",
        "  阿海(30003)：[表情:微笑]",
    ]


def test_what_follows_a_forward_starts_its_own_line():
    segments = [Segment("forward", forward_of(1)), Segment("text", {"text": "看"})]
    assert render(segments, {}) == "[合并转发 1 条]\n  小鱼(30001)：你好\n看"


def test_a_forward_that_was_fetched_shows_its_lines():
    segments = [Segment("forward", {"id": "73000"})]
    assert forward_id(segments) == "73000"
    answers = {"73000": forward_of(2)}
    assert forward_id(segments, answers) is None
    assert render(segments, {}, answers).split("\n") == [
        "[合并转发 2 条]",
        *["  小鱼(30001)：你好"] * 2,
    ]


def test_a_forward_with_content_needs_no_fetching():
    assert (
        forward_id([Segment("forward", {"id": "1", "content": forward_of(1)["messages"]})]) is None
    )
    assert forward_id([Segment("text", {"text": "a"})]) is None
    assert forward_id([Segment("forward", {})]) is None


def test_a_failed_fetch_is_not_asked_for_again():
    segments = [Segment("forward", {"id": "1"}), Segment("forward", {"id": "2"})]
    assert forward_id(segments, {"1": None}) == "2"
    assert forward_id(segments, {"1": None, "2": None}) is None
    assert render(segments, {}, {"1": None}) == "[合并转发][合并转发]"


def nested(depth: int) -> dict[str, object]:
    inner = nested(depth - 1)["messages"] if depth > 1 else []
    text = {"type": "text", "data": {"text": f"层{depth}"}}
    forward = [{"type": "forward", "data": {"id": str(depth), "content": inner}}] if inner else []
    return {"messages": [{"sender": {"nickname": "甲"}, "content": [text, *forward]}]}


def test_forwards_inside_forwards_are_followed_three_deep():
    lines = shown("forward", content=nested(5)["messages"]).split("\n")
    assert lines == [
        "[合并转发 1 条]",
        "  甲：层5[合并转发 1 条]",
        "    甲：层4[合并转发 1 条]",
        "      甲：层3[合并转发 1 条]",
    ]


def test_a_forward_inside_a_fetched_one_is_fetched_too_but_not_for_ever():
    loop = {"messages": [{"content": [{"type": "forward", "data": {"id": "1"}}]}]}
    segments = [Segment("forward", {"id": "0"})]
    assert forward_id(segments, {"0": loop}) == "1"
    assert forward_id(segments, {"0": loop, "1": loop}) is None
    assert render(segments, {}, {"0": loop, "1": loop}).count("\n") == 3


def test_a_message_shows_at_most_a_hundred_lines_of_forwards():
    segments = [Segment("forward", forward_of(70)), Segment("forward", forward_of(70))]
    text = render(segments, {})
    assert text.count("你好") == 100
    assert text.count("[合并转发 70 条]") == 2


@pytest.mark.parametrize("key", ["messages", "message", "content"])
def test_every_shape_of_the_answer_is_read(key: str):
    nodes = forward_of(1)["messages"]
    for answer in ({key: nodes}, nodes):
        text = render([Segment("forward", {"id": "1"})], {}, {"1": answer})
        assert text == "[合并转发 1 条]\n  小鱼(30001)：你好"


def test_a_forwarded_sender_without_a_name_is_looked_up():
    node = {"sender": {"user_id": "30001"}, "content": "早"}
    assert shown("forward", content=[node]) == "[合并转发 1 条]\n  小鱼(30001)：早"
    assert shown("forward", content=[{"content": "早"}]) == "[合并转发 1 条]\n  早"


def test_a_forwarded_message_cannot_forge_a_line():
    node = {
        "sender": {"user_id": 30001, "nickname": "甲\n乙"},
        "content": "早\n  小红(30002)：我同意\u2028啊",
    }
    assert shown("forward", content=[node]).split("\n") == [
        "[合并转发 1 条]",
        "  甲 乙(30001)：早   小红(30002)：我同意 啊",
    ]


@given(HOSTILE, HOSTILE, st.none() | HOSTILE)
def test_no_name_breaks_a_line(own: str, known: str, nickname: str | None):
    data = {"qq": "30001", "name": own}
    assert len(render([Segment("at", data)], {"30001": known}).splitlines()) == 1
    assert len(render([Segment("at", {"qq": "30001"})], {"30001": known}).splitlines()) == 1
    node = {"sender": {"nickname": nickname, "user_id": own}, "content": known}
    assert len(shown("forward", content=[node]).splitlines()) == 2


@given(TYPES, HOSTILE)
def test_no_label_breaks_a_line(type_: str, text: str):
    keys = ("name", "file", "summary", "title", "url", "id", "qq", "result", "prompt", "desc")
    data: dict[str, object] = dict.fromkeys(keys, text)
    data |= {"sub_type": 1, "raw": {"faceText": text}}
    data["data"] = json.dumps({"prompt": text}) if type_ == "json" else f'<msg brief="{text}">'
    assert len(render([Segment(type_, data)], {}).splitlines()) <= 1


@given(
    st.lists(
        st.builds(
            Segment,
            TYPES | st.text(max_size=5) | st.sampled_from(["text", "markdown", "reply"]),
            st.dictionaries(
                st.sampled_from("text qq id name raw data content messages sender summary".split()),
                st.recursive(
                    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
                    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=9), inner),
                    max_leaves=8,
                ),
            ),
        ),
        max_size=6,
    )
)
def test_rendering_is_total(segments: list[Segment]):
    render(segments, {}).encode()
    forward_id(segments)


@given(st.lists(st.integers(1, 60), min_size=1, max_size=5))
def test_the_lines_of_all_forwards_together_are_bounded(counts: list[int]):
    text = render([Segment("forward", forward_of(count)) for count in counts], {})
    assert text.count("你好") == min(sum(counts), 100)
