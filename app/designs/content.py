"""What an item is, and how it is drawn: as text, Markdown, HTML, or as the image, recording or video that it names.

Pure: from the cells of items, and the addresses of the files that they name, to what stands in a page. Whoever writes
items may be anyone: all that is not text goes through the sanitiser, and nothing is loaded but files that came with the
items and, where the campaign allows them, https links.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import unescape
from typing import Any, NamedTuple, Self
from unicodedata import normalize
from urllib.parse import unquote

import nh3
from markupsafe import Markup

from app.designs.differences import differences
from app.designs.item_names import ItemName, item_names
from app.fields import is_blank
from app.latex import hide_formulas, mark_formulas, show_formulas
from app.markdown import markdown_parser
from app.result_cache import remembered

LONGEST_FILE_NAME = 200
LONGEST_ADDRESS = 2_000  # of a file
DRAWN_AT_ONCE = 4_000  # characters, which take a few milliseconds as Markdown; more are drawn in a thread
WIDEST_TEXT, WIDEST_WORD = 28, 17  # characters of a text that stands beside its control
BEGINNING = 4_000  # characters of what is drawn that are looked at for how it begins
LONGEST_SPOKEN, SHORT = 120, 80  # characters of an item in the names of its controls
ENDINGS = {
    "image": ("png", "jpg", "jpeg", "gif", "webp", "avif"),
    "audio": ("mp3", "wav", "ogg", "oga", "opus", "flac", "m4a"),
    "video": ("mp4", "m4v", "webm", "ogv"),
}
FILE_NAME = {kind: re.compile(rf"[^\r\n]+\.({'|'.join(endings)})", re.IGNORECASE) for kind, endings in ENDINGS.items()}
MEDIA_TAGS = {
    "image": Markup('<img src="{}" alt="Image" loading="lazy">'),
    "audio": Markup('<audio src="{}" controls preload="metadata" aria-label="Recording"></audio>'),
    "video": Markup('<video src="{}" controls preload="metadata" playsinline aria-label="Video"></video>'),
}
TAG = re.compile(r"<[^>]*>?")  # of what is drawn, where each < begins one; the last may be cut off
SEEN_WITHOUT_WORDS = re.compile(r"<(?:img|audio|video|hr)\b")
KIND_OF_TAG = {"img": "image", "audio": "audio", "video": "video"}


class NamedFile(NamedTuple):
    """A file that an item names, and as what it is to be drawn: image, audio or video."""

    kind: str
    name: str

    @property
    def is_link(self) -> bool:
        """Whether it lies elsewhere."""
        return "://" in self.name


Address = Callable[[NamedFile], str | None]


class Above(NamedTuple):
    """What items are made from, and an example of a good one; either may be none."""

    source: str | None = None
    reference: str | None = None


class Cells(NamedTuple):
    """What is shown of an item: its text, and what stands in the columns of source and reference."""

    shown: str
    source: str | None = None
    reference: str | None = None


class Beside(NamedTuple):
    """What stands beside an item, as it is drawn."""

    title: str
    drawn: str

    @property
    def length(self) -> int:
        """Characters of its words, or of their beginning."""
        return len(beginning(self.drawn))


@dataclass(frozen=True)
class DrawnItems:
    """The items of a HIT as they stand in a page.

    items: each as text or Markup. texts: what the researcher uploaded of each. rich: whether they are more than that.
    common: what all of them have beside them. beside: what each has for itself. wide: whether they need more room than
    words. loads: whether each, or what stands beside it, loads anything, so that it can fail to. unmarked: whether
    their differences are not marked, because the texts are too long to be compared.
    """

    items: Sequence[str]
    texts: Sequence[str]
    rich: bool = False
    common: Sequence[Beside] = ()
    beside: Sequence[Sequence[Beside]] = ()
    wide: bool = False
    loads: Sequence[bool] = ()
    unmarked: bool = False

    @property
    def is_wide(self) -> bool:
        """Whether an item is too wide to stand on the line of its control, or has lines or an indentation."""
        return self.wide or any(
            len(text) > WIDEST_TEXT
            or text[:1].isspace()
            or "\n" in text
            or any(len(word) > WIDEST_WORD for word in text.split())
            for text in self.texts
        )

    def beginning(self, at: int) -> str:
        """Return how the item at a place begins, in words on one line."""
        return " ".join(beginning(self.items[at]).split())

    @property
    def names(self) -> list[ItemName]:
        """Names of the items in the fields of the page."""
        return item_names(len(self.items))

    @cached_property
    def short(self) -> list[str]:
        """The beginning of each item that is too long to be heard with each of its controls; empty for others."""
        begins = [self.beginning(at) for at in range(len(self.items))]
        long = [
            len(begin) > LONGEST_SPOKEN or len(item) > BEGINNING for begin, item in zip(begins, self.items, strict=True)
        ]
        return [f"{begin[:SHORT]} …" if begin and is_long else "" for begin, is_long in zip(begins, long, strict=True)]

    @cached_property
    def labels(self) -> list[str]:
        """What the id of the words begins with that name the controls of each item: its text, or its beginning."""
        return ["short" if short else "text" for short in self.short]


@dataclass(frozen=True)
class Content:
    """What a campaign's items are. kind: one of `KINDS`. source, reference: the columns that are shown beside them.

    differences: `none`, `reference` (from it) or `pair` (between two items). links: whether https is allowed. latex:
    whether formulas are typeset.
    """

    kind: str = "text"
    source: str | None = None
    reference: str | None = None
    differences: str = "none"
    links: bool = False
    latex: bool = False

    @classmethod
    def of(cls, campaign: Any) -> Self:
        """By a campaign's settings or its row."""
        columns = campaign.source_column, campaign.reference_column
        return cls(campaign.content, *columns, campaign.differences, campaign.https_media, campaign.latex)

    @property
    def plain(self) -> bool:
        """Whether an item is its text and nothing else, so that nothing is to be looked up."""
        return self.kind == "text" and not (self.columns or self.latex) and self.differences == "none"

    @property
    def columns(self) -> list[str]:
        """Those that are shown beside the items."""
        return [name for name in (self.source, self.reference) if name]

    def takes_long(self, rows: Sequence[Cells]) -> bool:
        """Whether to draw items takes more than a few milliseconds."""
        trivial = self.kind == "text" and self.differences == "none" and not self.latex
        return not trivial and sum(len(cell or "") for row in rows for cell in row) > DRAWN_AT_ONCE

    def files(self, cells: Cells) -> set[NamedFile]:
        """All that an item and what stands beside it name."""
        beside = [self.kind_beside(cell) for cell in cells[1:] if cell]
        parts = [(self.kind, cells.shown), *zip(beside, filter(None, cells[1:]), strict=True)]
        return {file for kind, text in parts for file in KINDS[kind].files(text)}

    def looks_empty(self, shown: str) -> bool:
        """Whether Markdown or HTML draws nothing that could be seen: no words, no media, no line."""
        if KINDS[self.kind].is_file or self.kind == "text":
            return False
        drawn = self.draw_cell(self.kind, shown, lambda file: file.name)
        return SEEN_WITHOUT_WORDS.search(drawn) is None and is_blank(unescape(TAG.sub("", drawn)))

    def kind_beside(self, cell: str) -> str:
        """What a cell of the source or the reference is: a file if it looks like the name of one, else words."""
        name = cell.strip() if len(cell) <= LONGEST_ADDRESS else ""
        named = (kind for kind, pattern in FILE_NAME.items() if pattern.fullmatch(name))
        return next(named, "text" if self.kind in MEDIA_TAGS else self.kind)

    def draw(self, rows: Sequence[Cells], addresses: Mapping[str, str]) -> DrawnItems:
        """The items of a HIT; addresses: of the files that they name, by name."""

        def address(file: NamedFile) -> str | None:
            if file.is_link:
                return file.name if self.links and file.name.startswith("https://") else None
            return addresses.get(file.name)

        def beside(title: str, cell: str | None) -> Beside | None:
            return Beside(title, self.draw_cell(self.kind_beside(cell), cell, address)) if cell else None

        both = [(beside("Source", row.source), beside("Reference", row.reference)) for row in rows]
        shared = [len({pair[k] for pair in both}) == 1 for k in (0, 1)]
        own = [[one for one, common in zip(pair, shared, strict=True) if one and not common] for pair in both]
        marked = self.marked(rows)
        return DrawnItems(
            items=self.with_differences(rows, marked)
            if marked
            else [self.draw_cell(self.kind, row.shown, address) for row in rows],
            texts=[row.shown for row in rows],
            rich=True,
            common=[one for one, common in zip(both[0], shared, strict=True) if one and common] if both else (),
            beside=own,
            wide=self.kind != "text" or any(own),
            loads=[bool(self.files(row)) for row in rows],
            unmarked=None in marked,
        )

    def draw_cell(self, kind: str, text: str, address: Address) -> str:
        """Return what stands in a page for a text of one of the `KINDS`."""
        if not self.latex or KINDS[kind].is_file:
            return KINDS[kind].draw(text, address)
        if kind == "markdown":
            hidden, formulas = hide_formulas(text)
            return show_formulas(KINDS[kind].draw(hidden, address), formulas)
        return mark_formulas(KINDS[kind].draw(text, address))

    def with_differences(self, rows: Sequence[Cells], marked: Sequence[Markup | None]) -> list[str]:
        """Return items with their differences; the texts alone of those that would take long to compare."""
        drawn = [row.shown if text is None else text for text, row in zip(marked, rows, strict=True)]
        return [mark_formulas(text) for text in drawn] if self.latex else drawn

    def marked(self, rows: Sequence[Cells]) -> list[Markup | None]:
        """The texts with their differences, None for one that would take long to compare; empty where there is nothing
        that they could differ from.
        """
        if self.differences == "reference":
            return [
                differences(row.shown, row.reference, both=True) if row.reference else Markup.escape(row.shown)
                for row in rows
            ]
        if self.differences == "pair" and len(rows) == 2:
            first, second = (row.shown for row in rows)
            return [differences(first, second), differences(second, first)]
        return []


def plain(texts: Sequence[str]) -> DrawnItems:
    """Items that are their texts."""
    return DrawnItems(texts, texts)


# What an item can be


class Kind(NamedTuple):
    """title, many: for people, of one and of all. draw: what stands in a page. files: those that a text names.

    is_file: whether an item is a file and its text the name of that.
    """

    title: str
    many: str
    draw: Callable[[str, Address], str]
    files: Callable[[str], Iterable[NamedFile]]
    is_file: bool = False


def beginning(drawn: str) -> str:
    """Return the first words of something drawn, as text."""
    start = drawn[:BEGINNING]
    return unescape(TAG.sub("", start)) if isinstance(drawn, Markup) else start


def draw_text(text: str, _address: Address) -> str:
    return text


def names_nothing(_text: str) -> Iterable[NamedFile]:
    return ()


def media(kind: str, title: str, many: str) -> Kind:
    """An item that is one file."""

    def files(name: str) -> list[NamedFile]:
        return [NamedFile(kind, normalize("NFC", name.strip()))]

    def draw(name: str, address: Address) -> Markup:
        found = address(files(name)[0])
        if found is None:
            return Markup('<span class="content missing">There is no file “{}”.</span>').format(name)
        return Markup('<span class="content">{}</span>').format(MEDIA_TAGS[kind].format(found))

    return Kind(title, many, draw, files, is_file=True)


MARKDOWN = markdown_parser("table", "strikethrough")


@remembered
def html_of(markdown: str) -> str:
    return str(MARKDOWN.render(markdown))


def rich(title: str, to_html: Callable[[str], str]) -> Kind:
    """An item that is written in a language of which HTML is made."""

    @remembered
    def files(text: str) -> Sequence[NamedFile]:
        found: list[NamedFile] = []
        sanitised(to_html(text), found.append)  # `append` gives None: no address
        return found

    def draw(text: str, address: Address) -> Markup:
        return Markup('<div class="content">{}</div>').format(sanitised(to_html(text), address))

    return Kind(title, title, draw, files)


# What is left out of an element's attributes, and of the elements, is neither shown nor run: no scripts, no styles, no
# forms, no frames, and no names by which a page's own script could find something else than its own.
TAGS = {
    *("a", "abbr", "b", "bdi", "blockquote", "br", "caption", "cite", "code", "col", "colgroup", "dd", "del", "dfn"),
    *("div", "dl", "dt", "em", "figcaption", "figure", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "ins", "kbd"),
    *("li", "mark", "ol", "p", "pre", "q", "rp", "rt", "ruby", "s", "samp", "small", "span", "strong", "sub", "sup"),
    *("table", "tbody", "td", "tfoot", "th", "thead", "tr", "u", "ul", "var", "wbr", *KIND_OF_TAG),
}
ATTRIBUTES = {
    "*": {"dir", "lang"},
    "a": {"href"},
    "ol": {"start"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan"},
    "img": {"src", "alt"},
    "audio": {"src"},
    "video": {"src"},
}
ADDED = {
    "a": {"target": "_blank"},
    "img": {"loading": "lazy"},
    "audio": {"controls": "", "preload": "metadata"},
    "video": {"controls": "", "preload": "metadata"},
}
DROPPED_WHOLE = {"script", "style", "title", "template", "noscript", "iframe", "textarea", "select", "svg", "math"}


# Elements that HTML opens again in each paragraph until they are closed, if they differ in an attribute.
FORMAT = re.compile(
    r"<(b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u)(?=[\t\n\f\r /])"
    r"""((?:[\t\n\f\r /]++|(?:=[^\t\n\f\r />=]*+|[^\t\n\f\r />=]++)"""
    r"""(?:[\t\n\f\r ]*+=[\t\n\f\r ]*+(?:"[^"]*+"|'[^']*+'|[^\t\n\f\r "'>][^\t\n\f\r >]*+)?)?)*+)(>?)""",
    re.IGNORECASE,
)
LANGUAGE = re.compile(r"""(?<![\w-])(dir|lang)\s*=\s*["']?([a-z][a-z0-9-]{0,30})(?![\w-])""", re.IGNORECASE)
MOST_FORMATS = 50  # with different attributes


def with_few_formats(html: str) -> str:
    """Return HTML whose bold and other such elements have no attributes but a direction and a language, and few of
    these differ. A thousand of them that are never closed would otherwise become a million.
    """
    kept: set[str] = set()

    def plain(found: re.Match[str]) -> str:
        if not found[3]:  # the text ends within this element
            return ""
        attributes = " ".join(f'{name}="{value}"' for name, value in LANGUAGE.findall(found[2]))
        if len(kept) < MOST_FORMATS:
            kept.add(attributes)
        return f"<{found[1]} {attributes}>" if attributes and attributes in kept else f"<{found[1]}>"

    return FORMAT.sub(plain, html)


def sanitised(html: str, address: Address) -> Markup:
    """HTML that is safe to show to anyone. What an element loads is what `address` says, or nothing."""

    # Asked of elements too that do not stay; what it raised would be swallowed.
    def attribute(tag: str, name: str, value: str) -> str | None:
        if name == "src":
            file = NamedFile(KIND_OF_TAG.get(tag, ""), normalize("NFC", unquote(value.strip())))
            return address(file) if file.kind else None
        if name == "href":  # relative, it would lead to our own pages
            return value if value.startswith(("https://", "http://", "mailto:")) else None
        return value

    clean = nh3.clean(
        with_few_formats(html),
        tags=TAGS,
        clean_content_tags=DROPPED_WHOLE,
        attributes=ATTRIBUTES,
        attribute_filter=attribute,
        set_tag_attribute_values=ADDED,
        url_schemes={"https", "http", "mailto"},
    )
    return Markup(clean)  # noqa: S704  (this is the sanitiser)


KINDS = {
    "text": Kind("Text", "text", draw_text, names_nothing),
    "markdown": rich("Markdown", html_of),
    "html": rich("HTML", str),
    "image": media("image", "An image", "images"),
    "audio": media("audio", "A recording", "recordings"),
    "video": media("video", "A video", "videos"),
}
