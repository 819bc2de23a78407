"""A design, an update law, a selection rule and a quality rule for tests alone; registered, they go through everything.

`python -m tests.toys ...` is the command `easel` with them, and `tests.toys:create_app` the server.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from app.designs.registry import DESIGNS
from app.inference.online.laws import ONLINE_LAWS
from app.quality.registry import QUALITY_RULES
from app.selection.registry import SELECTION_RULES
from tests.toys.in_order import IN_ORDER
from tests.toys.round_numbers import RoundNumbers
from tests.toys.smiles import SMILES
from tests.toys.smiley import Smiley

TEMPLATES = str(Path(__file__).parent / "templates")

Put = Callable[[Any, str, Any], None]


def register(put: Put = lambda registry, name, part: registry.__setitem__(name, part)) -> None:
    """The one line of each, and where the design's template is."""
    put(DESIGNS, Smiley.name, Smiley)
    put(ONLINE_LAWS, SMILES.name, SMILES)
    put(SELECTION_RULES, IN_ORDER.name, IN_ORDER)
    put(QUALITY_RULES, RoundNumbers.name, RoundNumbers)


def create_app() -> Any:
    """The server, which is told of the toys before it is read: as if they stood in the registries."""
    register()
    from app import main
    from app.http import templating

    templating.english_environment.loader.searchpath.append(TEMPLATES)  # type: ignore[union-attr]  # there is one
    return main.create_app()
