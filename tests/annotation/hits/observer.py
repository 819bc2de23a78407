"""An observer who remembers every attribute of earlier pages and looks for items that are checks."""

import re
from collections import defaultdict
from html.parser import HTMLParser

VOID = {"input", "img", "br", "link", "meta", "hr", "source", "wbr", "line", "circle", "path"}
NUMBERED = re.compile(r"\d")


class HitForm(HTMLParser):
    """The HIT of a page: what it would send, and the attributes that go with the words of each item."""

    def __init__(self, page: str, words: re.Pattern[str]) -> None:
        super().__init__()
        self.words = words
        self.open: list[tuple[str, list[str]]] = []  # elements around what is read, with the values of their attributes
        self.items: dict[str, set[str]] = {}  # by the words of an item, or the address of its image
        self.hidden: dict[str, str] = {}
        self.inputs: dict[str, list[dict[str, str]]] = defaultdict(list)
        self.skeleton = ""  # the page without the words of items
        form = page.partition('<form class="answer')[2].partition("</form>")[0]
        self.feed(form.partition(">")[2])
        for text in self.items:
            self.items[text] |= {each for one in self.items[text] for each in self.named_like(one)}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        note_values = {name: value or "" for name, value in attrs}
        self.note(tag, note_values)
        if tag not in VOID:
            self.open.append((tag, [*note_values.values()]))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.note(tag, {name: value or "" for name, value in attrs})

    def note(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "input" and attributes.get("type") == "hidden":
            self.hidden[attributes["name"]] = attributes["value"]
            return
        if tag in ("input", "select") and "name" in attributes:
            self.inputs[attributes["name"]].append(attributes | {"tag": tag})
        if tag == "img":
            self.note_values(attributes["src"])
            attributes = attributes | {"src": re.sub("[0-9a-f]", "x", attributes["src"])}
        self.skeleton += f"<{tag} {sorted(attributes.items())}>"

    def handle_endtag(self, tag: str) -> None:
        if self.open and self.open[-1][0] == tag:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        self.skeleton += self.words.sub("…", data)
        for text in self.words.findall(data):
            self.note_values(text)

    def note_values(self, text: str) -> None:
        values = {value for _, attributes in self.open for value in attributes if NUMBERED.search(value)}
        self.items.setdefault(text, set()).update(values)

    def named_like(self, value: str) -> set[str]:
        """Return names and values of controls that end in the same digits as this attribute."""
        end = re.search(r"\d+$", value)
        if end is None:
            return set()
        names = {name for name in self.inputs if re.search(rf"(?<!\d){end[0]}$", name)}
        return names | {one["value"] for of in self.inputs.values() for one in of if one.get("value") == end[0]}

    def filled_in(self) -> dict[str, str]:
        """Return what the form sends with an answer for every item."""
        fields = dict(self.hidden)
        for position, (name, controls) in enumerate(self.inputs.items()):
            first = controls[0]
            if first["tag"] == "input" and first.get("type") != "search":
                offered = controls[min(position, len(controls) - 1)]
                fields[name] = offered["value"] if first.get("type") == "radio" else str(position + 1)
        return fields


class Observer:
    """Remembers with which words each attribute was seen, and suspects what comes under an attribute of other words."""

    def __init__(self) -> None:
        self.words_under: dict[str, set[str]] = defaultdict(set)

    def suspects(self, items: dict[str, set[str]]) -> set[str]:
        """Return the words that stand under something that stood for other words alone, and remember all."""
        suspected = {
            words
            for words, attributes in items.items()
            if any(len(self.words_under[one]) == 1 and words not in self.words_under[one] for one in attributes)
        }
        for words, attributes in items.items():
            for one in attributes:
                self.words_under[one].add(words)
        return suspected
