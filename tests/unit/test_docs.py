"""The documents: what they list exists, what exists is listed, every reference leads somewhere."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.__main__ import COMMANDS as VERBS
from bot.config import load_config, variables
from bot.conversation.commands import COMMANDS
from bot.export import DOCUMENTS as EXPORTED
from bot.guidance import napcat_configuration
from bot.memory.masking import is_sensitive
from bot.settings import DEFINITIONS, Settings, shown

ROOT = Path(__file__).parents[2]
READMES = ("README.md", "README.zh-CN.md")
DOCUMENTS = sorted(
    path.relative_to(ROOT).as_posix() for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
)
OWN_DOCUMENTS = [name for name in DOCUMENTS if not name.startswith(("CHANGELOG", "CONTRIBUTING"))]

AUDIENCES = {
    "anyone": {"everyone", "所有人"},
    "host": {
        "group admins, operators; in private anybody",
        "群管理、操作者；私聊里是本人",
    },
    "group_admin": {"group admins, operators", "群管理、操作者"},
    "operator": {"operators", "操作者"},
}

_KEY = r"[a-z]+(?:[A-Z][a-z]+)*"
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
_HEADING = re.compile(r"^(#+) (.+)$", re.M)
_CELL_BORDER = re.compile(r"(?<!\\)\|")
_CODE = re.compile(r"`([^`]+)`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_OWN_PATH = re.compile(r"`((?:bot|plugins|prompts|docs)/[\w./-]+)`")
_CITATION = re.compile(r'docs/([\w-]+)\.md`*(?:, ((?:(?:, | and |, and )?"[^"]+")+))?')
_LINE_BREAK = re.compile(r"\s*\n[ \t]*(?:#|--)?[ \t]*")


def _text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _prose(name: str) -> str:
    return _FENCE.sub("", _text(name))


def _headings(name: str) -> list[tuple[int, str]]:
    return [(len(marks), title) for marks, title in _HEADING.findall(_prose(name))]


def _section(name: str, title: str) -> str:
    """Return what stands under a heading, with what is below it."""
    text = _text(name)
    heading = re.search(rf"^(#+) {re.escape(title)}$", text, re.M)
    assert heading, title
    after = text[heading.end() :]
    return re.split(rf"^#{{1,{len(heading[1])}}} ", after, maxsplit=1, flags=re.M)[0]


def _rows(name: str) -> list[list[str]]:
    """Return the cells of every table's rows."""
    return _cells(_prose(name))


def _cells(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in _CELL_BORDER.split(line)[1:-1]] for line in lines]


def _listed(name: str, pattern: str) -> list[tuple[str, list[str]]]:
    """Return what the first cells of the tables name, where that has a form, with the rest."""
    return [
        (item, cells)
        for cells in _rows(name)
        for item in _CODE.findall(cells[0])
        if re.fullmatch(pattern, item)
    ]


def _names(listed: list[tuple[str, list[str]]]) -> list[str]:
    return sorted(item for item, _ in listed)


def _anchor(title: str) -> str:
    """Return what GitHub calls a heading in addresses."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _citations() -> Iterator[tuple[str, str, list[str]]]:
    for folder in ("bot", "plugins", "prompts", "tests", "bench"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in {".py", ".j2", ".sql"}:
                continue
            text = _LINE_BREAK.sub(" ", path.read_text(encoding="utf-8"))
            for document, titles in _CITATION.findall(text):
                yield str(path.relative_to(ROOT)), document, re.findall(r'"([^"]+)"', titles)


@pytest.mark.parametrize("readme", READMES)
def test_a_readme_lists_every_setting_and_no_other(readme: str):
    assert _names(_listed(readme, _KEY)) == sorted(DEFINITIONS)


@pytest.mark.parametrize("readme", READMES)
def test_a_readme_gives_the_default_of_each_setting_and_marks_those_of_a_chat(readme: str):
    told = dict(_listed(readme, _KEY))
    for key, setting in DEFINITIONS.items():
        assert told[key][0].endswith(r"\*") == setting.per_chat, key
        assert told[key][1] == f"`{shown(key, Settings())}`", key


@pytest.mark.parametrize(
    ("readme", "title"), [("README.md", "In effect now"), ("README.zh-CN.md", "现在生效的")]
)
def test_a_readme_says_of_those_settings_that_the_code_reads_that_they_are_in_effect(
    readme: str, title: str
):
    told = {item for cells in _cells(_section(readme, title)) for item in _CODE.findall(cells[0])}
    sources = [*ROOT.glob("bot/**/*.py"), *ROOT.glob("plugins/**/*.py")]
    declared = ROOT / "bot" / "settings.py"
    code = "\n".join(path.read_text(encoding="utf-8") for path in sources if path != declared)
    assert told == {
        key for key, setting in DEFINITIONS.items() if re.search(rf"\.{setting.field}\b", code)
    }


@pytest.mark.parametrize("readme", READMES)
def test_a_readme_lists_every_variable_and_no_other(readme: str):
    assert _names(_listed(readme, r"[A-Z][A-Z_]+")) == sorted(variables())


@pytest.mark.parametrize("readme", READMES)
def test_a_readme_lists_every_command_with_who_may_use_it(readme: str):
    told = [(item.replace(r"\|", "|"), cells[1]) for item, cells in _listed(readme, r"/.+")]
    known = {f"/{spec.name} {spec.usage}".strip(): spec.audience for spec in COMMANDS}
    assert sorted(item for item, _ in told) == sorted(known)
    for item, who in told:
        assert who in AUDIENCES[known[item]], item


@pytest.mark.parametrize("readme", READMES)
def test_a_readme_lists_every_verb_of_the_command_line(readme: str):
    told = _names(_listed(readme, r"python -m bot .+"))
    assert sorted(line.split()[3] for line in told) == sorted(VERBS)


def test_both_readmes_have_the_same_headings_one_beside_the_other():
    english, chinese = (_headings(readme) for readme in READMES)
    assert [level for level, _ in english] == [level for level, _ in chinese]


def test_both_readmes_show_the_same_commands_and_files():
    english, chinese = (_FENCE.findall(_text(readme)) for readme in READMES)
    assert english == chinese


def test_both_readmes_have_tables_of_the_same_rows():
    english, chinese = (_rows(readme) for readme in READMES)
    assert [_CODE.findall(row[0]) for row in english] == [_CODE.findall(row[0]) for row in chinese]


@pytest.mark.parametrize("readme", READMES)
def test_what_a_readme_gives_to_paste_into_napcat_is_what_the_doctor_prints(
    readme: str, tmp_path: Path
):
    (pasted,) = [text for language, text in _FENCE.findall(_text(readme)) if language == "json"]
    assert json.loads(pasted) == json.loads(napcat_configuration(load_config(tmp_path, {})))


@pytest.mark.parametrize("readme", READMES)
def test_a_readme_names_targets_that_make_has(readme: str):
    phony = re.search(r"^\.PHONY: (.*)$", _text("Makefile"), re.M)
    assert phony
    named = re.findall(r"^make (\w+)|`make (\w+)", _text(readme), re.M)
    assert {block or inline for block, inline in named} <= set(phony[1].split())


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_link_to_a_file_of_the_project_leads_to_it(document: str):
    for target in _LINK.findall(_prose(document)):
        if re.match(r"\w+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (ROOT / document).parent / path if path else ROOT / document
        assert file.resolve().is_relative_to(ROOT), target
        assert file.exists(), target
        if anchor:
            titles = _headings(file.resolve().relative_to(ROOT).as_posix())
            assert anchor in {_anchor(title) for _, title in titles}, target


@pytest.mark.parametrize("document", OWN_DOCUMENTS)
def test_a_file_that_a_document_names_exists(document: str):
    missing = [
        name
        for name in _OWN_PATH.findall(_prose(document))
        if not list(ROOT.glob(name.rstrip("/")))
    ]
    assert missing == []


def test_a_heading_that_the_code_cites_exists():
    lost = [
        f'{path}: docs/{document}.md, "{title}"'
        for path, document, titles in _citations()
        for title in titles
        if title not in [known for _, known in _headings(f"docs/{document}.md")]
    ]
    assert lost == []


def test_a_document_that_the_code_cites_exists():
    cited = {document for _, document, _ in _citations()}
    assert {"architecture", "onebot"} <= cited
    assert [name for name in cited if not (ROOT / "docs" / f"{name}.md").exists()] == []


def test_the_house_names_every_file_and_room():
    house = _section("docs/architecture.md", "The house")
    rooms = {path.parent.name for path in ROOT.glob("bot/*/__init__.py")}
    files = {path.name for path in ROOT.glob("bot/*.py")} - {"__init__.py"}
    files |= {path.name for path in ROOT.glob("bot/memory/*.py")} - {"__init__.py", "daily.py"}
    named = set(re.findall(r"[\w/]+\.py", house))
    assert sorted(files - {name.rpartition("/")[2] for name in named}) == []
    assert [room for room in sorted(rooms) if f"`bot/{room}/`" not in house] == []


def test_the_tables_of_the_store_are_those_of_its_migrations():
    steps = (ROOT / "bot" / "store" / "migrations").glob("*.sql")
    made = {
        name
        for step in steps
        for name in re.findall(r"^CREATE TABLE (\w+)", step.read_text(encoding="utf-8"), re.M)
    }
    storage = _section("docs/architecture.md", "Storage")
    (listed,) = re.findall(r"^\*\*Tables\.\*\*(.*?)\n\n", storage, re.M | re.S)
    assert made <= set(_CODE.findall(listed))


def test_the_exported_example_has_every_document_and_nothing_private_in_it():
    ((_, example),) = [
        fence for fence in _FENCE.findall(_section("docs/memory.md", "Export")) if fence[0]
    ]
    exported = json.loads(example)
    assert exported["documents"].keys() == {*EXPORTED, "summary"}
    assert not is_sensitive(example)


def test_every_folder_of_tests_is_explained_and_no_other():
    explained = {item for item, _ in _listed("CONTRIBUTING.md", r"tests/\w+")}
    assert {f"tests/{path.parent.name}" for path in ROOT.glob("tests/*/test_*.py")} == explained


def test_decisions_are_numbered_and_tell_context_decision_and_consequences():
    records = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert [int(path.name[:4]) for path in records] == list(range(1, len(records) + 1))
    for path in records:
        text = path.read_text(encoding="utf-8")
        assert text.startswith(f"# {path.name[:4]}: "), path.name
        parts = re.findall(r"^\*\*(Context|Decision|Consequences)\.\*\*", text, re.M)
        assert parts == ["Context", "Decision", "Consequences"], path.name
