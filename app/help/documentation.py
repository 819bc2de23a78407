"""Pages of the documentation: read from `docs/`, arranged as on the site, and rendered for the product."""

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import yaml
from markdown_it.token import Token
from markupsafe import Markup

from app.settings import project_folder
from app.text.latex import html_with_formulas_put_back, markdown_with_placeholders_and_formulas
from app.text.markdown import make_markdown_parser

HELP_PATH = "/admin/help"
DOCUMENTATION_FOLDER = project_folder() / "docs"
NAVIGATION_FILE = project_folder() / ".mkdocs.yml"
HOME_PAGE = "index"
PICTURE_SUFFIXES = {".png", ".svg"}
COMMENT_LINE = re.compile(r"^ *<!--.*?-->\n", re.MULTILINE)  # only the site's Markdown knows HTML
MARKDOWN_RENDERER = make_markdown_parser("table")


@dataclass(frozen=True, slots=True)
class Section:
    """Part of a page from a heading to the next one. The title of the page is the heading of its first section.

    Attributes:
        anchor: The id of the heading.
        level: 1 for the title of the page.
        markdown: The text below the heading.

    """

    anchor: str
    heading: str
    level: int
    markdown: str


@dataclass(frozen=True)
class HelpPage:
    """Page of the documentation; `name` is its path in `docs/` without the ending."""

    name: str
    markdown: str

    @property
    def url(self) -> str:
        return f"{HELP_PATH}/{self.name}"

    @cached_property
    def sections(self) -> Sequence[Section]:
        """The sections in their order."""
        lines = self.markdown.splitlines()
        tokens = MARKDOWN_RENDERER.parse(self.markdown)
        places = [place for place, token in enumerate(tokens) if token.type == "heading_open" and token.level == 0]
        starts = [first_and_last_line_of_token(tokens[place]) for place in places]
        ends = [start for start, _ in starts[1:]] + [len(lines)]
        anchors: set[str] = set()
        sections = []
        for place, (_, start), end in zip(places, starts, ends, strict=True):
            heading = plain_text_of_inline_token(tokens[place + 1])
            anchor = reserve_unique_anchor(heading, anchors)
            sections.append(Section(anchor, heading, int(tokens[place].tag[1:]), "\n".join(lines[start:end])))
        return sections

    @property
    def title(self) -> str:
        return self.sections[0].heading

    @cached_property
    def html(self) -> Markup:
        """The page as HTML. It is safe, since the parser passes no HTML through."""
        hidden, formulas = markdown_with_placeholders_and_formulas(self.markdown)
        tokens = MARKDOWN_RENDERER.parse(hidden)
        anchors = iter(self.sections)
        for place, token in enumerate(tokens):
            if token.type == "heading_open" and token.level == 0:
                token.attrSet("id", next(anchors).anchor)
            elif token.type == "fence" and place:
                token.attrSet("tabindex", "0")  # wide code scrolls, also by keys
            for child in token.children or ():
                self._rewrite_link_to_product_url(child)
        html = MARKDOWN_RENDERER.renderer.render(tokens, MARKDOWN_RENDERER.options, {})
        return html_with_formulas_put_back(html, formulas)

    @property
    def has_formulas(self) -> bool:
        return 'class="math' in self.html

    def _rewrite_link_to_product_url(self, token: Token) -> None:
        """Change the address of a link or picture to its address in the product, where it has one."""
        attribute = {"link_open": "href", "image": "src"}.get(token.type)
        if attribute is not None:
            token.attrSet(attribute, product_url_of_documentation_link(self.name, str(token.attrGet(attribute))))


@dataclass(frozen=True)
class Chapter:
    """Group of pages for one kind of reader, as the site's navigation lists them."""

    title: str
    pages: Sequence[tuple[str, HelpPage]]  # each with its title in the navigation


def first_and_last_line_of_token(token: Token) -> tuple[int, int]:
    assert token.map is not None  # noqa: S101  (every block has lines)
    start, end = token.map
    return start, end


def plain_text_of_inline_token(inline: Token) -> str:
    """Return the text of a heading or paragraph without its marks."""
    return "".join(token.content for token in inline.children or () if token.type in ("text", "code_inline"))


def reserve_unique_anchor(heading: str, used_anchors: set[str]) -> str:
    """Return the anchor of a heading as GitHub and the site write it, and add it to the used ones."""
    anchor = wanted = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
    number = 0
    while anchor in used_anchors:
        number += 1
        anchor = f"{wanted}_{number}"
    used_anchors.add(anchor)
    return anchor


def product_url_of_documentation_link(page_name: str, address: str) -> str:
    """Return the address in the product that an address on a page of the documentation stands for."""
    path, sign, anchor = address.partition("#")
    if "://" in address or address.startswith(("/", "mailto:")) or not path:
        return address
    target = posixpath.normpath(posixpath.join(posixpath.dirname(page_name), path))
    return f"{HELP_PATH}/{target.removesuffix('.md')}{sign}{anchor}"


@cache
def documentation_page_by_name() -> dict[str, HelpPage]:
    """Return all pages by their name, such as `researchers/goals`."""
    files = sorted(DOCUMENTATION_FOLDER.rglob("*.md"))
    names = [file.relative_to(DOCUMENTATION_FOLDER).with_suffix("").as_posix() for file in files]
    texts = [COMMENT_LINE.sub("", file.read_text("utf-8")) for file in files]
    return {name: HelpPage(name, text) for name, text in zip(names, texts, strict=True)}


@cache
def picture_file_by_documentation_path() -> dict[str, Path]:
    """Return the files of all pictures by their path in `docs/`."""
    files = DOCUMENTATION_FOLDER.rglob("*")
    return {
        file.relative_to(DOCUMENTATION_FOLDER).as_posix(): file for file in files if file.suffix in PICTURE_SUFFIXES
    }


@cache
def load_documentation_chapters() -> Sequence[Chapter]:
    """Return the chapters in the order of the site's navigation."""
    # The rest of the file has tags for the program that builds the site.
    navigation = yaml.safe_load("nav:\n" + NAVIGATION_FILE.read_text("utf-8").partition("\nnav:\n")[2])["nav"]
    chapters = [next(iter(entry.items())) for entry in navigation]
    return [Chapter(title, flatten_navigation_into_titled_pages(entries, title)) for title, entries in chapters]


def flatten_navigation_into_titled_pages(entries: Any, title: str = "") -> list[tuple[str, HelpPage]]:
    """Return the pages of a part of the navigation, with their titles; parts within it are flattened."""
    if isinstance(entries, str):
        page = documentation_page_by_name()[entries.removesuffix(".md")]
        return [(title or page.title, page)]
    if isinstance(entries, dict):
        return [page for name, part in entries.items() for page in flatten_navigation_into_titled_pages(part, name)]
    return [page for entry in entries for page in flatten_navigation_into_titled_pages(entry)]
