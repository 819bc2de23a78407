"""Templates in every language, with their filters and globals: Markdown, URLs of static files, words for scripts."""

import asyncio
import hashlib
import re
from collections.abc import Iterable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlencode

import nh3
from jinja2 import Environment, FileSystemLoader
from jinja2.ext import Extension
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

from app.errors import join_with_and, pluralize
from app.http.languages.catalogue import (
    ENGLISH,
    LANGUAGES,
    compile_translations_of_language,
    format_localized_number,
    format_money,
    script_translation_by_english_words,
    text_direction,
    translate,
    translate_plural,
)
from app.http.languages.refusals import translate_refusal
from app.http.languages.templates import translate_template_source
from app.settings import easel_command_to_type, project_folder
from app.text.ages import describe_age
from app.text.durations import format_duration
from app.text.latex import html_with_formulas_put_back, markdown_with_placeholders_and_formulas, with_marked_formulas
from app.text.markdown import make_markdown_parser
from app.text.numbers import format_with_places, replace_hyphen_by_minus_sign
from app.text.result_cache import cache_results_by_size

STATIC_FOLDER = project_folder() / "static"
INCLUDE_TAG_PATTERN = re.compile(r"""{% include "([^"]+)" %}""")
DESIGN_SCRIPT_PATTERN = re.compile(r'src="/static/(designs/\w+\.js)')
SCRIPT_IMPORT_PATTERN = re.compile(r'(?:^import\b[^"]*|\bimport\()"(\.[^"]+)"', re.MULTILINE)
MAX_MARKDOWN_WITHOUT_THREAD = 4_000  # characters, which take a few milliseconds
LANGUAGE_PARAMETER = "lang"  # in a URL: the language that the reader chose


class InlineIncludes(Extension):
    """Jinja extension that replaces each include of a named template by its source before compilation.

    Jinja copies all variables for each include at run time, and the page of a HIT has a dozen includes. A change of an
    included template takes effect at the next start.
    """

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:  # noqa: ARG002  (Jinja has it so)
        """Return a template's source with its includes, translated. Variables set by an include stay local to it."""
        with_includes = INCLUDE_TAG_PATTERN.sub(
            lambda tag: f"{{% with %}}{self.preprocessed_source_of_include(tag[1])}{{% endwith %}}", source
        )
        translations = compile_translations_of_language(self.environment.globals["language"])
        return translate_template_source(with_includes, translations.gettext)

    def preprocessed_source_of_include(self, name: str) -> str:
        """Return a template's source without its last line end, as Jinja reads it. Raises `TemplateNotFound`."""
        loader = self.environment.loader
        assert loader is not None  # noqa: S101  (this environment has one)
        source, filename, _ = loader.get_source(self.environment, name)
        return self.preprocess(source.removesuffix("\n"), name, filename)


class ItemEnvironment(Environment):
    """Jinja environment in which `x[name]` of a mapping without that name is undefined.

    Jinja looks for an attribute then, and would show a text such as `clear` or `items` as a method of Python.
    """

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Return an item; of objects that are no mappings, also an attribute."""
        try:
            return obj[argument]
        except (LookupError, TypeError):
            if isinstance(obj, Mapping):
                return self.undefined(obj=obj, name=argument)
            return super().getitem(obj, argument)


# Templates in English. With `auto_reload` Jinja would check the files' times for every page.
english_environment = ItemEnvironment(
    loader=FileSystemLoader(project_folder() / "templates"),
    autoescape=True,
    auto_reload=False,
    trim_blocks=True,
    lstrip_blocks=True,
)
english_environment.add_extension(InlineIncludes)


def template_globals_of_language(language: str) -> dict[str, Any]:
    """Return the globals of templates that depend on their language."""
    return {
        "language": language,
        "direction": text_direction(language),
        "ngettext": partial(translate_plural, language),
        "translate_refusal": lambda refusal: translate_refusal(language, refusal.code, refusal.message),
        "translate_text": partial(translate, language),
        "decimal": partial(format_localized_number, language=language),
        "money": partial(format_money, language=language),
        "script_words": partial(script_translations_json_or_empty, language),
    }


@cache
def script_translations_json_or_empty(language: str, design: str | None) -> str:
    """Return the translations for the scripts of a design's page, as JSON that is safe in HTML; empty if none."""
    head_templates = [f"designs/{design}_head.html", "designs/plain_head.html"]
    script_tag = DESIGN_SCRIPT_PATTERN.search(english_environment.select_template(head_templates).render())
    translations = (
        script_translation_by_english_words(language, paths_of_script_and_its_imports(STATIC_FOLDER / script_tag[1]))
        if script_tag
        else {}
    )
    return htmlsafe_json_dumps(translations) if translations else ""


def paths_of_script_and_its_imports(first_script: Path) -> set[str]:
    """Return the paths of a script and of all scripts that it imports, as catalogues write them."""
    scripts, waiting = {first_script}, [first_script]
    while waiting:
        script = waiting.pop()
        imported = {(script.parent / name).resolve() for name in SCRIPT_IMPORT_PATTERN.findall(script.read_text())}
        waiting += imported - scripts
        scripts |= imported
    return {script.relative_to(STATIC_FOLDER.parent).as_posix() for script in scripts}


def query_string_ending_with_lang(query: Iterable[tuple[str, str]]) -> str:
    """Return the query of the present page, ending with `lang=`, to which a language's code is appended."""
    other_parameters = [(name, value) for name, value in query if name != LANGUAGE_PARAMETER]
    return "?" + urlencode([*other_parameters, (LANGUAGE_PARAMETER, "")])


@cache
def template_environment(language: str) -> Environment:
    """Return the templates of a language; each is compiled at its first use."""
    if language == ENGLISH:
        return english_environment
    environment = english_environment.overlay()
    environment.globals = english_environment.globals | template_globals_of_language(language)
    return environment


@cache
def static_url(path: str) -> str:
    """Return the URL of a file under static/, with its hash, so that browsers may cache it forever."""
    digest = hashlib.sha256((STATIC_FOLDER / path).read_bytes()).hexdigest()[:12]
    return f"/static/{path}?v={digest}"


class SegmentedCampaign(Protocol):
    """A campaign whose items are systems if there are segments."""

    @property
    def segment_count(self) -> int: ...


def item_noun(campaign: SegmentedCampaign) -> str:
    """Return the noun for the items of a campaign: system or item."""
    return "system" if campaign.segment_count else "item"


MARKDOWN_RENDERER = make_markdown_parser("table")


@cache_results_by_size
def markdown_to_safe_html(markdown: str) -> Markup:
    """Return Markdown as safe HTML: no scripts, no styles, nothing loaded from other hosts."""
    html = MARKDOWN_RENDERER.render(markdown)
    return Markup(nh3.clean(html, tags=nh3.ALLOWED_TAGS - {"img"}))  # noqa: S704  (this is the sanitiser)


@cache_results_by_size
def markdown_with_formulas_to_html(markdown: str) -> Markup:
    """Return Markdown as safe HTML, with its LaTeX formulas marked."""
    hidden, formulas = markdown_with_placeholders_and_formulas(markdown)
    return html_with_formulas_put_back(markdown_to_safe_html(hidden), formulas)


async def markdown_texts_to_safe_html(*markdown: str, mark_formulas: bool) -> list[Markup]:
    """Return Markdown texts as safe HTML. Long texts are converted in a thread, so that other requests do not wait.

    Args:
        *markdown: The texts.
        mark_formulas: True to mark formulas for typesetting.

    """
    convert = markdown_with_formulas_to_html if mark_formulas else markdown_to_safe_html
    if sum(map(len, markdown)) > MAX_MARKDOWN_WITHOUT_THREAD:
        return await asyncio.to_thread(lambda: [*map(convert, markdown)])
    return [*map(convert, markdown)]


english_environment.filters |= {
    "ago": describe_age,
    "formulas": with_marked_formulas,
    "plural": pluralize,
    "join_with_and": join_with_and,
    "duration": format_duration,
    "noun": item_noun,
    "with_places": format_with_places,
    "minus": replace_hyphen_by_minus_sign,
}
english_environment.globals |= {
    "static_url": static_url,
    "easel_command": easel_command_to_type(),
    "LANGUAGES": LANGUAGES,
    "in_language": query_string_ending_with_lang,
    **template_globals_of_language(ENGLISH),
}
