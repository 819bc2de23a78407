"""Write the pages that repeat the code: `python docs/generate.py`, from the project's root. `make docs` runs it.

Whole pages are in `PAGES`. Other pages have blocks that begin with `<!-- code: PATH -->`, `<!-- code: PATH NAME -->`,
`<!-- guide: PATH -->` (the docstring of a module), `<!-- rooms -->`, `<!-- layers -->`, `<!-- tables -->` or
`<!-- personal-data -->` and end with `<!-- end -->`: the lines between are filled in.
"""

import ast
import re
import sys
import textwrap
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import click
from sqlalchemy import Table

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from app import errors  # noqa: E402  (only after the line above)
from app.cli.commands import easel  # noqa: E402
from app.main import create_app  # noqa: E402
from app.privacy.inventory import PERSONAL_TABLES  # noqa: E402
from app.settings import (  # noqa: E402
    SECRET_SETTINGS,
    SERVICE_TOKEN_PREFIX,
    Settings,
    environment_variable_name,
    secret_file_variable_name,
)

NOTE = "<!-- Written by docs/generate.py; `make docs` writes it again. -->\n"
COMMANDS_WITH_CAMPAIGN_SETTINGS = ("easel campaign create", "easel campaign edit")
PEOPLE_GROUPS = ("annotators", "people", "person")
CAMPAIGN_GROUPS = ("campaign", "labels")
GROUPS_WITH_A_PAGE = (*CAMPAIGN_GROUPS, *PEOPLE_GROUPS)
ON_A_PAGE_OF_THEIR_OWN = 40  # options; a command with more of them gets a page


NOTES = ("Note", "Inestimable", "NotConverged")  # calls that make a note of an analysis
CODE_FIRST = ("Note", "MediaProblem")  # calls that name the code as their first argument
# Explanations of codes whose message is composed of several sentences, so that no single one explains the code.
EXPLANATIONS = {
    "all_are_best": "All items would count as the best. Choose another goal, or fewer best items.",
    "excel_workbook": "This is an old or binary Excel workbook. Save it as .xlsx or as CSV UTF-8 and upload that.",
    "json_unreadable": "this is not valid JSON.",
    "media_type_unknown": "is not an image, a recording or a video that browsers can show.",
    "media_unnamed": "No item names … in the zip. Nothing was imported.",
    "no_items": "“…” has no items. Import items first.",
    "not_a_table": "The file is not a table. The message says what it is and how to convert it.",
    "settings_invalid": "Settings are not valid. `details.fields` names each of them.",
    "settings_problem": "An environment variable has an invalid value. The message names the variable.",
    "startup_problem": "Easel cannot start on this machine. The message says why.",
    "too_few_items": "“…” has fewer items than one HIT needs. Upload them, then launch.",
    "yaml_unreadable": "Line …: the message says what is not valid in the file. Nothing was created.",
    "baseline_advice": "Whether the baseline wins and loses about equally and, if not, which baseline to choose.",
    "draws_without_value": "In … of … draws of the items, the value is not defined; the interval uses the others.",
    "figure_without_interval": "There is no interval for one of the correlations, for the reason given.",
    "judged_again": "… items were judged again by the same annotator, which does not narrow any interval.",
    "mean_over_pairs": "The value is the mean over … pairs of annotators, ….",
    "most_groups": "The table or its columns show only the first … answers.",
    "no_discrimination": "There is no discrimination, for the reason given.",
    "no_interval": "There is no interval, for the reason given.",
    "no_intervals": "It is unknown how far annotators differ, so there are no intervals.",
    "no_scale": "No scale fits the preferences, for the reason given.",
    "no_score": "… items have no judgments and no score.",
    "no_transitivity": "There is no transitivity kappa, for the reason given.",
    "not_standardised": "… annotators gave one judgment, which cannot be standardised: … judgments left out.",
    "one_judgment": "… items have one judgment: its error is estimated from the other items.",
    "one_side_constant": "All scores of one side are equal, so there is no correlation.",
    "ties_count_half": "… ties count as half a win for each of the two items.",
}


def cell(text: str) -> str:
    """Return a text as a cell of a Markdown table."""
    return re.sub(r"\s+", " ", text).strip().replace("|", r"\|").replace("<", "&lt;")


def table(*rows: tuple[str, ...]) -> str:
    """Return a Markdown table; the first row is its header."""
    head, *body = rows
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ("---",) * len(head), *body)) + "\n"


def settings_page() -> str:
    rows = []
    for name, field in Settings.model_fields.items():
        default = field.default
        shown = "" if field.default_factory or default in (None, "", ()) else str(default)
        if isinstance(default, tuple) and default:
            shown = ", ".join(default)
        if hasattr(default, "get_secret_value"):
            shown = ""
        rows.append(
            (
                f"`{environment_variable_name(name)}`",
                cell(field.description or "").replace("&lt;", "<"),
                f"`{shown}`" if shown else "",
            )
        )
    return (
        f"# Server settings\n\n{NOTE}\n"
        "Easel reads its server settings from environment variables. None is required. `easel serve` refuses an\n"
        "invalid value and names the variable, and warns of a variable that begins with `EASEL_` but is no setting.\n"
        "[Campaigns](../researchers/settings.md) have their own.\n\n"
        + table(("variable", "meaning", "default"), *rows)
        + "\nA secret can also be in a file, as Docker and Kubernetes provide secrets. Name the file in\n"
        + ", ".join(f"`{secret_file_variable_name(field)}`" for field in SECRET_SETTINGS[:-1])
        + f"\nor `{secret_file_variable_name(SECRET_SETTINGS[-1])}`, and leave the variable itself unset.\n"
        + f"\nVariables whose names begin with `{SERVICE_TOKEN_PREFIX}` hold tokens of platforms. Managers of\n"
        "campaigns can [name one](../researchers/payments.md#set-a-budget) instead of entering a token. To encrypt\n"
        "entered tokens so that a copy of the database does not reveal them, set `EASEL_SECRET_KEY`.\n"
    )


def commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """Yield every command that does something, with its full name."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for part in command.list_commands(context):
            found = command.get_command(context, part)
            assert found is not None
            yield from commands(found, f"{name} {part}")
    else:
        yield name, command


def options_of(command: click.Command) -> list[tuple[str, str]]:
    """Return name and meaning of each option; what can be chosen from is part of the meaning."""
    context = click.Context(command)
    options = []
    for option in command.params:
        record = option.get_help_record(context) if isinstance(option, click.Option) else None
        if record is None:
            continue
        name, meaning = record
        if "|" in name:
            name, _, choices = name.partition("[")
            meaning = f"{meaning} One of {choices.rstrip(']').replace('|', ', ')}."
        options.append((f"`{name.strip()}`", cell(meaning)))
    return options


def usage_of(name: str, command: click.Command) -> str:
    return " ".join([name, *command.collect_usage_pieces(click.Context(command))])


def paragraphs(help_text: str) -> str:
    """Return the help of a command as Markdown; what `\\b` marks stays as it is written."""
    parts = []
    for part in re.split(r"\n\s*\n", help_text.strip()):
        lines = part.split("\n")
        if lines[0].strip() == "\b":
            parts.append("```text\n" + "\n".join(line.removeprefix("    ") for line in lines[1:]) + "\n```")
        else:
            parts.append(" ".join(part.split()).replace("<", "&lt;").replace("*", r"\*"))
    return "\n\n".join(parts)


def sections_of(*groups: str) -> str:
    """Return what the commands of these groups do; without a name, those of groups without a page of their own."""
    sections = []
    for name, command in commands(easel, "easel"):
        group = name.split()[1]
        if group not in (groups or {group} - {*GROUPS_WITH_A_PAGE}):
            continue
        options = options_of(command)
        text = f"## {name}\n\n{paragraphs(command.help or '')}\n\n`{usage_of(name, command)}`\n"
        if len(options) > ON_A_PAGE_OF_THEIR_OWN:
            text += "\nIts options are on the page of [campaign options](cli-campaign-options.md).\n"
        elif options:
            text += "\n" + table(("option", "meaning"), *options)
        sections.append(text)
    return "\n".join(sections)


def command_line_page() -> str:
    return (
        f"# Command line\n\n{NOTE}\n"
        "`easel` is `.venv/bin/easel` in the project's folder, or `docker compose exec app easel`. Every command\n"
        "works on the database that `DATABASE_URL` names, or on Easel's own. `easel COMMAND --help` shows this too.\n"
        "The commands that begin with `easel campaign` or `easel labels` have\n"
        "[a page of their own](cli-campaigns.md), and so have those about [people](cli-people.md).\n\n" + sections_of()
    )


def people_commands_page() -> str:
    return (
        f"# Commands for people\n\n{NOTE}\n"
        "All other commands are on the page [Command line](cli.md).\n\n" + sections_of(*PEOPLE_GROUPS)
    )


def campaign_commands_page() -> str:
    return (
        f"# Commands for campaigns\n\n{NOTE}\n"
        "All other commands are on the page [Command line](cli.md).\n\n" + sections_of(*CAMPAIGN_GROUPS)
    )


def campaign_options_page() -> str:
    found = dict(commands(easel, "easel"))
    create, edit = (dict(options_of(found[name])) for name in COMMANDS_WITH_CAMPAIGN_SETTINGS)
    only = [name for name in create if name not in edit] + [name for name in edit if name not in create]
    where = {True: "`create`", False: "`edit`"}
    return (
        f"# Options of campaign create and edit\n\n{NOTE}\n"
        "`easel campaign create` and `easel campaign edit` take the same settings; `edit` changes those that you\n"
        "name. [Campaign settings](../researchers/settings.md) explains them.\n\n"
        + table(("option", "meaning"), *((name, text) for name, text in create.items() if name in edit))
        + "\nThese options belong to only one of the two commands:\n\n"
        + table(
            ("option", "command", "meaning"),
            *((name, where[name in create], create.get(name, edit.get(name, ""))) for name in only),
        )
    )


def statuses() -> dict[str, int]:
    """HTTP status by name of a class of refusals."""
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.Refusal)]
    return {kind.__name__: kind.status for kind in kinds}


def constants(node: ast.expr) -> Iterator[str]:
    """Yield the codes that an expression can be; a part that is only known later is `*`."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from constants(node.body)
        yield from constants(node.orelse)
    elif isinstance(node, ast.JoinedStr):
        yield joined(node, "*")


def joined(node: ast.JoinedStr, rest: str) -> str:
    """Return an f-string with `rest` in the place of what it names."""
    return "".join(str(part.value) if isinstance(part, ast.Constant) else rest for part in node.values)


def words_of(node: ast.AST) -> str:
    """Return a text as it is written, with … in the place of what it names."""
    if isinstance(node, ast.JoinedStr):
        text = joined(node, "…")
    else:
        text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
    return re.sub(r"{\w*}", "…", text)


def first_sentence(node: ast.AST) -> str:
    return next((text for text in map(words_of, ast.walk(node)) if has_words(text)), "")


def message_of(call: ast.Call, assigned: list[tuple[int, str, str]]) -> str:
    """Return the first sentence within a call, or the one that was assigned last to a name within it.

    Args:
        call: A call that makes a refusal or a note.
        assigned: Line, name and sentence of all assignments of sentences in the module.
    """
    names = {node.id for node in ast.walk(call) if isinstance(node, ast.Name)}
    earlier = [text for line, name, text in assigned if name in names and line <= call.lineno]
    return first_sentence(call) or (earlier[-1] if earlier else "")


def assigned_sentences(tree: ast.Module) -> list[tuple[int, str, str]]:
    assignments = sorted((node for node in ast.walk(tree) if isinstance(node, ast.Assign)), key=lambda one: one.lineno)
    found = ((node.lineno, ast.unparse(node.targets[0]), first_sentence(node.value)) for node in assignments)
    return [(line, name, text) for line, name, text in found if text]


def has_words(message: str) -> bool:
    """Whether a message says something without what it names."""
    return message[:1].strip(" ,;.") != "" and len(message.replace("…", "").split()) > 2


def codes(*, of_notes: bool) -> dict[str, tuple[set[int], str]]:
    """Return HTTP statuses and an example of the message by code: of refusals, or of the notes of an analysis."""
    status_of = statuses()
    found: dict[str, tuple[set[int], str]] = {}
    if not of_notes:
        kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.Refusal)]
        found = {kind.code: ({kind.status}, (kind.__doc__ or "").split("\n")[0]) for kind in kinds}
    for code, kind, message in all_codes():
        if (kind in NOTES) != of_notes:
            continue
        known, example = found.get(code, (set(), ""))
        found[code] = (known | {status_of[kind]} if kind in status_of else known, example or message)
    return found


@cache
def all_codes() -> list[tuple[str, str, str]]:
    """Return each code of the application, as `codes_in` gives it; two pages list them."""
    paths = sorted((ROOT / "app").rglob("*.py"))
    return [found for path in paths for found in codes_in(ast.parse(path.read_text()))]


def codes_in(tree: ast.Module) -> Iterator[tuple[str, str, str]]:
    """Yield each code of a module with what is called with it and the words of the message."""
    assigned = assigned_sentences(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).endswith("code"):
            yield from ((code, "", "") for code in constants(node.value))
        if not isinstance(node, ast.Call):
            continue
        kind = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        found = [code for keyword in node.keywords if keyword.arg == "code" for code in constants(keyword.value)]
        if node.args and (kind in CODE_FIRST or "refuse" in kind or kind.startswith("raise_")):
            found += [code for code in constants(node.args[0]) if "_" in code]
        yield from ((code, kind, message_of(node, assigned)) for code in found)


def error_code_rows(*, have_status: bool) -> list[tuple[str, str, str]]:
    """Return code, HTTP statuses and message of the codes that have an HTTP status, or of those that have none."""
    return [
        (f"`{code}`", ", ".join(map(str, sorted(known))), cell(EXPLANATIONS.get(code, message)))
        for code, (known, message) in sorted(codes(of_notes=False).items())
        if bool(known) == have_status
    ]


def error_codes_page() -> str:
    return (
        f"# Error codes\n\n{NOTE}\n"
        "Every refusal has a code, which does not change once it is released; its message may change. The API\n"
        'answers `{"error": {"code": ..., "message": ..., "details": {...}}}`; the command line prints the message.\n'
        "Codes without an HTTP status have [a page of their own](error-codes-within.md). `…` stands for a name or\n"
        "number, and `*` in a code for a word such as `annotator`.\n\n"
        + table(("code", "HTTP", "message"), *error_code_rows(have_status=True))
    )


def inner_error_codes_page() -> str:
    rows = [(code, message) for code, _, message in error_code_rows(have_status=False)]
    return (
        f"# Codes within errors\n\n{NOTE}\n"
        "These codes occur within another refusal, or only on the command line, so they have no HTTP status. All\n"
        "others are on the page [Error codes](error-codes.md).\n\n" + table(("code", "message"), *rows)
    )


def analysis_notes_page() -> str:
    rows = [
        (f"`{code}`", cell(EXPLANATIONS.get(code, message)))
        for code, (_, message) in sorted(codes(of_notes=True).items())
    ]
    return (
        f"# Codes of notes\n\n{NOTE}\n"
        "The `notes` of a method of [analysis](../researchers/analysis.md) explain the limits of its figures, or why\n"
        "there are none. Each note has one of these codes, which does not change once it is released; its text may.\n\n"
        + table(("code", "note"), *rows)
    )


def first_sentence_of(description: str) -> str:
    return re.split(r"(?<=[.:])\s", description, maxsplit=1)[0].rstrip(":.") + "."


def addresses_page() -> str:
    document = create_app(Settings(database_url=None)).openapi()
    rows = [
        (f"`{method.upper()}`", f"`{path.removeprefix('/api/v1')}`", cell(first_sentence_of(operation["description"])))
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    return (
        f"# API endpoints\n\n{NOTE}\n"
        "All endpoints begin with `/api/v1`. Your server lists every field at `/admin/api`. [API](api.md) explains\n"
        "how to begin.\n\n" + table(("method", "endpoint", "what it does"), *rows)
    )


PAGES = {
    "operators/settings.md": settings_page,
    "reference/cli.md": command_line_page,
    "reference/cli-campaigns.md": campaign_commands_page,
    "reference/cli-people.md": people_commands_page,
    "reference/cli-campaign-options.md": campaign_options_page,
    "reference/api-addresses.md": addresses_page,
    "reference/error-codes.md": error_codes_page,
    "reference/error-codes-within.md": inner_error_codes_page,
    "reference/analysis-notes.md": analysis_notes_page,
}


BLOCK = re.compile(
    r"^( *)(<!-- (code|guide|rooms|layers|tables|personal-data)(?:: (\S+)(?: (\w+))?)? -->\n).*?^ *(<!-- end -->)$",
    re.DOTALL | re.MULTILINE,
)
LANGUAGE_BY_SUFFIX = {".py": "python", ".html": "jinja", ".yaml": "yaml", ".js": "js"}


def code_block(path: str, name: str | None) -> str:
    """Return a file as a block of code, or only the statement of it that defines the name."""
    source = (ROOT / path).read_text(encoding="utf-8").rstrip()
    if name is not None:
        source = definition(source, name)
    return f"```{LANGUAGE_BY_SUFFIX[Path(path).suffix]}\n{source}\n```\n"


def definition(source: str, name: str) -> str:
    """Return the statement of a module that defines a name. Raises KeyError if there is none."""
    for node in ast.parse(source).body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if name in [ast.unparse(target) for target in targets] or getattr(node, "name", "") == name:
            return ast.get_source_segment(source, node) or ""
    raise KeyError(name)


def layers() -> list[list[str]]:
    """Return the rooms of app/ that may not import each other, the highest first."""
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    names = next(one["layers"] for one in linter["contracts"] if one.get("containers") == ["app"])
    return [re.findall(r"\w+", layer) for layer in names]


def layers_block() -> str:
    return "```text\n" + "\n".join(" | ".join(layer) for layer in layers()) + "\n```\n"


def guide_of_module(path: Path) -> str:
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


def guide_of_room(folder: Path) -> str:
    return guide_of_module(folder / "__init__.py")


def rooms_block() -> str:
    """Return the guide of each room, and of the rooms within it that have one of several lines, the highest first."""
    parts = []
    for room in (room for layer in layers() for room in layer if (ROOT / "app" / room).is_dir()):
        for folder in sorted(path.parent for path in (ROOT / "app" / room).rglob("__init__.py")):
            name = folder.relative_to(ROOT / "app").as_posix()
            if name == room or "\n" in guide_of_room(folder):
                parts.append(f"{'###' if name == room else '####'} {name}\n\n{guide_of_room(folder)}\n")
    return "\n".join(parts)


def tables_block() -> str:
    """Return every table with its primary key, the tables that it refers to, and the comment above its definition."""
    rows = [("table", "what it holds", "primary key", "belongs to")]
    for file in sorted((ROOT / "app" / "database").glob("*tables.py")):
        module = import_module(f"app.database.{file.stem}")
        source = file.read_text(encoding="utf-8")
        for node in ast.parse(source).body:
            if (
                isinstance(node, ast.Assign)
                and isinstance(node.value, ast.Call)
                and ast.unparse(node.value.func) == "Table"
            ):
                found: Table = getattr(module, ast.unparse(node.targets[0]))
                comment = comment_above(source, node.lineno)
                owners = sorted({key.referred_table.name for key in found.foreign_key_constraints})
                key = ", ".join(f"`{column.name}`" for column in found.primary_key)
                rows.append((f"`{found.name}`", cell(comment), key, ", ".join(f"`{owner}`" for owner in owners)))
    return table(*rows)


def personal_data_block() -> str:
    """Return what Easel stores about annotators, and what becomes of it."""
    rows = [("what", "where", "kind", "after an erasure", "retention")]
    for personal in PERSONAL_TABLES:
        for column in personal.columns:
            if column.kind != "technical":
                where = ", ".join(f"`{name}`" for name in column.names)
                period = column.retention or ""
                rows.append(
                    (
                        cell(column.meaning),
                        f"`{personal.name}`: {where}",
                        column.kind,
                        column.fate or "stays",
                        f"`{period}_days`" if period else "",
                    )
                )
    return table(*rows)


def comment_above(source: str, line: int) -> str:
    above = source.splitlines()[: line - 1]
    start = len(above)
    while start and above[start - 1].startswith("# "):
        start -= 1
    return " ".join(text.removeprefix("# ") for text in above[start:])


def fill_blocks(page: str) -> str:
    """Return a page with its blocks filled in."""
    contents = {
        "rooms": rooms_block,
        "layers": layers_block,
        "tables": tables_block,
        "personal-data": personal_data_block,
    }

    def fill(block: re.Match[str]) -> str:
        indentation, begin, kind, path, name, end = block.groups()
        if kind == "code":
            content = code_block(path, name)
        else:
            content = guide_of_module(ROOT / path) + "\n" if kind == "guide" else contents[kind]()
        return textwrap.indent(f"{begin}\n{content}\n{end}", indentation)

    return BLOCK.sub(fill, page)


def generated_pages() -> dict[str, str]:
    """Return the text of every page that is written or filled in here, by its path in docs/."""
    pages = {name: page() for name, page in PAGES.items()}
    for path in sorted((ROOT / "docs").rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        if BLOCK.search(text):
            pages[path.relative_to(ROOT / "docs").as_posix()] = fill_blocks(text)
    return pages


def main() -> None:
    for name, text in generated_pages().items():
        (ROOT / "docs" / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
