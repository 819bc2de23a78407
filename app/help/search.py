"""Search in the documentation: sections that have the words of a query, the closest first. Pure."""

import re
from dataclasses import dataclass
from functools import cache

from markupsafe import Markup

from app.help.documentation import Chapter, HelpPage, Section, load_documentation_chapters

MAX_QUERY_WORDS = 8
MIN_STEM_CHARACTERS = 3  # shorter words are found as whole words only
MAX_SEARCH_RESULTS = 20
EXCERPT_CHARACTERS = 200
HEADING_WEIGHT, TITLE_WEIGHT, PHRASE_WEIGHT, MAX_COUNTED_IN_TEXT = 8, 4, 8, 4
LATER_CHAPTERS = ("Reference", "Developers")  # guides come first: such pages repeat many words
LATER_WEIGHT = 0.25
ENDING_PATTERN = re.compile(r"(?<=\w{4})(?:ing|ed|es|e|s)$")  # "exclude" also finds "excluding", "quotas" also "quota"
LINK_PATTERN = re.compile(r"!?\[([^\[\]]{0,300})\]\([^()\[\]]{0,300}\)")
INLINE_MARK_PATTERN = re.compile(r"[`*]+")
BLOCK_MARK_PATTERN = re.compile(r"[|#>]+|-{3,}|^[ \t]{0,20}\d{0,9}[.-] ", re.MULTILINE)


@dataclass(frozen=True)
class SearchableSection:
    """Section of a page as plain text."""

    chapter: Chapter
    page: HelpPage
    section: Section
    text: str

    @property
    def url(self) -> str:
        return self.page.url + ("" if self.section.level == 1 else f"#{self.section.anchor}")


@dataclass(frozen=True)
class SearchResult:
    """Section that has words of the query, with its heading and an excerpt in which they are marked."""

    chapter: str
    page: str
    url: str
    heading: Markup
    excerpt: Markup


@cache
def all_searchable_sections() -> list[SearchableSection]:
    return [
        SearchableSection(chapter, page, section, markdown_to_plain_text(section.markdown))
        for chapter in load_documentation_chapters()
        for _, page in chapter.pages
        for section in page.sections
    ]


def markdown_to_plain_text(markdown: str) -> str:
    words = INLINE_MARK_PATTERN.sub("", LINK_PATTERN.sub(r"\1", markdown))
    return " ".join(BLOCK_MARK_PATTERN.sub(" ", words).split())


def search_documentation(query: str) -> list[SearchResult]:
    """Return the sections that have the most words of the query, the best first.

    A word in a heading counts more than one in the title of the page, and that more than one in the text. A word of the
    query, without its ending, is found at the beginning of a word of the text.
    """
    words = list(dict.fromkeys(re.findall(r"\w+", query.lower())))[:MAX_QUERY_WORDS]
    if not words:
        return []
    stems = [
        word + r"\b" if len(word) < MIN_STEM_CHARACTERS else ENDING_PATTERN.sub("", word) + r"\w*" for word in words
    ]
    patterns = [re.compile(rf"\b{stem}", re.IGNORECASE) for stem in stems]
    phrase = re.compile(r"\b" + r"\W+".join(words), re.IGNORECASE)
    ranked = [(search_rank_of_section(found, patterns, phrase), found) for found in all_searchable_sections()]
    most_words = max(count for (count, _), _ in ranked)
    if not most_words:
        return []
    best = sorted((one for one in ranked if one[0][0] == most_words), key=lambda one: -one[0][1])
    any_word = re.compile(rf"\b(?:{'|'.join(stems)})", re.IGNORECASE)
    return [make_search_result(found, any_word) for _, found in best[:MAX_SEARCH_RESULTS]]


def find_sections_by_heading_words(query: str, *, limit: int) -> list[SearchableSection]:
    """Return sections whose heading has all words of the query, guides first. It reads no texts, so it is fast."""
    words = query.lower().split()[:MAX_QUERY_WORDS]
    found = [one for one in all_searchable_sections() if all(word in one.section.heading.lower() for word in words)]
    return sorted(found, key=lambda one: (one.chapter.title in LATER_CHAPTERS, one.section.level))[:limit]


def search_rank_of_section(
    searchable_section: SearchableSection, patterns: list[re.Pattern[str]], phrase: re.Pattern[str]
) -> tuple[int, float]:
    """Return how many of the words a section has, and how much it is about them and the phrase that they form."""
    heading, title = searchable_section.section.heading, searchable_section.page.title
    weights = [
        HEADING_WEIGHT * bool(pattern.search(heading))
        + TITLE_WEIGHT * bool(pattern.search(title))
        + min(len(pattern.findall(searchable_section.text)), MAX_COUNTED_IN_TEXT)
        for pattern in patterns
    ]
    has_phrase = phrase.search(heading) or phrase.search(searchable_section.text)
    total: float = sum(weights) + PHRASE_WEIGHT * bool(has_phrase and len(patterns) > 1)
    is_about_the_query = len(patterns) > 1 and phrase.fullmatch(heading)
    if searchable_section.chapter.title in LATER_CHAPTERS and not is_about_the_query:
        total *= LATER_WEIGHT
    return sum(weight > 0 for weight in weights), total


def make_search_result(searchable_section: SearchableSection, any_word: re.Pattern[str]) -> SearchResult:
    return SearchResult(
        chapter=searchable_section.chapter.title,
        page=searchable_section.page.title,
        url=searchable_section.url,
        heading=render_highlighted_words(searchable_section.section.heading, any_word),
        excerpt=render_highlighted_words(excerpt_around(searchable_section.text, any_word), any_word),
    )


def excerpt_around(text: str, any_word: re.Pattern[str]) -> str:
    """Return the text around the first of the words, from and to the end of a word."""
    hit = any_word.search(text)
    start = max(0, (hit.start() if hit else 0) - EXCERPT_CHARACTERS // 3)
    start = text.rfind(" ", 0, start) + 1 if start else 0
    end = start + EXCERPT_CHARACTERS
    cut = text[start:end].rsplit(" ", 1)[0] if end < len(text) else text[start:]
    return ("… " if start else "") + cut + (" …" if end < len(text) else "")


def render_highlighted_words(text: str, any_word: re.Pattern[str]) -> Markup:
    """Return a text as HTML with the words marked."""
    parts, place = [], 0
    for hit in any_word.finditer(text):
        parts += [Markup.escape(text[place : hit.start()]), Markup("<mark>{}</mark>").format(hit[0])]
        place = hit.end()
    return Markup("").join([*parts, Markup.escape(text[place:])])
