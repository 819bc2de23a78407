"""The check of every page for accessibility finds what it is there for, though it looks at alike texts once."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.acts import violations

STYLE = """
    :root { color-scheme: light dark; color: #000; background: #fff; }
    @media (prefers-color-scheme: dark) { :root { color: #fff; background: #000; } .dim { color: #333; } }
    .dim, .narrow { padding: 4px; }
    @media (max-width: 500px) { .narrow { color: #aaa; background: #fff; } }
    .place { position: relative; height: 90px; }
    .plate, .laid { position: absolute; inset: 10px; }
    .plate { background: #000; }
    .laid { color: #eee; }
    @media (prefers-color-scheme: light) { .pale .inner, .pale ~ .late { color: #bbb; } }
"""
ALIKE = "<li class=row>One text</li>" * 20
LAID = "<span class=laid>Pale</span>"
GOOD = f"<ul>{ALIKE}</ul><p class=narrow>Wide</p>"


def page_with(body: str) -> str:
    return (
        f"<!doctype html><html lang=en><title>Colours</title><style>{STYLE}</style><main><h1>Colours</h1>{body}</main>"
    )


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (f'<ul>{ALIKE}<li class=row style="color: #bbb">Pale by itself</li></ul>', ["light"]),
        (f"<ul>{ALIKE}</ul><p class=dim>Dim in the dark</p>", ["dark"]),
        (f'<ul>{ALIKE}</ul><ul class=pale><li class="row inner">Pale by its list</li></ul>', ["light"]),
        ("<p class=pale>Black</p><p class=late>Pale by what stands before</p>", ["light"]),
        ('<p>On white</p><div style="background: #444; color: #000"><p>On grey</p></div>', ["light", "dark"]),
        (f"<div class=place><i class=plate></i>{LAID}</div><div class=place>{LAID}</div>", ["light"]),
        ('<label>Name <input style="color: #ccc; background: #fff" value="Ada"></label>', ["light", "dark"]),
    ],
)
async def test_a_text_without_contrast_is_found_among_others(
    visit: Callable[..., Any], body: str, found: list[str]
) -> None:
    page = (await visit()).page
    await page.set_content(page_with(body))
    assert [line.split(":")[0] for line in (await violations(page)).splitlines()] == [
        f"color-contrast ({scheme})" for scheme in found
    ]


async def test_what_a_narrow_page_changes_is_found_though_the_wide_page_was_fine(visit: Callable[..., Any]) -> None:
    page = (await visit()).page
    await page.set_content(page_with(GOOD))
    assert await violations(page) == ""
    await page.set_viewport_size({"width": 390, "height": 844})
    assert "color-contrast (light)" in await violations(page)


async def test_what_a_page_shows_later_is_found(visit: Callable[..., Any]) -> None:
    page = (await visit()).page
    await page.set_content(page_with(GOOD))
    assert await violations(page) == ""
    await page.locator(".row").nth(7).evaluate("row => { row.style.color = '#ccc'; }")
    assert "color-contrast (light)" in await violations(page)


async def test_a_link_that_only_its_colour_tells_from_the_text_is_found(visit: Callable[..., Any]) -> None:
    page = (await visit()).page
    link = '<a href="/" style="color: #111; text-decoration: none">a link</a>'
    await page.set_content(page_with(f"<p>Some words and {link} and more words</p>"))
    assert "link-in-text-block (light)" in await violations(page)


@pytest.mark.parametrize(
    ("fine", "wrong", "found"),
    [
        ("<p>{link}</p>", "<p>Some words and {link} and more words</p>", "link-in-text-block (light)"),
        ('<p class="row">Black</p>', '<p class="row" style="background: #222">Black</p>', "color-contrast (light)"),
        ("<p><b>Black</b></p>", '<p style="opacity: 0.2"><b>Black</b></p>', "color-contrast (light)"),
        (
            f"<div class=place><i class=plate></i>{LAID}</div>",
            f"<div class=place>{LAID}</div>",
            "color-contrast (light)",
        ),
    ],
)
async def test_what_is_fine_on_one_page_is_found_where_another_page_has_it_otherwise(
    visit: Callable[..., Any], fine: str, wrong: str, found: str
) -> None:
    link = '<a href="/" style="color: light-dark(#111, #eee); text-decoration: none">a link</a>'
    for body, expected in ((fine, ""), (wrong, found), (wrong, found)):  # it is found on each page that has it
        page = (await visit()).page
        await page.set_content(page_with(body.format(link=link)))
        seen = await violations(page)
        assert (expected in seen) if expected else (seen == "")


async def test_a_field_without_a_label_is_found(visit: Callable[..., Any]) -> None:
    page = (await visit()).page
    await page.set_content(page_with("<input>"))
    assert (await violations(page)).startswith("label (light)")
    assert (await violations(page, colours=False)).startswith("label (light)")
