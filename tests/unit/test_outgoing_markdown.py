"""Markdown flattened for QQ, and ordinary text left alone."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bot.conversation.markdown import flattened


@pytest.mark.parametrize(
    "text",
    [
        "2*3*4",
        "长*宽*高",
        "(a+b)*c*(d)",
        "2**3**4",
        "a_b_c",
        "__init__ 和 __name__",
        "C#",
        "#话题#",
        "#1 号",
        ">_<",
        "> _ <",
        ">>> print(1)",
        "^_^ 你好 ^_^",
        "(*_*) (*^_^*) -_- T_T @_@",
        "_(:з」∠)_",
        "¯\\_(ツ)_/¯",
        "(๑*◡*๑) (*´▽`*)",
        "QAQ* 嘤*",
        "f**k s**t",
        "他是个**，你也是个**",
        "好的~~么么哒~~",
        "~~~",
        "1. 第一\n2. 第二",
        "3 > 2 < 4",
        "a | b",
        "src/*/test/*.py a/**/b/**/c",
        "print(*args, **kwargs)",
        "f(x)[0](见下)",
        "I <3 you & me",
        "-5 度",
        "$x_1 + x_2$",
        "\\[ x \\]",
        "https://a.example/x_y_z?q=1*2*3",
        "好的[CQ:at,qq=all][CQ:image,file=file:///etc/passwd]",
    ],
)
def test_ordinary_text_stays_as_it_was_written(text: str):
    assert flattened(text) == text


@pytest.mark.parametrize(
    ("markdown", "plain"),
    [
        ("# 标题\n## 小标题 ##\n文", "标题\n小标题\n文"),
        ("标题\n====\n文", "标题\n\n文"),
        ("**粗** *斜* _斜_ __粗__ ***都*** ~~删~~", "粗 斜 斜 粗 都 删"),
        ("这是**重点**内容", "这是重点内容"),
        ("**重点：**是", "重点：是"),
        ("他说**“好”**了", "他说“好”了"),
        ("**a *b* c**", "a b c"),
        ("**`x`**：y", "x：y"),
        ("[文](https://a.example/x)", "文 (https://a.example/x)"),
        ('[文](https://a.example/x_(y) "题")', "文 (https://a.example/x_(y))"),
        ("**[文](https://a.example)**", "文 (https://a.example)"),
        ("[https://a.example](https://a.example)", "https://a.example"),
        ("<https://a.example>", "https://a.example"),
        ("![猫](https://a.example/c.png)", "猫 (https://a.example/c.png)"),
        ("![](https://a.example/c.png)", "图片 (https://a.example/c.png)"),
        ("![猫](data:image/png;base64,AAAA)", "猫"),
        ("- 甲\n* 乙\n  - 丙", "· 甲\n· 乙\n  · 丙"),
        ("- [ ] 甲\n- [x] 乙", "☐ 甲\n☑ 乙"),
        ("1. **甲**：乙\n   - 丙", "1. 甲：乙\n   · 丙"),
        ("> 引用\n> **二**\n>> 三", "引用\n二\n三"),
        ("甲\n\n---\n\n乙\n***\n丙", "甲\n\n乙\n\n丙"),
        ("甲<br>乙<BR />丙", "甲\n乙\n丙"),
        ("用`a*b*c`和``x ` y``", "用a*b*c和x ` y"),
        ("\\*不是\\* snake\\_case \\# 号", "*不是* snake_case # 号"),
    ],
)
def test_markup_is_taken_away_and_its_text_stays(markdown: str, plain: str):
    assert flattened(markdown) == plain


def test_a_fence_goes_and_its_code_stays_to_the_letter():
    code = "def f():\n    # **no** heading\n\n\n    return a_b * `c`"
    assert flattened(f"看：\n```python\n{code}\n```\n**完**") == f"看：\n{code}\n完"


def test_a_fence_may_be_waves_that_name_a_language():
    assert flattened("~~~py\n# a\n~~~\n*完*") == "# a\n完"


def test_an_unclosed_fence_reaches_to_the_end():
    assert flattened("```\n# a\n**b**") == "# a\n**b**"


def test_a_shorter_fence_inside_a_longer_one_is_code():
    assert flattened("````\n```\nx\n```\n````") == "```\nx\n```"


def test_a_table_becomes_lines_of_cells():
    table = "| 名 | 分 |\n| --- | :-: |\n| **小鱼** | 90 |\n| - | - |\n\n完"
    assert flattened(table) == "名 | 分\n小鱼 | 90\n- | -\n\n完"


def test_a_table_without_outer_borders_is_a_table_too():
    assert flattened("名|分\n-|-\n小鱼|a\\|b<br>c") == "名 | 分\n小鱼 | a|b c"


def test_a_text_that_is_nothing_but_markup_comes_back():
    assert flattened("---") == "---"


@given(st.text(alphabet="*_~`#>-|=+ \n\t中文字（）[]!.。：，\\/<\"'"))
@example("```\n中")
@example("|中|\n|-|\n|文|")
def test_no_letter_is_ever_lost(markdown: str):
    def letters(text: str) -> list[str]:
        return [character for character in text if character.isalpha()]

    assert letters(flattened(markdown)) == letters(markdown)


@given(st.text(alphabet="中文字abc123 ，。！？：；（）“”\n"))
def test_text_without_signs_keeps_every_word(text: str):
    assert flattened(text).split() == text.split()
