"""The documentation as a site: `make docs` builds it strictly, its links lead somewhere, and it needs no other host."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from docs.generate import generated_pages
from tests.documentation_site import build_site

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
CONFIGURATION = (ROOT / ".mkdocs.yml").read_text()
MAX_LINES = 400
MAX_LINES_OF_A_PARAGRAPH = 4
LOADED = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "audio": "src",
    "video": "src",
    "link": "href",
}


def test_pages_that_follow_from_the_code_are_current():
    stale = [name for name, text in generated_pages().items() if (DOCS / name).read_text() != text]
    assert stale == [], "run `make docs` and commit what it writes"


def test_every_page_is_in_the_navigation_once():
    named = re.findall(r"(\S+\.md)$", CONFIGURATION.partition("\nnav:\n")[2], re.MULTILINE)
    assert sorted(named) == sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))


def test_no_page_is_longer_than_it_should_be():
    lengths = {path.relative_to(DOCS): len(path.read_text().splitlines()) for path in DOCS.rglob("*.md")}
    assert {path: length for path, length in lengths.items() if length > MAX_LINES} == {}


def paragraphs(page):
    """Return the paragraphs of prose: no code, tables, lists, headings or pictures."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    return [part for part in re.split(r"\n\s*\n", text) if not re.match(r"\s*([|#!<$-]|\d+\. |  |\$\$)", part)]


def test_paragraphs_for_researchers_are_short():
    pages = [path for folder in ("tutorials", "researchers", "statistics") for path in (DOCS / folder).glob("*.md")]
    assert len(pages) > 15
    long = [part for page in pages for part in paragraphs(page) if part.count("\n") >= MAX_LINES_OF_A_PARAGRAPH]
    assert long == []


class Page(HTMLParser):
    """The ids of a page, what it links to, and what it loads."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.loads = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if LOADED.get(tag) in given and given.get("rel") not in {"canonical", "next", "prev", "edit"}:
            self.loads.append(given[LOADED[tag]])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return build_site(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def pages(site):
    return {path: Page(path.read_text()) for path in site.rglob("*.html")}


@pytest.mark.slow
def test_every_link_of_the_site_leads_somewhere(site, pages):
    assert len(pages) > 50
    broken = []
    for path, page in pages.items():
        for link in [*page.links, *page.loads]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or path.name == "404.html":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file() or (parts.fragment and target in pages and parts.fragment not in pages[target].ids):
                broken.append((str(path.relative_to(site)), link))
    assert broken == []


@pytest.mark.slow
def test_no_page_of_the_site_loads_anything_from_another_host(site, pages):
    loaded = [(path.name, link) for path, page in pages.items() for link in page.loads if urlsplit(link).netloc]
    assert loaded == []
    styles = "".join(path.read_text() for path in site.rglob("*.css"))
    assert re.findall(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//[^)\"']*", styles) == []
