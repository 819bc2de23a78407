"""A plugin of coverage: it looks away while SQLAlchemy's greenlets run, in which there is no code of ours.

Coverage takes a switch of greenlets for calls that never return, and loses lines. Its remedy, `concurrency = greenlet`,
looks up the greenlet at each call and return, so that mathematics takes four times as long.
"""

import sys
from typing import Any

import greenlet
from coverage import CoveragePlugin
from coverage.plugin_support import Plugins
from coverage.types import TConfigurable


class OutsideGreenlets(CoveragePlugin):
    def configure(self, _config: TConfigurable) -> None:
        greenlet.settrace(Looking().switched)


class Looking:
    """What traced this thread before it switched from its main greenlet to another one."""

    def __init__(self) -> None:
        self.tracer: Any = None

    def switched(self, _event: str, switch: tuple[greenlet.greenlet, greenlet.greenlet]) -> None:
        origin, target = switch
        if origin.parent is None:
            self.tracer = sys.gettrace()
            sys.settrace(None)
        if target.parent is None:
            sys.settrace(self.tracer)


def coverage_init(registry: Plugins, _options: dict[str, Any]) -> None:
    registry.add_configurer(OutsideGreenlets())
