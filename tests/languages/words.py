"""Collect the words of annotators' pages. As a program: bring the catalogues up to date."""

import sys
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import write_po

from app.http.languages import catalogue

ROOT = Path(__file__).parents[2]
EXTRACTOR = "app.http.languages.templates:extract_template_messages"
PLACES = (  # of a folder, which files are read, how, and the functions whose argument is a message
    (
        "templates",
        [("admin/**", "ignore"), ("**.html", "app.http.languages.templates:extract_template_messages")],
        {"gettext": None, "ngettext": (1, 2)},
    ),
    ("static", [("vendor/**", "ignore"), ("**.js", "javascript")], {"words": None}),
    ("app", [("**.py", "python")], {"message_marked_for_translation": None, "Message": None}),
)
HEADER = "# What annotators' pages say; `make words` adds what is new.\n"


def collected() -> Catalog:
    """All messages, with the files that say them."""
    found = Catalog(header_comment=HEADER, fuzzy=False)
    for folder, methods, keywords in PLACES:
        # `extract_from_dir` asks for the patterns in turn, and the first that fits decides.
        for name, _, message, _, _ in extract_from_dir(ROOT / folder, method_map=methods, keywords=keywords):
            found.add(message, locations=[(f"{folder}/{name}", 0)])
    return found


def brought_up_to_date(language: str, everything: Catalog) -> Catalog:
    """The catalogue of a language with all messages; one that is new has no words yet, one that is gone is left out."""
    path = catalogue.CATALOGUE_FOLDER / f"{language}.po"
    known = catalogue.read_messages_of_language(language) if path.exists() else Catalog(locale=language, fuzzy=False)
    known.update(everything, no_fuzzy_matching=True, update_creation_date=False)
    known.obsolete.clear()
    known.header_comment = HEADER
    known.fuzzy = False
    return known


def main() -> None:
    everything = collected()
    for language in sorted(catalogue.LANGUAGES.keys() - {catalogue.ENGLISH}):
        current = brought_up_to_date(language, everything)
        missing = sum(not message.string or not all([*message.string]) for message in current if message.id)
        with (catalogue.CATALOGUE_FOLDER / f"{language}.po").open("wb") as file:
            write_po(file, current, width=120, sort_output=True, include_lineno=False, omit_header=False)
        sys.stdout.write(f"{language}: {missing} of {len(current)} messages have no words yet\n")


if __name__ == "__main__":
    main()
