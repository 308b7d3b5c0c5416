"""Who listens to events beside the program."""

from plugins.intake import OURS, is_alone


def test_with_our_plugins_and_matchers_alone_nobody_else_listens():
    assert is_alone([*OURS, "plugins.chat"])


def test_a_plugin_or_a_matcher_of_anybody_else_listens():
    assert not is_alone([*OURS, "nonebot_plugin_weather"])
    assert not is_alone([*OURS, None])
    assert not is_alone([*OURS, "src.plugins.chat"])
