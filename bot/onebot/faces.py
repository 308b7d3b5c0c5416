"""The names of QQ's common built-in faces, for clients that send only their ids."""

from collections.abc import Mapping
from types import MappingProxyType

_NAMES_FROM_ZERO = (
    "惊讶 撇嘴 色 发呆 得意 流泪 害羞 闭嘴 睡 大哭 尴尬 发怒 调皮 呲牙 微笑 难过 酷 - 抓狂 吐 "
    "偷笑 可爱 白眼 傲慢 饥饿 困 惊恐 流汗 憨笑 悠闲 奋斗 咒骂 疑问 嘘 晕 折磨 衰 骷髅 敲打 再见"
)
_NAMES_FROM_96 = (
    "冷汗 擦汗 抠鼻 鼓掌 糗大了 坏笑 左哼哼 右哼哼 哈欠 鄙视 委屈 快哭了 阴险 左亲亲 吓 可怜"
)
_NAMES_FROM_171 = "茶 眨眼睛 泪奔 无奈 卖萌 小纠结 喷血 斜眼笑 doge 惊喜 戳一戳 笑哭 我最美"
_NAMES_FROM_262 = "脑阔疼 沧桑 捂脸 辣眼睛 哦哟 头秃 问号脸 暗中观察 emm 吃瓜 呵呵哒 我酸了"
_OTHER_NAMES = {
    "41": "发抖",
    "42": "爱情",
    "43": "跳跳",
    "46": "猪头",
    "49": "拥抱",
    "53": "蛋糕",
    "59": "便便",
    "60": "咖啡",
    "63": "玫瑰",
    "64": "凋谢",
    "66": "爱心",
    "67": "心碎",
    "74": "太阳",
    "75": "月亮",
    "76": "赞",
    "77": "踩",
    "78": "握手",
    "79": "胜利",
    "85": "飞吻",
    "86": "怄火",
    "89": "西瓜",
    "112": "菜刀",
    "116": "示爱",
    "118": "抱拳",
    "119": "勾引",
    "120": "拳头",
    "121": "差劲",
    "122": "爱你",
    "123": "NO",
    "124": "OK",
    "129": "挥手",
    "144": "喝彩",
    "147": "棒棒糖",
    "212": "托腮",
    "277": "汪汪",
    "281": "无眼笑",
    "282": "敬礼",
    "285": "摸鱼",
    "299": "牛啊",
    "317": "菜汪",
    "318": "崇拜",
    "319": "比心",
    "320": "庆祝",
}


def _numbered(first: int, names: str) -> dict[str, str]:
    return {str(id_): name for id_, name in enumerate(names.split(), first) if name != "-"}


FACE_NAMES: Mapping[str, str] = MappingProxyType(
    _numbered(0, _NAMES_FROM_ZERO)
    | _numbered(96, _NAMES_FROM_96)
    | _numbered(171, _NAMES_FROM_171)
    | _numbered(262, _NAMES_FROM_262)
    | _OTHER_NAMES
)
"""Face id → name."""
