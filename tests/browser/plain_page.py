"""Pages as a browser without scripts reads them, by httpx: texts, links, and forms that are filled in and sent.

What a browser checks before it sends a form is checked here too, so that a page without `required` is noticed. Styles
are not read: tests of what is visible without scripts drive a real browser.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urlencode, urljoin

import httpx

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
UNSEEN = {"script", "style", "template", "head", "title"}
CONTROLS = {"input", "select", "textarea"}


@dataclass(eq=False)
class Element:
    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    parent: "Element | None" = None
    children: list["Element | str"] = field(default_factory=list)

    def __iter__(self) -> Iterator["Element"]:
        """Yield this element and all below it, in the order of the page."""
        yield self
        for child in self.children:
            if isinstance(child, Element):
                yield from child

    @property
    def text(self) -> str:
        """The words that people read, with single spaces."""
        return " ".join("".join(self._texts()).split())

    def _texts(self) -> Iterator[str]:
        if self.tag in UNSEEN or "hidden" in self.attributes:
            return
        for child in self.children:
            if isinstance(child, Element):
                yield from child._texts()
            else:
                yield child
        if self.tag not in ("a", "b", "em", "i", "span", "strong"):
            yield " "

    def closest(self, is_wanted: Callable[["Element"], bool]) -> "Element | None":
        element: Element | None = self
        while element is not None and not is_wanted(element):
            element = element.parent
        return element

    def has_class(self, name: str) -> bool:
        return name in self.attributes.get("class", "").split()


class _Reader(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.root = self.last = Element("#page")
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == self.last.tag in ("option", "li", "p", "dt", "dd", "tr", "td", "th"):
            self.handle_endtag(tag)
        element = Element(tag, {name: value or "" for name, value in attrs}, self.last)
        self.last.children.append(element)
        if tag not in VOID:
            self.last = element

    def handle_endtag(self, tag: str) -> None:
        if closed := self.last.closest(lambda element: element.tag == tag):
            self.last = closed.parent or self.root

    def handle_data(self, data: str) -> None:
        self.last.children.append(data)


class PlainPage:
    """The page that one person looks at, who has cookies of their own."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client
        self.url = ""
        self.root = Element("#page")

    async def goto(self, url: str) -> None:
        self._show(await self.client.get(urljoin(self.url, url)))

    def _show(self, response: httpx.Response) -> None:
        self.url, self.root = str(response.url), _Reader(response.text).root

    @property
    def text(self) -> str:
        return self.root.text

    def all(self, tag: str = "", class_: str = "", **attributes: str) -> list[Element]:
        """Return the elements with this tag, class and attributes."""
        return [
            element
            for element in self.root
            if tag in ("", element.tag)
            and (not class_ or element.has_class(class_))
            and all(element.attributes.get(name.replace("_", "-")) == value for name, value in attributes.items())
        ]

    def texts(self, class_: str) -> list[str]:
        return [element.text for element in self.all(class_=class_)]

    def name_of(self, element: Element) -> str:
        """Return what a screen reader calls an element."""
        attributes = element.attributes
        if "aria-labelledby" in attributes:
            named = [self.all(id=name) for name in attributes["aria-labelledby"].split()]
            return " ".join(one.text for ones in named for one in ones)
        if "aria-label" in attributes:
            return attributes["aria-label"]
        if element.tag == "fieldset" and (
            legends := [one for one in element.children if isinstance(one, Element) and one.tag == "legend"]
        ):
            return legends[0].text
        labels = self.all("label", **{"for": attributes.get("id", "-")})
        if around := element.closest(lambda one: one.tag == "label"):
            labels.append(around)
        return " ".join(label.text for label in labels) or element.text

    def _only(self, elements: list[Element], name: str) -> Element:
        names = [self.name_of(element) for element in elements]
        exact = [element for element, own in zip(elements, names, strict=True) if own == name]
        found = exact or [element for element, own in zip(elements, names, strict=True) if name in own]
        assert found, f"nothing is called “{name}”, only {names}"
        return found[0]

    def group(self, name: str) -> Element:
        """Return the fieldset or group of controls with this name."""
        groups = [
            one for one in self.root if one.tag == "fieldset" or one.attributes.get("role") in ("group", "radiogroup")
        ]
        return self._only(groups, name)

    def control(self, name: str, within: Element | None = None) -> Element:
        controls = [one for one in within or self.root if one.tag in CONTROLS]
        return self._only([one for one in controls if one.attributes.get("type") != "hidden"], name)

    def numbers(self) -> list[Element]:
        """Return the fields for numbers, in the order of the page."""
        return self.all("input", type="number") or self.all("input", inputmode="decimal")

    def fill(self, control: str | Element, value: str) -> None:
        element = self.control(control) if isinstance(control, str) else control
        if element.tag == "textarea":
            element.children = [value]
        element.attributes["value"] = value

    def check(self, control: str | Element, within: Element | None = None) -> None:
        element = self.control(control, within) if isinstance(control, str) else control
        if element.attributes["type"] == "radio":
            for other in self.all("input", type="radio", name=element.attributes["name"]):
                other.attributes.pop("checked", None)
        element.attributes["checked"] = ""

    def select(self, control: str | Element, option: str) -> None:
        """Choose an option by its words or its value."""
        element = self.control(control) if isinstance(control, str) else control
        options = [one for one in element if one.tag == "option"]
        chosen = next(one for one in options if option in (one.text, one.attributes.get("value")))
        for one in options:
            one.attributes.pop("selected", None)
        chosen.attributes["selected"] = ""

    async def follow(self, name: str, within: Element | None = None) -> None:
        links = [one for one in within or self.root if one.tag == "a"]
        await self.goto(self._only(links, name).attributes["href"])

    async def enter(self, control: Element) -> list[str]:
        """Press Enter in a field: its form is sent as by its first button."""
        form = control.closest(lambda one: one.tag == "form")
        assert form is not None
        buttons = [one for one in form if one.tag == "button" and one.attributes.get("type") in (None, "submit")]
        return await self._send_by(buttons[0])

    def controls_of(self, form: Element) -> list[Element]:
        own = form.attributes.get("id", "-")
        return [
            one
            for one in self.root
            if one.tag in CONTROLS
            and "disabled" not in one.attributes
            and one.attributes.get("form", own) == own
            and (one.attributes.get("form") or one.closest(lambda around: around is form))
        ]

    def incomplete(self, form: Element) -> list[str]:
        """Return the fields for which a browser would not send the form: empty ones, and what is no number."""
        controls = self.controls_of(form)
        checked = {one.attributes.get("name") for one in controls if "checked" in one.attributes}
        problems = []
        for one in controls:
            kind, name, value = one.attributes.get("type"), one.attributes.get("name", ""), _value_of(one)
            is_empty = name not in checked if kind in ("radio", "checkbox") else not value
            if ("required" in one.attributes and is_empty) or (value and not _is_possible(one, value)):
                problems.append(name)
        return list(dict.fromkeys(problems))

    async def press(self, name: str) -> list[str]:
        """Press a button that sends its form; return the fields for which a browser would not send it."""
        buttons = [one for one in self.root if one.tag == "button" or one.attributes.get("type") == "submit"]
        return await self._send_by(
            self._only([one for one in buttons if one.attributes.get("type") in (None, "submit")], name)
        )

    async def _send_by(self, button: Element) -> list[str]:
        form = (
            self.all("form", id=button.attributes["form"])[0]
            if "form" in button.attributes
            else button.closest(lambda one: one.tag == "form")
        )
        assert form is not None, f"“{button.text}” is in no form"
        is_checked = "formnovalidate" not in button.attributes and "novalidate" not in form.attributes
        if is_checked and (problems := self.incomplete(form)):
            return problems
        fields = [pair for one in self.controls_of(form) for pair in _sent(one)]
        if "name" in button.attributes:
            fields.append((button.attributes["name"], button.attributes.get("value", "")))
        action = button.attributes.get("formaction", form.attributes.get("action", ""))
        url = urljoin(self.url, action) if action else self.url
        if form.attributes.get("method", "get").lower() == "get":
            self._show(await self.client.get(f"{url.partition('?')[0]}?{urlencode(fields)}"))
        else:
            data: dict[str, list[str]] = {}
            for name, value in fields:
                data.setdefault(name, []).append(value)
            self._show(await self.client.post(url, data=data))
        return []


def _is_possible(control: Element, value: str) -> bool:
    """Return whether a browser would send this value of a field."""
    if control.attributes.get("type") == "number":
        return re.fullmatch(r"[-+]?[\d.]+([eE][-+]?\d+)?", value) is not None
    return re.fullmatch(control.attributes.get("pattern", ".*"), value, re.DOTALL) is not None


def _value_of(control: Element) -> str:
    if control.tag == "textarea":
        return "".join(child for child in control.children if isinstance(child, str)).removeprefix("\n")
    if control.tag == "select":
        options = [one for one in control if one.tag == "option"]
        chosen = [one for one in options if "selected" in one.attributes] or options[:1]
        return chosen[0].attributes.get("value", chosen[0].text) if chosen else ""
    return control.attributes.get("value", "")


def _sent(control: Element) -> Iterator[tuple[str, str]]:
    """Yield the name and value that a browser sends for a control."""
    kind, name = control.attributes.get("type"), control.attributes.get("name")
    is_choice = kind in ("radio", "checkbox")
    if not name or kind in ("submit", "button", "file") or (is_choice and "checked" not in control.attributes):
        return
    if control.tag == "select" and "multiple" in control.attributes:
        for one in control:
            if one.tag == "option" and "selected" in one.attributes:
                yield name, one.attributes.get("value", one.text)
        return
    value = "on" if is_choice and "value" not in control.attributes else _value_of(control)
    yield name, value.replace("\n", "\r\n")
