"""A plugin of coverage: it looks away from libraries where that can be known beforehand.

Coverage slows every line and every call, those of libraries too. So it looks away

- while a library is imported, which is most of the time that a server or a command takes to start;
- while SQLAlchemy's greenlets run. Coverage takes a switch of greenlets for calls that never return, and loses lines;
  its remedy, `concurrency = greenlet`, looks up the greenlet at each call, and mathematics takes four times as long;
- in processes that a server or a command starts to share its work: other tests do that work in pytest's own.
"""

import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from types import ModuleType
from typing import Any

import greenlet
from coverage import CoveragePlugin
from coverage.plugin_support import Plugins
from coverage.types import TConfigurable

OURS = "app"
TRACERS: list[Any] = [None]  # of modules of ours that are being imported; the first is the process's own


class OursAlone(CoveragePlugin):
    def configure(self, _config: TConfigurable) -> None:
        greenlet.settrace(Switches().switched)
        watched = looking_away if "--multiprocessing-fork" in sys.orig_argv else importing
        SourceFileLoader.exec_module = watched(SourceFileLoader.exec_module)  # type: ignore[method-assign]


def looking_away(exec_module: Callable[[SourceFileLoader, ModuleType], None]) -> Callable[..., None]:
    """`exec_module` after which nothing is traced: coverage begins after it has asked, and before an import."""

    def exec_unwatched(loader: SourceFileLoader, module: ModuleType) -> None:
        sys.settrace(None)
        exec_module(loader, module)

    return exec_unwatched


def traced_by(tracer: Any) -> None:
    """What traces this process now; it may look away when nothing of ours runs."""
    TRACERS[0] = tracer or TRACERS[0]


def importing(exec_module: Callable[[SourceFileLoader, ModuleType], None]) -> Callable[..., None]:
    """`exec_module` that is traced for a module of ours alone, also where a library imports it.

    The tracer counts calls and returns: who switches it off must switch it on before the same function returns.
    """

    def exec_watched(loader: SourceFileLoader, module: ModuleType) -> None:
        before = sys.gettrace()
        traced_by(before)
        TRACERS.append(before or TRACERS[-1])
        sys.settrace(TRACERS[-1] if module.__name__.partition(".")[0] == OURS else None)
        try:
            exec_module(loader, module)
        finally:
            sys.settrace(before)
            TRACERS.pop()

    return exec_watched


class Switches:
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
    registry.add_configurer(OursAlone())
