"""Rendering of items as text, Markdown, HTML, or as the image, recording or video that they name.

Pure: from the cells of items, and the URLs of the files that they name, to the HTML of a page. Items may come from
untrusted authors: everything but text goes through the sanitiser, and pages load only files that came with the items
and, where the campaign allows them, https links.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import unescape
from typing import NamedTuple, Protocol, Self
from unicodedata import normalize
from urllib.parse import unquote

import nh3
from markupsafe import Markup

from app.designs.field_flags import is_blank
from app.designs.item_names import ItemName, item_names
from app.designs.word_differences import mark_differing_words_or_none_if_slow
from app.text.latex import html_with_formulas_put_back, markdown_with_placeholders_and_formulas, with_marked_formulas
from app.text.markdown import make_markdown_parser
from app.text.result_cache import cache_results_by_size

MAX_FILE_NAME_CHARS = 200
MAX_MEDIA_URL_CHARS = 2_000  # of a file
MAX_CHARS_RENDERED_INLINE = 4_000  # characters, which take a few milliseconds as Markdown; more are drawn in a thread
MAX_INLINE_TEXT_CHARS, MAX_INLINE_WORD_CHARS = 28, 17  # characters of a text that stands beside its control
MAX_BEGINNING_CHARS = 4_000  # characters of what is drawn that are looked at for how it begins
MAX_CAPTION_CHARS = 160  # characters of words that an item may have and still be a picture
MAX_SPOKEN_CHARS, SHORT_NAME_CHARS = 120, 80  # characters of an item in the names of its controls
MEDIA_EXTENSIONS = {
    "image": ("png", "jpg", "jpeg", "gif", "webp", "avif"),
    "audio": ("mp3", "wav", "ogg", "oga", "opus", "flac", "m4a"),
    "video": ("mp4", "m4v", "webm", "ogv"),
}
MEDIA_FILE_NAMES = {
    kind: re.compile(rf"[^\r\n]+\.({'|'.join(endings)})", re.IGNORECASE) for kind, endings in MEDIA_EXTENSIONS.items()
}
MEDIA_TAGS = {
    "image": Markup('<img src="{}" alt="Image" loading="lazy">'),
    "audio": Markup(
        '<audio src="{}" controls controlslist="nodownload" preload="metadata" aria-label="Recording"></audio>'
    ),
    "video": Markup(
        '<video src="{}" controls controlslist="nodownload" preload="metadata" playsinline aria-label="Video"></video>'
    ),
}
HTML_TAG = re.compile(r"<[^>]*>?")  # of what is drawn, where each < begins one; the last may be cut off
PLAYER_TAG = re.compile(r"<(?:audio|video)\b")
PICTURE_TAG = re.compile(r"<(?:img|video)\b")
VISIBLE_WITHOUT_TEXT = re.compile(r"<(?:img|audio|video|hr)\b")
MEDIA_KIND_BY_TAG = {"img": "image", "audio": "audio", "video": "video"}


class NamedFile(NamedTuple):
    """A file that an item names, and its kind: image, audio or video."""

    kind: str
    name: str

    @property
    def is_link(self) -> bool:
        """Return whether the file is on another server."""
        return "://" in self.name


AddressResolver = Callable[[NamedFile], str | None]


class SourceAndReference(NamedTuple):
    """The source of an item, and an example of a good one; either may be none."""

    source: str | None = None
    reference: str | None = None


class ItemTexts(NamedTuple):
    """The texts of an item: the item itself, and the cells of its source and reference."""

    shown: str
    source: str | None = None
    reference: str | None = None


class RenderedContext(NamedTuple):
    """The rendered source or reference of an item."""

    title: str
    html: str

    @property
    def length(self) -> int:
        """Number of characters of its words, or of their beginning."""
        return len(beginning_as_plain_text(self.html))


@dataclass(frozen=True)
class RenderedItems:
    """The rendered items of a HIT.

    Attributes:
        items: Each item as text or Markup.
        is_rich: Whether the items are more than text.
        shared_context: The context of all items together.
        is_always_wide: Whether the items need more room than words.
        loads_media: Whether each item, or its context, loads a file, so that loading can fail.
        skipped_differences: Whether differences are not marked because the texts are too long to be compared.

    """

    items: Sequence[str]
    texts: Sequence[str]
    is_rich: bool = False
    shared_context: Sequence[RenderedContext] = ()
    own_context: Sequence[Sequence[RenderedContext]] = ()
    is_always_wide: bool = False
    loads_media: Sequence[bool] = ()
    skipped_differences: bool = False

    @property
    def is_wide(self) -> bool:
        """Return whether an item is too wide for the line of its control, or has lines or an indentation."""
        return self.is_always_wide or any(
            len(text) > MAX_INLINE_TEXT_CHARS
            or text[:1].isspace()
            or "\n" in text
            or any(len(word) > MAX_INLINE_WORD_CHARS for word in text.split())
            for text in self.texts
        )

    @property
    def shows_pictures(self) -> bool:
        """Return whether each item is an image or a video, with no more words than a caption, so that several fit side
        by side.
        """
        return self.is_rich and all(
            PICTURE_TAG.search(item) and len(beginning_as_plain_text(item)) <= MAX_CAPTION_CHARS for item in self.items
        )

    @cached_property
    def has_players(self) -> bool:
        """Return whether an item, or what stands beside them, is or contains a recording or a video."""
        contexts = [context for contexts in (self.shared_context, *self.own_context) for context in contexts]
        return self.is_rich and any(PLAYER_TAG.search(html) for html in (*self.items, *(one.html for one in contexts)))

    def beginning_text_at(self, position: int) -> str:
        """Return the beginning of the item at a position, in words on one line."""
        return " ".join(beginning_as_plain_text(self.items[position]).split())

    @property
    def field_names(self) -> list[ItemName]:
        """Return the names of the items in the fields of the page."""
        return item_names(len(self.items))

    @cached_property
    def short_names(self) -> list[str]:
        """Return the beginning of each item that is too long to be read out with each of its controls; empty for
        others.
        """
        begins = [self.beginning_text_at(at) for at in range(len(self.items))]
        long = [
            len(begin) > MAX_SPOKEN_CHARS or len(item) > MAX_BEGINNING_CHARS
            for begin, item in zip(begins, self.items, strict=True)
        ]
        return [
            f"{begin[:SHORT_NAME_CHARS]} …" if begin and is_long else ""
            for begin, is_long in zip(begins, long, strict=True)
        ]

    @cached_property
    def label_id_prefixes(self) -> list[str]:
        """Return the prefix of the id of each item's label: of its text, or of its beginning."""
        return ["short" if short else "text" for short in self.short_names]


class ContentSettings(Protocol):
    """The settings of a campaign that say how items are rendered."""

    @property
    def content(self) -> str: ...
    @property
    def source_column(self) -> str | None: ...
    @property
    def reference_column(self) -> str | None: ...
    @property
    def differences(self) -> str: ...
    @property
    def https_media(self) -> bool: ...
    @property
    def latex(self) -> bool: ...


@dataclass(frozen=True)
class Content:
    """A campaign's settings of how items are rendered.

    Attributes:
        kind: One of `KINDS`.
        source: The column shown as the source, as reference.
        differences: `none`, `reference` (from it) or `pair` (between two items).
        links: Whether https is allowed.
        latex: Whether formulas are typeset.

    """

    kind: str = "text"
    source: str | None = None
    reference: str | None = None
    differences: str = "none"
    links: bool = False
    latex: bool = False

    @classmethod
    def from_campaign(cls, campaign: ContentSettings) -> Self:
        """Return the content settings of a campaign."""
        columns = campaign.source_column, campaign.reference_column
        return cls(campaign.content, *columns, campaign.differences, campaign.https_media, campaign.latex)

    @property
    def is_plain_text(self) -> bool:
        """Return whether an item is its text and nothing else, so that there is nothing to look up."""
        return self.kind == "text" and not (self.context_columns or self.latex) and self.differences == "none"

    @property
    def context_columns(self) -> list[str]:
        """Return the columns that are shown with the items."""
        return [name for name in (self.source, self.reference) if name]

    def is_slow_to_render(self, rows: Sequence[ItemTexts]) -> bool:
        """Return whether rendering takes more than a few milliseconds."""
        trivial = self.kind == "text" and self.differences == "none" and not self.latex
        return not trivial and sum(len(cell or "") for row in rows for cell in row) > MAX_CHARS_RENDERED_INLINE

    def find_media_files_in_cells(self, cells: ItemTexts) -> set[NamedFile]:
        context_kinds = [self.kind_of_source_or_reference_cell(cell) for cell in cells[1:] if cell]
        parts = [(self.kind, cells.shown), *zip(context_kinds, filter(None, cells[1:]), strict=True)]
        return {file for kind, text in parts for file in CONTENT_KINDS[kind].find_files(text)}

    def renders_to_nothing_visible(self, shown_text: str) -> bool:
        """Return whether Markdown or HTML renders to nothing visible: no words, no media, no line."""
        if CONTENT_KINDS[self.kind].is_file or self.kind == "text":
            return False
        html = self.render_cell_html(self.kind, shown_text, lambda file: file.name)
        return VISIBLE_WITHOUT_TEXT.search(html) is None and is_blank(unescape(HTML_TAG.sub("", html)))

    def kind_of_source_or_reference_cell(self, cell: str) -> str:
        """Return the kind of a source or reference cell: a file if it looks like the name of one, else words."""
        name = cell.strip() if len(cell) <= MAX_MEDIA_URL_CHARS else ""
        kinds = (kind for kind, pattern in MEDIA_FILE_NAMES.items() if pattern.fullmatch(name))
        return next(kinds, "text" if self.kind in MEDIA_TAGS else self.kind)

    def render_items(self, rows: Sequence[ItemTexts], address_by_name: Mapping[str, str]) -> RenderedItems:
        """Render the items of a HIT, given the URLs of the files that they name."""

        def resolve_address(file: NamedFile) -> str | None:
            if file.is_link:
                return file.name if self.links and file.name.startswith("https://") else None
            return address_by_name.get(file.name)

        def render_context(title: str, cell: str | None) -> RenderedContext | None:
            if not cell:
                return None
            kind = self.kind_of_source_or_reference_cell(cell)
            return RenderedContext(title, self.render_cell_html(kind, cell, resolve_address))

        contexts = [(render_context("Source", row.source), render_context("Reference", row.reference)) for row in rows]
        is_shared = [len({pair[k] for pair in contexts}) == 1 for k in (0, 1)]
        own_contexts = [
            [one for one, common in zip(pair, is_shared, strict=True) if one and not common] for pair in contexts
        ]
        marked = self.texts_with_marked_differences_or_none(rows)
        return RenderedItems(
            items=self.texts_with_differences(rows, marked)
            if marked
            else [self.render_cell_html(self.kind, row.shown, resolve_address) for row in rows],
            texts=[row.shown for row in rows],
            is_rich=True,
            shared_context=[one for one, common in zip(contexts[0], is_shared, strict=True) if one and common]
            if contexts
            else (),
            own_context=own_contexts,
            is_always_wide=self.kind != "text" or any(own_contexts),
            loads_media=[bool(self.find_media_files_in_cells(row)) for row in rows],
            skipped_differences=None in marked,
        )

    def render_cell_html(self, kind: str, text: str, resolve_address: AddressResolver) -> str:
        """Return the HTML of a text of one of the `KINDS`."""
        if not self.latex or CONTENT_KINDS[kind].is_file:
            return CONTENT_KINDS[kind].render(text, resolve_address)
        if kind == "markdown":
            hidden, formulas = markdown_with_placeholders_and_formulas(text)
            return html_with_formulas_put_back(CONTENT_KINDS[kind].render(hidden, resolve_address), formulas)
        return with_marked_formulas(CONTENT_KINDS[kind].render(text, resolve_address))

    def texts_with_differences(self, rows: Sequence[ItemTexts], marked: Sequence[Markup | None]) -> list[str]:
        """Return items with their differences marked; the texts alone where comparing would take long."""
        rendered = [row.shown if text is None else text for text, row in zip(marked, rows, strict=True)]
        return [with_marked_formulas(text) for text in rendered] if self.latex else rendered

    def texts_with_marked_differences_or_none(self, rows: Sequence[ItemTexts]) -> list[Markup | None]:
        """Return the texts with marked differences, None for one that would take long to compare.

        Empty if there is nothing to compare with.
        """
        if self.differences == "reference":
            return [
                mark_differing_words_or_none_if_slow(row.shown, row.reference, show_deletions=True)
                if row.reference
                else Markup.escape(row.shown)
                for row in rows
            ]
        if self.differences == "pair" and len(rows) == 2:
            first, second = (row.shown for row in rows)
            return [mark_differing_words_or_none_if_slow(*texts) for texts in ((first, second), (second, first))]
        return []


def rendered_plain_items(texts: Sequence[str]) -> RenderedItems:
    """Return items that are rendered as their texts."""
    return RenderedItems(texts, texts)


# What an item can be


class ContentKind(NamedTuple):
    """A kind of item content.

    Attributes:
        title: The name of one item, for people, and plural that of several.
        render: Function to the HTML of a text.
        find_files: Function to the files that a text names.
        is_file: Whether an item is a file and its text the name of the file.

    """

    title: str
    plural: str
    render: Callable[[str, AddressResolver], str]
    find_files: Callable[[str], Iterable[NamedFile]]
    is_file: bool = False


def beginning_as_plain_text(html: str) -> str:
    """Return the first words of rendered HTML, as text."""
    start = html[:MAX_BEGINNING_CHARS]
    return unescape(HTML_TAG.sub("", start)) if isinstance(html, Markup) else start


def render_plain_text(text: str, _address: AddressResolver) -> str:
    return text


def find_no_files(_text: str) -> Iterable[NamedFile]:
    return ()


def build_media_content_kind(kind: str, title: str, plural: str) -> ContentKind:
    """Return the kind for items that are one file."""

    def files(name: str) -> list[NamedFile]:
        return [NamedFile(kind, normalize("NFC", name.strip()))]

    def draw(name: str, resolve_address: AddressResolver) -> Markup:
        url = resolve_address(files(name)[0])
        if url is None:
            return Markup('<span class="content missing">There is no file “{}”.</span>').format(name)
        return Markup('<span class="content">{}</span>').format(MEDIA_TAGS[kind].format(url))

    return ContentKind(title, plural, draw, files, is_file=True)


ITEM_MARKDOWN = make_markdown_parser("table", "strikethrough")


@cache_results_by_size
def render_markdown_html(markdown: str) -> str:
    return str(ITEM_MARKDOWN.render(markdown))


def build_markup_content_kind(title: str, to_html: Callable[[str], str]) -> ContentKind:
    """Return the kind for items in a language that is converted to HTML."""

    @cache_results_by_size
    def files(text: str) -> Sequence[NamedFile]:
        named: list[NamedFile] = []
        sanitise_html(to_html(text), named.append)  # `append` gives None: no address
        return named

    def draw(text: str, resolve_address: AddressResolver) -> Markup:
        return Markup('<div class="content">{}</div>').format(sanitise_html(to_html(text), resolve_address))

    return ContentKind(title, title, draw, files)


# What is left out of an element's attributes, and of the elements, is neither shown nor run: no scripts, no styles, no
# forms, no frames, and no names by which a page's own script could find something else than its own.
ALLOWED_TAGS = {
    *("a", "abbr", "b", "bdi", "blockquote", "br", "caption", "cite", "code", "col", "colgroup", "dd", "del", "dfn"),
    *("div", "dl", "dt", "em", "figcaption", "figure", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "ins", "kbd"),
    *("li", "mark", "ol", "p", "pre", "q", "rp", "rt", "ruby", "s", "samp", "small", "span", "strong", "sub", "sup"),
    *("table", "tbody", "td", "tfoot", "th", "thead", "tr", "u", "ul", "var", "wbr", *MEDIA_KIND_BY_TAG),
}
ALLOWED_ATTRIBUTES = {
    "*": {"dir", "lang"},
    "a": {"href"},
    "ol": {"start"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan"},
    "img": {"src", "alt"},
    "audio": {"src"},
    "video": {"src"},
}
FORCED_ATTRIBUTES = {
    "a": {"target": "_blank"},
    "img": {"loading": "lazy"},
    "audio": {"controls": "", "controlslist": "nodownload", "preload": "metadata"},
    "video": {"controls": "", "controlslist": "nodownload", "preload": "metadata"},
}
TAGS_REMOVED_WITH_CONTENT = {
    "script",
    "style",
    "title",
    "template",
    "noscript",
    "iframe",
    "textarea",
    "select",
    "svg",
    "math",
}


# Elements that HTML opens again in each paragraph until they are closed, if they differ in an attribute.
FORMATTING_TAG = re.compile(
    r"<(b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u)(?=[\t\n\f\r /])"
    r"""((?:[\t\n\f\r /]++|(?:=[^\t\n\f\r />=]*+|[^\t\n\f\r />=]++)"""
    r"""(?:[\t\n\f\r ]*+=[\t\n\f\r ]*+(?:"[^"]*+"|'[^']*+'|[^\t\n\f\r "'>][^\t\n\f\r >]*+)?)?)*+)(>?)""",
    re.IGNORECASE,
)
LANGUAGE_ATTRIBUTE = re.compile(r"""(?<![\w-])(dir|lang)\s*=\s*["']?([a-z][a-z0-9-]{0,30})(?![\w-])""", re.IGNORECASE)
MAX_FORMAT_VARIANTS = 50  # with different attributes


def html_with_few_formatting_attributes(html: str) -> str:
    """Return HTML whose formatting elements have only a direction and a language, in few combinations.

    A thousand such elements that are never closed would otherwise become a million.
    """
    variants: set[str] = set()

    def simplify_tag(match: re.Match[str]) -> str:
        if not match[3]:  # the text ends within this element
            return ""
        attributes = " ".join(f'{name}="{value}"' for name, value in LANGUAGE_ATTRIBUTE.findall(match[2]))
        if len(variants) < MAX_FORMAT_VARIANTS:
            variants.add(attributes)
        return f"<{match[1]} {attributes}>" if attributes and attributes in variants else f"<{match[1]}>"

    return FORMATTING_TAG.sub(simplify_tag, html)


def sanitise_html(html: str, resolve_address: AddressResolver) -> Markup:
    """Return HTML that is safe to show to anyone. Elements load only what `resolve_address` returns."""

    # Asked of elements too that do not stay; what it raised would be swallowed.
    def filter_attribute(tag: str, name: str, value: str) -> str | None:
        if name == "src":
            file = NamedFile(MEDIA_KIND_BY_TAG.get(tag, ""), normalize("NFC", unquote(value.strip())))
            return resolve_address(file) if file.kind else None
        if name == "href":  # relative, it would lead to our own pages
            return value if value.startswith(("https://", "http://", "mailto:")) else None
        return value

    clean = nh3.clean(
        html_with_few_formatting_attributes(html),
        tags=ALLOWED_TAGS,
        clean_content_tags=TAGS_REMOVED_WITH_CONTENT,
        attributes=ALLOWED_ATTRIBUTES,
        attribute_filter=filter_attribute,
        set_tag_attribute_values=FORCED_ATTRIBUTES,
        url_schemes={"https", "http", "mailto"},
    )
    return Markup(clean)  # noqa: S704  (this is the sanitiser)


CONTENT_KINDS = {
    "text": ContentKind("Text", "text", render_plain_text, find_no_files),
    "markdown": build_markup_content_kind("Markdown", render_markdown_html),
    "html": build_markup_content_kind("HTML", str),
    "image": build_media_content_kind("image", "An image", "images"),
    "audio": build_media_content_kind("audio", "A recording", "recordings"),
    "video": build_media_content_kind("video", "A video", "videos"),
}
