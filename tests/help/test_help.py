"""The documentation inside the product: every page, link, picture and heading, and the search."""

import re
import threading
from html.parser import HTMLParser
from pathlib import Path

import pytest

from app.help import pages
from app.help.search import search_documentation
from tests.accounts.reaching import log_in_with_role

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = {path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.rglob("*.md")}


class HelpPage(HTMLParser):
    """The ids of a page, what its links and pictures name, and its text without code."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.pictures, self.prose, self.code_depth = [], [], [], "", 0
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.code_depth += tag == "code"
        if given.get("id"):
            self.ids.append(given["id"])
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag == "img":
            self.pictures.append(given["src"])

    def handle_endtag(self, tag):
        self.code_depth -= tag == "code"

    def handle_data(self, data):
        self.prose += "" if self.code_depth else data


@pytest.fixture
async def help_pages(researcher):
    """All help pages by their address."""
    pages = {}
    for name in sorted(PAGES):
        reply = await researcher.get(f"/admin/help/{name}")
        assert reply.status_code == 200, name
        pages[f"/admin/help/{name}"] = HelpPage(reply.text)
    pages["/admin/help"] = HelpPage((await researcher.get("/admin/help")).text)
    return pages


async def test_every_page_is_listed_and_its_links_and_pictures_lead_somewhere(researcher, help_pages):
    listed = {link.partition("#")[0] for link in help_pages["/admin/help"].links if link.startswith("/admin/help/")}
    assert {f"/admin/help/{name}" for name in PAGES} <= listed
    broken, pictures = [], set()
    for address, page in help_pages.items():
        assert len(page.ids) == len(set(page.ids)), address
        pictures |= {*page.pictures}
        for link in page.links:
            target, _, anchor = link.partition("#")
            target = target or address
            if target.startswith("/admin/help"):
                is_lost = target not in help_pages or (anchor and anchor not in help_pages[target].ids)
            else:
                is_lost = not target.startswith(("/admin", "https://", "mailto:", "#"))
            if is_lost:
                broken.append((address, link))
    assert broken == []
    assert len(pictures) > 20
    for picture in pictures:
        reply = await researcher.get(picture)
        assert reply.headers["content-type"] in ("image/png", "image/svg+xml"), picture


def help_links_of_the_product():
    """All addresses of help pages in templates, scripts and Python, with the file that has them."""
    files = [path for folder in ("app", "templates", "static") for path in (ROOT / folder).rglob("*")]
    texts = {path: path.read_text() for path in files if path.suffix in {".py", ".html", ".js", ".xml"}}
    return {
        (path.relative_to(ROOT).as_posix(), link)
        for path, text in texts.items()
        for link in re.findall(r"[\"'(](/admin/help/[\w/.#-]+)", text)
    }


async def test_no_page_shows_a_tag_as_text(help_pages):
    """The help takes Markdown without HTML, so a tag in it would be read as letters."""
    shown = {address: re.findall(r"</?\w+>", page.prose) for address, page in help_pages.items()}
    assert {address: tags for address, tags in shown.items() if tags} == {}


async def test_every_help_link_of_the_product_leads_to_a_page_and_a_heading(help_pages):
    links = help_links_of_the_product()
    assert len(links) > 10
    broken = []
    for file, link in sorted(links):
        target, _, anchor = link.partition("#")
        if target not in help_pages or (anchor and anchor not in help_pages[target].ids):
            broken.append((file, link))
    assert broken == []


def test_every_explanation_on_a_page_links_to_its_section():
    """Each "What is this?" of a template ends with a link."""
    sources = {path.name: path.read_text() for path in (ROOT / "templates").rglob("*.html")}
    parts = [
        (name, part.partition("</details>")[0])
        for name, source in sources.items()
        for part in source.split("<summary>What is this?</summary>")[1:]
    ]
    assert len(parts) > 3
    assert [name for name, part in parts if "/admin/help/" not in part and "{{ help }}" not in part] == []


async def test_pages_show_tables_code_pictures_and_formulas(researcher):
    page = (await researcher.get("/admin/help/statistics/laws")).text
    assert '<span class="math display">$$' in page
    assert "vendor/katex/katex.min.js" in page
    assert "<table>" in page
    page = (await researcher.get("/admin/help/researchers/importing-responses")).text
    assert '<h1 id="importing-responses">Importing responses</h1>' in page
    assert "One row for each item of a task" in page
    assert '<pre tabindex="0"><code' in page or "<pre><code" in page
    assert "katex" not in page
    assert "Written by docs/generate.py" not in (await researcher.get("/admin/help/reference/cli")).text


@pytest.mark.parametrize("name", ["x", "../README", "researchers", "generate.py", "researchers/goals.md"])
async def test_an_unknown_page_is_not_found(researcher, name):
    assert (await researcher.get(f"/admin/help/{name}")).status_code == 404


async def test_search_finds_the_section_about_the_words_and_marks_them(researcher):
    page = (await researcher.get("/admin/help", params={"q": "gold items"})).text
    first = re.search(r'<li><a href="(/admin/help/[^"]+)">(.*?)</a>', page.partition('class="results"')[2])
    assert first is not None
    assert first[1].startswith("/admin/help/researchers/quality#")
    assert "<mark>" in first[2]
    assert 'value="gold items"' in page


@pytest.mark.parametrize(
    ("query", "page", "heading"),
    [
        ("exclude", "Quality", "Excluding and restoring"),
        ("excluding", "Quality", "Excluding and restoring"),
        ("quotas", "Who judges what", "Quotas"),
        ("retention", "People's data", "Retention"),
        ("campaign file", "Campaign file", "Campaign file"),
        ("rehearsals", "Rehearsals", "Rehearsals"),
    ],
)
def test_search_finds_guides_before_lists_of_commands_and_forgives_endings(query, page, heading):
    first = search_documentation(query)[0]
    assert (first.page, re.sub("<[^>]+>", "", str(first.heading))) == (page, heading)


async def test_a_search_lets_other_requests_go_on(researcher, monkeypatch):
    threads = []

    def note_thread(_query):
        threads.append(threading.current_thread())
        return []

    monkeypatch.setattr(pages, "search_documentation", note_thread)
    await researcher.get("/admin/help", params={"q": "gold"})
    assert len(threads) == 1
    assert threads[0] is not threading.current_thread()


@pytest.mark.parametrize("query", ["xyzzyplugh", "*", "<script>", " ", "(", "\\"])
async def test_search_copes_with_words_that_nothing_has(researcher, query):
    reply = await researcher.get("/admin/help", params={"q": query})
    assert reply.status_code == 200
    assert "<script>" not in reply.text.partition("<main")[2].partition("</main>")[0]


@pytest.mark.parametrize("role", ["guest", "member", "viewer", "manager", "owner"])
async def test_researchers_of_every_role_may_read_it(app, client, role):
    await log_in_with_role(app, client, role)
    page = await client.get("/admin/help/researchers/goals")
    assert page.status_code == 200
    assert '<a href="/admin/help" aria-current="true">Help</a>' in page.text


async def test_strangers_log_in_first(client):
    for address in ("/admin/help", "/admin/help/researchers/goals", "/admin/help/pictures/hit.png"):
        reply = await client.get(address)
        assert reply.status_code in (303, 401), address
