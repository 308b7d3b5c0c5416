"""What a model is told when more than half of its answer was refused.

See ``docs/memory.md``, "Checks".
"""

from bot.memory.verdict import Checked

_MAX_LINES = 80


def repair_request(checked: Checked) -> str:
    """Return the Chinese text of the repair turn: each refused path with its reason.

    It holds nothing that anybody wrote, only places in the model's own answer.
    """
    lines = [f"- {one.path}：{one.explanation}" for one in checked.rejections[:_MAX_LINES]]
    more = len(checked.rejections) - len(lines)
    if more:
        lines.append(f"- 另有 {more} 条")
    counts = checked.counts
    return "\n".join(
        [
            f"上面的答案共 {counts.leaves} 条，其中 {counts.refused} 条没有通过检查：",
            *lines,
            "请只把这些条目改正后，按同样的格式再输出一个 JSON 对象；其余条目已经收下，不必重复。",
            "没有依据的条目不要硬改，直接去掉；一条也改不了就输出 {}。",
        ]
    )
