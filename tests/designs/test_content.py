"""Items as they are drawn: nothing in them runs, and nothing is fetched."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from app.designs.content import ALLOWED_TAGS, CONTENT_KINDS, Content, ItemTexts, NamedFile
from tests.designs.hostile import HOSTILE

HERE = {"a.png": "/media/1", "größe 1.png": "/media/2", "s.mp3": "/media/3"}


class Seen(HTMLParser):
    """The elements of a page, and their attributes."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes = set(), set()
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {(tag, name, value or "") for name, value in attrs}


def render(kind, text, **how):
    (item,) = Content(kind, **how).render_items([ItemTexts(text)], HERE).items
    return str(item)


def is_harmless(html):
    seen = Seen(html)
    assert seen.tags <= ALLOWED_TAGS
    for tag, name, value in seen.attributes:
        assert not name.startswith("on")
        assert name not in ("style", "id", "name", "srcset", "formaction", "srcdoc", "action")
        assert name != "src" or value in HERE.values(), (tag, value)
        assert name != "href" or re.match(r"https?://|mailto:", value)
    return True


def test_nothing_hostile_comes_through(subtests):
    for kind in ("markdown", "html"):
        for text in HOSTILE:
            with subtests.test(kind=kind, text=text):
                assert is_harmless(render(kind, text))


WORDS = ["script", "img", "src", "onerror=", "svg", "javascript:", "a.png", "![", "]("]
PARTS = st.sampled_from([*"<>/\"'=&`() \n", *WORDS])


@given(st.lists(PARTS, max_size=40).map("".join), st.sampled_from(["markdown", "html"]))
def test_nor_does_anything_that_is_malformed(text, kind):
    assert is_harmless(render(kind, text))


def test_text_is_escaped_whatever_an_item_is(subtests):
    for kind in CONTENT_KINDS:
        with subtests.test(kind=kind):
            page = Markup("{}").format(Content(kind).render_items([ItemTexts('x<script>"&')], {}).items[0])
            assert "<script" not in page


def test_markdown_is_drawn_with_its_images():
    assert render("markdown", "**b** ![a cat](a.png) ![](<größe 1.png>)") == (
        '<div class="content"><p><strong>b</strong> <img src="/media/1" alt="a cat" loading="lazy"> '
        '<img src="/media/2" alt="" loading="lazy"></p>\n</div>'
    )


def test_html_keeps_what_is_safe_and_its_links_open_beside_the_page():
    table, link = '<table dir="rtl"><tr><td colspan=2>x</td></tr></table>', '<a href="https://e.org" onclick=x>l</a>'
    html = render("html", table + link)
    assert '<table dir="rtl"><tbody><tr><td colspan="2">x</td></tr></tbody></table>' in html
    assert 'target="_blank"' in html
    assert "noopener" in html
    assert "onclick" not in html


def test_media_have_controls_and_a_name_for_those_who_cannot_see_them():
    assert 'alt="Image"' in render("image", "a.png")
    assert "controls" in render("audio", " s.mp3 ")
    assert 'aria-label="Video"' in render("video", "a.png")
    assert "There is no file “&lt;b&gt;.png”." in render("image", "<b>.png")


def test_players_offer_no_download():
    shown = [render("audio", "s.mp3"), render("video", "a.png"), render("html", '<audio src="s.mp3"></audio>')]
    assert all('controlslist="nodownload"' in html for html in shown)


LINKS = ["https://e.org/a.png", "http://e.org/a.png", "javascript://a.png", "//e.org/a.png", "data:x.png"]


def test_a_link_is_loaded_if_the_campaign_allows_it_and_only_over_https(subtests):
    for name in LINKS:
        with subtests.test(name=name):
            assert "src=" not in render("image", name)
            allowed = name.startswith("https://")
            assert ("src=" in render("image", name, links=True)) == allowed
            assert ('src="https://e.org/a.png"' in render("html", f'<img src="{name}">', links=True)) == allowed


def test_files_are_known_by_what_an_item_says():
    found = Content("html").find_media_files_in_cells(
        ItemTexts('<img src="a.png"><audio src="s.mp3"><video src="gr%C3%B6%C3%9Fe 1.png">')
    )
    assert found == {NamedFile("image", "a.png"), NamedFile("audio", "s.mp3"), NamedFile("video", "größe 1.png")}
    assert Content("image").find_media_files_in_cells(ItemTexts("gro\u0308ße.png")) == {NamedFile("image", "größe.png")}
    assert Content("text", source="s").find_media_files_in_cells(ItemTexts("a.png", "a.png", "words")) == {
        NamedFile("image", "a.png")
    }


def test_what_all_items_share_stands_there_once_and_what_they_do_not_with_each():
    content = Content("text", source="s", reference="r")
    hit = content.render_items([ItemTexts("a", "same", "one"), ItemTexts("b", "same", "two")], {})
    assert [(part.title, part.html) for part in hit.shared_context] == [("Source", "same")]
    assert [[part.html for part in own] for own in hit.own_context] == [["one"], ["two"]]
    alone = content.render_items([ItemTexts("a", "same", None)], {})
    assert [part.title for part in alone.shared_context] == ["Source"]
    assert hit.is_always_wide
    assert not alone.is_always_wide


def test_a_file_beside_a_text_is_drawn_as_what_it_is():
    hit = Content("text", source="s").render_items(
        [ItemTexts("a caption", "a.png"), ItemTexts("another", "a.png")], HERE
    )
    assert '<img src="/media/1"' in hit.shared_context[0].html
    assert hit.items == ["a caption", "another"]
    assert hit.loads_media == [True, True]


@pytest.mark.parametrize(
    ("kind", "shown", "pictures"),
    [
        ("image", "a.png", True),
        ("video", "a.mp4", True),
        ("audio", "a.mp3", False),
        ("text", "a.png", False),
        ("markdown", "![A cat](a.png)\n\nA caption", True),
        ("markdown", "![A cat](a.png)\n\n" + "Words. " * 40, False),
    ],
)
def test_items_are_pictures_if_an_image_or_a_video_is_all_but_a_caption(kind, shown, pictures):
    rendered = Content(kind, reference="r").render_items([ItemTexts(shown)] * 2, {"a.png": "/a", "a.mp4": "/b"})
    assert rendered.shows_pictures is pictures
