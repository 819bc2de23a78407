"""A platform is a module in its room: everybody else asks for what is true of it, not for its name."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from app.annotation.platforms.registry import PLATFORMS

ROOT = Path(__file__).resolve().parents[3]
# Where a setting of the operator, a setting of a campaign, and the column that keeps it are named as they are stored.
STORED_NAMES = ("app/settings.py", "app/campaigns/settings.py", "app/database/tables.py", "app/designs/campaign.py")
SPOKEN = re.compile("prolific|mturk|mechanical turk", re.IGNORECASE)
IN_BRACES = re.compile(r"\{[{%].*?[%}]\}", re.DOTALL)
QUOTED = re.compile(rf"""["']({"|".join(PLATFORMS)})["']""")


def files(folder: str, ending: str, *, without: str) -> list[str]:
    paths = (str(path.relative_to(ROOT)) for path in sorted((ROOT / folder).rglob(f"*{ending}")))
    return [path for path in paths if not path.startswith(without)]


def texts(tree: ast.AST) -> Iterator[str]:
    """Every text in the code. Docstrings may speak of platforms; `link` and `api` are keys of other things too."""
    left_out = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    left_out |= {id(key) for node in ast.walk(tree) if isinstance(node, ast.Dict) for key in node.keys}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in left_out:
            yield node.value


def names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        fields = dict(ast.iter_fields(node))
        yield from (fields[kind] for kind in ("id", "attr", "arg", "name") if isinstance(fields.get(kind), str))


def test_code_outside_the_room_names_no_platform() -> None:
    found: list[tuple[str, str]] = []
    for path in files("app", ".py", without="app/annotation/platforms/"):
        code = (ROOT / path).read_text()
        asks = "app.annotation.platforms" in code
        if not (asks or SPOKEN.search(code) or QUOTED.search(code)):
            continue  # to read code as a tree takes a hundred times as long
        tree = ast.parse(code)
        found += [(path, said) for said in texts(tree) if QUOTED.search(said) or (asks and said in PLATFORMS)]
        if path not in STORED_NAMES:
            found += [(path, word) for word in (*texts(tree), *names(tree)) if SPOKEN.search(word)]
    assert found == []


def test_pages_and_scripts_name_no_platform_but_in_its_own_templates() -> None:
    found: list[tuple[str, str]] = []
    paths = files("templates", ".html", without="templates/admin/platforms/") + files("static", ".js", without="-")
    for path in paths:
        page = re.sub(r"\{#.*?#\}", "", (ROOT / path).read_text(), flags=re.DOTALL)
        found += [(path, word) for word in SPOKEN.findall(page)]
        found += [(path, code) for code in IN_BRACES.findall(page) if QUOTED.search(code)]
    assert found == []
