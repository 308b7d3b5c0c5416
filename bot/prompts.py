"""Prompts are files with a contract: ``prompts/*.j2``, rendered with every variable given.

See ``docs/architecture.md``, "House rules".
"""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from bot.paths import ROOT

PROMPTS_FOLDER = ROOT / "prompts"


class Prompts:
    """The templates of one folder. A variable that a template names and nobody gives raises.

    Prompts are plain text for a model, so nothing is escaped as HTML; people's text enters as
    lines of JSON (``bot/text.py``).
    """

    def __init__(self, folder: Path = PROMPTS_FOLDER) -> None:
        self._environment = Environment(
            loader=FileSystemLoader(folder),
            undefined=StrictUndefined,
            autoescape=False,
            keep_trailing_newline=False,
            # Else each rendering asks the disk whether its file has changed.
            auto_reload=False,
        )

    def render(self, name: str, /, **variables: object) -> str:
        """Return ``prompts/<name>.j2`` with its variables.

        Raises:
            jinja2.UndefinedError: a variable of the template was not given.
            jinja2.TemplateNotFound: there is no such prompt.
        """
        template: Template = self._environment.get_template(f"{name}.j2")
        return template.render(**variables)
