"""The application as SlipCover watches it, kept on disk: to rewrite all bytecode takes each worker nine seconds.

Python keeps bytecode by the source it was made of, and so does this. Until Python 3.12 SlipCover puts probes into it,
which live in one process: a file says where they belong, and each process makes its own.
"""

import ast
import hashlib
import marshal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import pytest
import slipcover
from slipcover import branch
from slipcover import slipcover as rewriter

KEPT = Path(__file__).resolve().parents[1] / ".cache" / "instrumented"
HAS_PROBES = sys.version_info < (3, 12)
MADE_BY = f"{slipcover.__version__} {sys.version}"  # other versions make other code of the same source
PROBE, SIGNAL = "slipcover's probe", "slipcover's signal"  # in files, in place of a probe and of what it calls


Made = tuple[CodeType, list[int], list[tuple[int, int]]]  # code, and its lines and branches


class WatchingFinder:
    """Finds the modules of a package, and lets SlipCover watch them."""

    def __init__(self, watched: slipcover.Slipcover, package: str, kept: Path = KEPT) -> None:
        self.watched = watched
        self.package = package
        self.kept = kept

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name.partition(".")[0] == self.package else None
        if spec and isinstance(spec.loader, SourceFileLoader):
            spec.loader = WatchedLoader(name, spec.loader.path, self)
        return spec

    def make_share(self, folder: Path, place: int, places: int) -> None:
        """Make and keep the code of this worker's share of the modules in `folder`, which is the package's.

        Workers that import the same modules at the same time would each make all of them.
        """
        for path in sorted(folder.rglob("*.py"))[place::places]:
            parts = path.relative_to(folder.parent).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            WatchedLoader(name, str(path), self).read_or_make()


class WatchedLoader(SourceFileLoader):
    """Loads a module whose lines and branches SlipCover counts."""

    def __init__(self, name: str, path: str, finder: WatchingFinder) -> None:
        super().__init__(name, path)
        self.watched = finder.watched
        self.file = finder.kept / f"{name}.bin"

    def get_code(self, fullname: str) -> CodeType:
        code, lines, branches = self.read_or_make()
        if not HAS_PROBES:  # Python itself tells which lines run, and SlipCover which lines there are
            return self.watched.instrument(code)  # type: ignore[no-any-return]
        self.watched.code_lines[self.path].update(lines)
        self.watched.code_branches[self.path].update(branches)
        return with_probes(code, self.watched)

    def read_or_make(self) -> Made:
        source = self.get_data(self.path)
        key = hashlib.sha256(f"{MADE_BY} {self.path} ".encode() + source).digest()
        return self.read(key) or self.make_and_keep(key, source)

    def read(self, key: bytes) -> Made | None:
        """Return what is kept of this source, if anything is."""
        try:
            found, code, lines, branches = marshal.loads(self.file.read_bytes())
        except (OSError, EOFError, ValueError, TypeError):
            return None
        return (code, lines, branches) if found == key else None

    def make_and_keep(self, key: bytes, source: bytes) -> Made:
        code = compile(branch.preinstrument(ast.parse(source)), self.path, "exec", dont_inherit=True)
        made: Made = code, [], []
        if HAS_PROBES:
            maker = slipcover.Slipcover(immediate=True, branch=True)
            with noted_probes():
                code = without_probes(maker.instrument(code))
            made = code, list(maker.code_lines[self.path]), list(maker.code_branches[self.path])
        self.set_data(str(self.file), marshal.dumps((key, *made)))  # at once, and other workers may do the same
        return made


class NotedProbe:
    """Where SlipCover puts a probe, and for which line or branch."""

    def __init__(self, seen: object) -> None:
        self.seen = seen
        self.offset = 0


@contextmanager
def noted_probes() -> Iterator[None]:
    """Let SlipCover note the probes that it makes instead."""

    def set_offset(probe: NotedProbe, _code: bytes, offset: int) -> None:
        probe.offset = offset

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rewriter.probe, "signal", SIGNAL)
        patch.setattr(rewriter.probe, "new", lambda _watched, _file, seen, _threshold: NotedProbe(seen))
        patch.setattr(rewriter.probe, "set_immediate", set_offset)
        yield


def without_probes(code: CodeType) -> CodeType:
    """Return code that can be kept in a file: with notes in place of probes."""

    def storable(constant: Any) -> Any:
        if isinstance(constant, NotedProbe):
            return PROBE, constant.seen, constant.offset
        return without_probes(constant) if isinstance(constant, CodeType) else constant

    return code.replace(co_consts=tuple(map(storable, code.co_consts)))


def with_probes(code: CodeType, watched: slipcover.Slipcover) -> CodeType:
    """Return code that runs, with a probe in place of each note."""
    offsets = []

    def live(constant: Any) -> Any:
        if isinstance(constant, CodeType):
            return with_probes(constant, watched)
        if isinstance(constant, tuple) and constant[:1] == (PROBE,):
            _, seen, offset = constant
            probe = rewriter.probe.new(watched, code.co_filename, seen, watched.d_miss_threshold)
            offsets.append((probe, offset))
            return probe
        return rewriter.probe.signal if constant == SIGNAL else constant

    result = code.replace(co_consts=tuple(map(live, code.co_consts)))
    for probe, offset in offsets:
        rewriter.probe.set_immediate(probe, result.co_code, offset)
    return result
