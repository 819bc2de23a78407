"""README and docs agree with the program."""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import click

from app.analysis.methods import SCORE_METHODS
from app.analysis.scores import MAX_HITS_TO_REPLAY
from app.campaigns.campaign_file import About, CampaignFile, ItemsOfFile
from app.campaigns.setting_types import can_law_read_design
from app.cli.commands import easel
from app.designs.criteria_settings import CriterionSettings
from app.designs.registry import DESIGNS
from app.inference.online.laws import ONLINE_LAWS
from app.quality.registry import QUALITY_RULES
from app.settings import Settings, environment_variable_name

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / ".github").glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def documented_settings():
    page = (ROOT / "docs" / "operators" / "settings.md").read_text()
    return dict(re.findall(r"^\| `(\w+)` \| (.+?) \|", page, re.MULTILINE))


def test_the_settings_table_is_the_settings():
    expected = {environment_variable_name(name): field.description for name, field in Settings.model_fields.items()}
    assert documented_settings() == expected


def command_lines():
    """Return every `easel ...` in the documentation, with continued lines joined."""
    text = "\n".join(page.read_text() for page in PAGES).replace("\\\n", " ")
    return sorted(set(re.findall(r"(?:^|[` /])easel ((?:campaign )?[a-z][a-z-]*[^`\n#|]*)", text)))


def unknown_words(line):
    """Return the commands and options in a command line that the program does not have."""
    words = line.split()
    command: click.Command | None = easel
    while isinstance(command, click.Group) and words:
        command = command.get_command(click.Context(command), name := words.pop(0))
        if command is None:
            return {name}
    assert command is not None
    options = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    return {word for word in words if word.startswith("-")} - options - {"--help"}


def test_every_documented_command_exists_with_its_options():
    lines = command_lines()
    assert len(lines) > 100
    assert {line: unknown for line in lines if (unknown := unknown_words(line))} == {}


def test_every_link_to_a_file_leads_to_one():
    links = [
        (page, target)
        for page in PAGES
        for target in re.findall(r"\]\((?!http)([^)#]+)(?:#[^)]*)?\)", page.read_text())
    ]
    assert [(page.name, target) for page, target in links if not (page.parent / target).exists()] == []


@cache
def anchors(page):
    """Return the headings of a page as GitHub writes them in links."""
    outside = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    headings = [
        re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", words) for words in re.findall(r"^#+ (.*)", outside, re.MULTILINE)
    ]
    return {re.sub(r"[^\w\- ]", "", words.strip().lower()).replace(" ", "-") for words in headings}


def test_every_link_to_a_heading_leads_to_one():
    links = [
        (page, target, heading)
        for page in PAGES
        for target, heading in re.findall(r"\]\((?!http)([^)#]*)#([^)]+)\)", page.read_text())
    ]
    assert [
        (page.name, f"{target}#{heading}")
        for page, target, heading in links
        if heading not in anchors(page.parent / target if target else page)
    ] == []


def test_the_architecture_names_every_room():
    page = (ROOT / "docs" / "developers" / "rooms.md").read_text()
    rooms = {path.name for path in (ROOT / "app").iterdir() if (path / "__init__.py").exists()}
    assert rooms == set(re.findall(r"^### (\w+)$", page, re.MULTILINE))


def test_every_design_has_a_page_with_a_picture_which_is_linked(subtests):
    for name, design in DESIGNS.items():
        with subtests.test(design=name):
            page = (ROOT / "docs" / "designs" / f"{name}.md").read_text()
            assert page.startswith(f"# {design.title}\n")
            assert "](../pictures/" in page
            for part in ("When to use it", "What it cannot tell", "Source"):
                assert f"**{part}.**" in page
            for other in ("README.md", "docs/researchers/settings.md"):
                assert f"designs/{name}.md" in (ROOT / other).read_text()


def test_the_readme_counts_the_ways_of_asking():
    number = ("nine", "ten", "eleven", "twelve")[len(DESIGNS) - 9]
    assert f"{number} ways of asking" in (ROOT / "README.md").read_text().lower()


def test_laws_on_the_page_of_a_design_are_those_that_read_its_answers(subtests):
    for name, design in DESIGNS.items():
        row = re.search(
            r"^\| update law \| (.+?) \|", (ROOT / "docs" / "designs" / f"{name}.md").read_text(), re.MULTILINE
        )
        if row is not None:
            with subtests.test(design=name):
                laws = {law.name for law in ONLINE_LAWS.values() if can_law_read_design(design(), law)}
                assert set(re.findall(r"`(.+?)`", row[1])) == laws


def test_tests_on_developers_pages_are_quoted_so_that_they_run():
    pages = {page.name: page.read_text() for page in (ROOT / "docs" / "developers").glob("*.md")}
    written = {name: re.sub(r"<!-- code: .*?<!-- end -->", "", text, flags=re.DOTALL) for name, text in pages.items()}
    assert [name for name, text in written.items() if "def test_" in text] == []


def documented_names(title):
    """Return the names in the first column of a section's table."""
    page = (ROOT / "docs" / "reference" / "campaign-file.md").read_text()
    section = page.partition(f"# {title}\n")[2].partition("\n#")[0]
    return {
        name for cell in re.findall(r"^\| (`.+?) \|", section, re.MULTILINE) for name in re.findall(r"`(\w+)`", cell)
    }


def test_every_name_of_a_campaign_file_is_explained():
    assert documented_names("Names") == set(CampaignFile.model_fields)
    assert documented_names("items") == set(ItemsOfFile.model_fields)
    assert documented_names("about") == set(About.model_fields)
    assert documented_names("criteria") == set(CriterionSettings.__annotations__)
    assert documented_names("design_settings") == {name for design in DESIGNS.values() for name in design.model_fields}


def test_every_update_law_and_every_quality_rule_is_described():
    described_in: dict[str, Iterable[str]] = {
        "docs/statistics/laws.md": ONLINE_LAWS,
        "docs/researchers/settings.md": ONLINE_LAWS,
        "docs/researchers/quality.md": QUALITY_RULES,
    }
    missing = [
        (page, name)
        for page, names in described_in.items()
        for name in names
        if f"`{name}`" not in (ROOT / page).read_text()
    ]
    assert missing == []


# How the page of the update laws calls what a law reads, and its posteriors.
VALUE_KIND_TITLES = {
    "points": "scores",
    "order": "the order within a HIT",
    "ratio": "ratios",
    "classes": "labels",
    "ordered_classes": "ordered labels",
}
POSTERIOR_TITLES = {"Log-normal": "Normal, on the log scale"}


def test_the_table_of_update_laws_says_what_each_law_reads_and_its_posterior():
    page = (ROOT / "docs" / "statistics" / "laws.md").read_text()
    rows = re.findall(r"^\| \[`(.+?)`\]\(.+?\) \| (.+?) \| (.+?) \|", page, re.MULTILINE)
    assert {name: tuple(cells) for name, *cells in rows} == {
        law.name: (VALUE_KIND_TITLES[law.reads], POSTERIOR_TITLES.get(law.family.name, law.family.name))
        for law in ONLINE_LAWS.values()
    }


def test_the_page_of_the_analysis_names_the_update_laws_that_score_items_and_their_scales():
    page = (ROOT / "docs" / "researchers" / "analysis.md").read_text()
    pattern = r"^\| (.+?) \| the update laws: .+? \| points \((.+?): points .+?; (.+?): times"
    row = re.search(pattern, page, re.MULTILINE)
    assert row is not None
    laws = [law for law in ONLINE_LAWS.values() if law.name in SCORE_METHODS]
    of_order, of_ratios = ([law.name for law in laws if law.reads == kind] for kind in ("order", "ratio"))
    assert [sorted(re.findall(r"`(.+?)`", cell)) for cell in row.groups()] == [
        sorted(law.name for law in laws),
        sorted(of_order),
        sorted(of_ratios),
    ]


def test_the_page_of_the_analysis_says_which_update_laws_are_replayed_for_few_tasks_only():
    page = (ROOT / "docs" / "researchers" / "analysis.md").read_text()
    slow_laws = " or ".join(f"`{law.name}`" for law in ONLINE_LAWS.values() if not law.quick)
    assert f"A replay of {slow_laws} is possible for up to {MAX_HITS_TO_REPLAY:,} tasks." in page
