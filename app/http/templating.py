"""Templates in every language, and what stands in them: text of researchers, addresses of files, words for scripts."""

import asyncio
import hashlib
import re
from collections.abc import Iterable
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import nh3
from jinja2 import Environment, FileSystemLoader
from jinja2.ext import Extension
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

from app.chart_axes import format_with_places, use_minus_sign
from app.errors import Refusal, pluralize
from app.http.languages.catalogue import (
    ENGLISH,
    LANGUAGES,
    format_localized_number,
    format_money,
    text_direction,
    translate,
    translate_plural,
    translations_for,
    translations_for_scripts,
)
from app.http.languages.refusals import translate_refusal
from app.http.languages.templates import translate_template_source
from app.settings import easel_command_line
from app.text.latex import mark_formulas, replace_formulas_by_placeholders, restore_formulas
from app.text.markdown import markdown_parser
from app.text.result_cache import cache_results_by_size

PROJECT_ROOT = Path(__file__).resolve().parents[2]
STATIC_FOLDER = PROJECT_ROOT / "static"
INCLUDE_TAG_PATTERN = re.compile(r"""{% include "([^"]+)" %}""")
DESIGN_SCRIPT_PATTERN = re.compile(r'src="/static/(designs/\w+\.js)')
SCRIPT_IMPORT_PATTERN = re.compile(r'^import\b[^"]*"(\.[^"]+)"', re.MULTILINE)
MAX_MARKDOWN_WITHOUT_THREAD = 4_000  # characters of Markdown, which take a few milliseconds
LANGUAGE_PARAMETER = "lang"  # in an address: the language that somebody chose where they may


class InlineIncludes(Extension):
    """Puts templates that are included by their names where they stand, before Jinja compiles what includes them.

    One that stays apart is given all variables anew each time, and a HIT is drawn from a dozen. A change of what is
    included is seen at the next start.
    """

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:  # noqa: ARG002  (Jinja has it so)
        """A template's source with what it includes, in its language. What an included one sets remains its own."""
        whole = INCLUDE_TAG_PATTERN.sub(
            lambda found: f"{{% with %}}{self.included_source(found[1])}{{% endwith %}}", source
        )
        return translate_template_source(whole, translations_for(self.environment.globals["language"]).gettext)

    def included_source(self, name: str) -> str:
        """The source of a template, without the end of its last line, as Jinja reads it. Raises `TemplateNotFound`."""
        loader = self.environment.loader
        assert loader is not None  # noqa: S101  (ours has one)
        source, filename, _ = loader.get_source(self.environment, name)
        return self.preprocess(source.removesuffix("\n"), name, filename)


# In English. With `auto_reload` it would look at the files' times on every page.
english_environment = Environment(
    loader=FileSystemLoader(PROJECT_ROOT / "templates"),
    autoescape=True,
    auto_reload=False,
    trim_blocks=True,
    lstrip_blocks=True,
)
english_environment.add_extension(InlineIncludes)


def language_globals(language: str) -> dict[str, Any]:
    """What templates know of the language that they are in."""
    return {
        "language": language,
        "direction": text_direction(language),
        "ngettext": partial(translate_plural, language),
        "refused": partial(translate_refusal_message, language),
        "said": partial(translate, language),
        "decimal": partial(format_localized_number, language=language),
        "money": partial(format_money, language=language),
        "script_words": partial(script_translations_json, language),
    }


def translate_refusal_message(language: str, refusal: Refusal) -> str:
    """What a refusal says, in a language."""
    return translate_refusal(language, refusal.code, refusal.message)


@cache
def script_translations_json(language: str, design: str | None) -> str:
    """What the scripts of a design's page say, as JSON that can stand in HTML; empty where they need none."""
    head_templates = [f"designs/{design}_head.html", "designs/plain_head.html"]
    script_tag = DESIGN_SCRIPT_PATTERN.search(english_environment.select_template(head_templates).render())
    translations = (
        translations_for_scripts(language, script_and_imports(STATIC_FOLDER / script_tag[1])) if script_tag else {}
    )
    return htmlsafe_json_dumps(translations) if translations else ""


def script_and_imports(first_script: Path) -> set[str]:
    """A script and all that it imports, by their paths as catalogues have them."""
    scripts, waiting = {first_script}, [first_script]
    while waiting:
        script = waiting.pop()
        imported = {(script.parent / name).resolve() for name in SCRIPT_IMPORT_PATTERN.findall(script.read_text())}
        waiting += imported - scripts
        scripts |= imported
    return {script.relative_to(PROJECT_ROOT).as_posix() for script in scripts}


def query_before_language(query: Iterable[tuple[str, str]]) -> str:
    """The query of the page that is shown, up to the code of a language to see it in."""
    other_parameters = [(name, value) for name, value in query if name != LANGUAGE_PARAMETER]
    return "?" + urlencode([*other_parameters, (LANGUAGE_PARAMETER, "")])


@cache
def template_environment(language: str) -> Environment:
    """The templates in a language; each is compiled when it is first needed."""
    if language == ENGLISH:
        return english_environment
    environment = english_environment.overlay()
    environment.globals = english_environment.globals | language_globals(language)
    return environment


@cache
def static_url(path: str) -> str:
    """The address of a file under static/, with its hash, so that browsers may keep it for ever."""
    digest = hashlib.sha256((STATIC_FOLDER / path).read_bytes()).hexdigest()[:12]
    return f"/static/{path}?v={digest}"


def item_noun(campaign: Any) -> str:
    """What the items of a campaign are called."""
    return "system" if campaign.segment_count else "item"


MARKDOWN_RENDERER = markdown_parser("table")


@cache_results_by_size
def markdown_to_safe_html(markdown: str) -> Markup:
    """Markdown as HTML that is safe to show to anyone: no scripts, no styles, nothing loaded from other hosts."""
    html = MARKDOWN_RENDERER.render(markdown)
    return Markup(nh3.clean(html, tags=nh3.ALLOWED_TAGS - {"img"}))  # noqa: S704  (this is the sanitiser)


@cache_results_by_size
def markdown_with_formulas_to_html(markdown: str) -> Markup:
    """Return Markdown as `sanitised` does, with its formulas in LaTeX marked."""
    hidden, formulas = replace_formulas_by_placeholders(markdown)
    return restore_formulas(markdown_to_safe_html(hidden), formulas)


async def convert_markdown_texts(*markdown: str, latex: bool) -> list[Markup]:
    """Return Markdown texts as HTML that is safe to show to anyone. Long ones are converted in a thread, so that other
    requests do not wait. latex: whether formulas are typeset.
    """
    convert = markdown_with_formulas_to_html if latex else markdown_to_safe_html
    if sum(map(len, markdown)) > MAX_MARKDOWN_WITHOUT_THREAD:
        return await asyncio.to_thread(lambda: [*map(convert, markdown)])
    return [*map(convert, markdown)]


english_environment.filters |= {
    "formulas": mark_formulas,
    "plural": pluralize,
    "noun": item_noun,
    "written": format_with_places,
    "minus": use_minus_sign,
}
english_environment.globals |= {
    "static_url": static_url,
    "easel_command": easel_command_line(),
    "LANGUAGES": LANGUAGES,
    "in_language": query_before_language,
    **language_globals(ENGLISH),
}
