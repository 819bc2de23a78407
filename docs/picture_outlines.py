"""Outlines of the pages in the pictures, by which a test finds that a picture is out of date.

An outline is the text of a page's navigation, headings and buttons. `docs/pictures.py` writes the outlines of all pages
next to the pictures; the test serves the same pages again and compares.
"""

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from difflib import unified_diff
from html.parser import HTMLParser
from pathlib import Path

Fetch = Callable[[str], Awaitable[str]]

PICTURES = Path(__file__).resolve().parent / "pictures"
OUTLINES = PICTURES / "outlines.json"
RETAKE = "Take the pictures again: `.venv/bin/python docs/pictures.py`"
MAX_BYTES = 100_000
DEMO = "lexical-frequency"
CAMPAIGN = f"/admin/campaigns/{DEMO}"
SEGMENT = "letter"  # of the systems' campaign, shown with its outputs
# Pages of researchers, by the pictures; a picture has the name of its page, or it with "-dark" or "-phone".
RESEARCHERS_PAGES = {
    "campaigns": "/admin",
    "dashboard": CAMPAIGN,
    "analysis": f"{CAMPAIGN}/analysis",
    "share": f"{CAMPAIGN}/share",
    "new-campaign": "/admin/campaigns/new",
}
VARIANTS = ("hit-dark", "hit-phone", "dashboard-dark", "dashboard-phone")
# The overview has these only after more answers than the test gives.
NEEDS_ANSWERS = re.compile("(h2|nav): (Course|Precision|Items judged)")


class _Outline(HTMLParser):
    """Collects the text inside of navigation links, headings and buttons."""

    TAGS = frozenset({"h1", "h2", "h3", "button"})

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.navigations = 0
        self.inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002  (HTMLParser's)
        self.navigations += tag == "nav"
        if not self.inside and (tag in self.TAGS or (tag == "a" and self.navigations)):
            self.inside = tag
            self.lines.append("")

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.lines[-1] += data

    def handle_endtag(self, tag: str) -> None:
        self.navigations -= tag == "nav"
        if tag == self.inside:
            label = "nav" if tag == "a" else tag
            self.lines[-1] = f"{label}: {' '.join(self.lines[-1].split())}"
            self.inside = ""


def outline(html: str) -> list[str]:
    """Return the text of the navigation, headings and buttons of a page, in order, as it is with few answers."""
    parser = _Outline()
    parser.feed(html)
    return [line for line in parser.lines if not NEEDS_ANSWERS.match(line)]


async def fetch_outlines(
    researcher: Fetch, annotator: Fetch, hits: Mapping[str, str], systems: str
) -> dict[str, list[str]]:
    """Return the outlines of all pictured pages, by picture.

    Args:
        researcher: returns the page at a path, as a researcher sees it.
        annotator: starts at the link with a path, and returns the page of the first HIT.
        hits: paths of annotators' links, by picture.
        systems: slug of the systems' campaign.
    """
    pages = RESEARCHERS_PAGES | {"segments": f"/admin/campaigns/{systems}/items?segment={SEGMENT}"}
    outlines = {picture: outline(await researcher(path)) for picture, path in pages.items()}
    return outlines | {picture: outline(await annotator(path)) for picture, path in hits.items()}


def read_outlines() -> dict[str, list[str]]:
    """Return the outlines of the stored pictures."""
    stored: dict[str, list[str]] = json.loads(OUTLINES.read_text())
    return stored


def outline_changes_text(stored: Mapping[str, list[str]], served: Mapping[str, list[str]]) -> str:
    """Return a diff of the outlines that changed, with a head for each picture; empty if none did."""
    diffs = [
        line
        for picture in sorted({*stored, *served})
        for line in unified_diff(
            stored.get(picture, []),
            served.get(picture, []),
            f"{picture}, stored",
            f"{picture}, served",
            n=1,
            lineterm="",
        )
    ]
    return "\n".join(diffs)


def write_outlines(outlines: Mapping[str, list[str]]) -> None:
    """Store the outlines next to the pictures."""
    OUTLINES.write_text(json.dumps(outlines, indent=1, ensure_ascii=False, sort_keys=True) + "\n")
