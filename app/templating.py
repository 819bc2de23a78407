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

from app.drawing import true_minus, written
from app.errors import Refusal, plural
from app.languages.catalogue import ENGLISH, LANGUAGES, counted, decimal, direction, for_scripts, money, said, words
from app.languages.refusals import in_words
from app.languages.templates import translated
from app.latex import hide_formulas, mark_formulas, show_formulas
from app.markdown import markdown_parser
from app.result_cache import remembered
from app.settings import easel_command

ROOT = Path(__file__).resolve().parents[1]
STATIC = ROOT / "static"
INCLUDE = re.compile(r"""{% include "([^"]+)" %}""")
FIRST_SCRIPT = re.compile(r'src="/static/(designs/\w+\.js)')
IMPORTED = re.compile(r'^import\b[^"]*"(\.[^"]+)"', re.MULTILINE)
DRAWN_AT_ONCE = 4_000  # characters of Markdown, which take a few milliseconds
CHOSEN = "lang"  # in an address: the language that somebody chose where they may


class Inlined(Extension):
    """Puts templates that are included by their names where they stand, before Jinja compiles what includes them.

    One that stays apart is given all variables anew each time, and a HIT is drawn from a dozen. A change of what is
    included is seen at the next start.
    """

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:  # noqa: ARG002  (Jinja has it so)
        """A template's source with what it includes, in its language. What an included one sets remains its own."""
        whole = INCLUDE.sub(lambda found: f"{{% with %}}{self.included(found[1])}{{% endwith %}}", source)
        return translated(whole, words(self.environment.globals["language"]).gettext)

    def included(self, name: str) -> str:
        """The source of a template, without the end of its last line, as Jinja reads it. Raises `TemplateNotFound`."""
        loader = self.environment.loader
        assert loader is not None  # noqa: S101  (ours has one)
        source, filename, _ = loader.get_source(self.environment, name)
        return self.preprocess(source.removesuffix("\n"), name, filename)


# In English. With `auto_reload` it would look at the files' times on every page.
templates = Environment(
    loader=FileSystemLoader(ROOT / "templates"),
    autoescape=True,
    auto_reload=False,
    trim_blocks=True,
    lstrip_blocks=True,
)
templates.add_extension(Inlined)


def speaking(language: str) -> dict[str, Any]:
    """What templates know of the language that they are in."""
    return {
        "language": language,
        "direction": direction(language),
        "ngettext": partial(counted, language),
        "refused": partial(refusal_in, language),
        "said": partial(said, language),
        "decimal": partial(decimal, language=language),
        "money": partial(money, language=language),
        "script_words": partial(script_words, language),
    }


def refusal_in(language: str, refusal: Refusal) -> str:
    """What a refusal says, in a language."""
    return in_words(language, refusal.code, refusal.message)


@cache
def script_words(language: str, design: str | None) -> str:
    """What the scripts of a design's page say, as JSON that can stand in HTML; empty where they need none."""
    heads = [f"designs/{design}_head.html", "designs/plain_head.html"]
    first = FIRST_SCRIPT.search(templates.select_template(heads).render())
    found = for_scripts(language, scripts_of(STATIC / first[1])) if first else {}
    return htmlsafe_json_dumps(found) if found else ""


def scripts_of(first: Path) -> set[str]:
    """A script and all that it imports, by their paths as catalogues have them."""
    found, waiting = {first}, [first]
    while waiting:
        script = waiting.pop()
        named = {(script.parent / name).resolve() for name in IMPORTED.findall(script.read_text())}
        waiting += named - found
        found |= named
    return {script.relative_to(ROOT).as_posix() for script in found}


def in_language(query: Iterable[tuple[str, str]]) -> str:
    """The query of the page that is shown, up to the code of a language to see it in."""
    rest = [(name, value) for name, value in query if name != CHOSEN]
    return "?" + urlencode([*rest, (CHOSEN, "")])


@cache
def templates_in(language: str) -> Environment:
    """The templates in a language; each is compiled when it is first needed."""
    if language == ENGLISH:
        return templates
    environment = templates.overlay()
    environment.globals = templates.globals | speaking(language)
    return environment


@cache
def static_url(path: str) -> str:
    """The address of a file under static/, with its hash, so that browsers may keep it for ever."""
    digest = hashlib.sha256((STATIC / path).read_bytes()).hexdigest()[:12]
    return f"/static/{path}?v={digest}"


def noun(campaign: Any) -> str:
    """What the items of a campaign are called."""
    return "system" if campaign.segment_count else "item"


MARKDOWN = markdown_parser("table")


@remembered
def sanitised(markdown: str) -> Markup:
    """Markdown as HTML that is safe to show to anyone: no scripts, no styles, nothing loaded from other hosts."""
    html = MARKDOWN.render(markdown)
    return Markup(nh3.clean(html, tags=nh3.ALLOWED_TAGS - {"img"}))  # noqa: S704  (this is the sanitiser)


@remembered
def with_formulas(markdown: str) -> Markup:
    """Return Markdown as `sanitised` does, with its formulas in LaTeX marked."""
    hidden, formulas = hide_formulas(markdown)
    return show_formulas(sanitised(hidden), formulas)


async def markdown_to_html(*markdown: str, latex: bool) -> list[Markup]:
    """Return Markdown texts as HTML that is safe to show to anyone. Long ones are converted in a thread, so that other
    requests do not wait. latex: whether formulas are typeset.
    """
    draw = with_formulas if latex else sanitised
    if sum(map(len, markdown)) > DRAWN_AT_ONCE:
        return await asyncio.to_thread(lambda: [*map(draw, markdown)])
    return [*map(draw, markdown)]


templates.filters |= {
    "formulas": mark_formulas,
    "plural": plural,
    "noun": noun,
    "written": written,
    "minus": true_minus,
}
templates.globals |= {
    "static_url": static_url,
    "easel_command": easel_command(),
    "LANGUAGES": LANGUAGES,
    "in_language": in_language,
    **speaking(ENGLISH),
}
