"""A plugin of pytest that runs mutants instead of the collected tests.

Once everything is collected, each mutant gets a fork of this process, in which the code of one function is replaced and
the tests that run the changed block are run until one fails. So neither PostgreSQL nor imports have to start again.
"""

import contextlib
import ctypes
import gc
import json
import os
import resource
import signal
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType, FunctionType, SimpleNamespace

import pytest

from tests.mutation.mutants import NOTE_BLOCK, Mutant, compile_mutant, compile_noting_blocks

ROOT = Path(__file__).resolve().parents[2]
APP = f"{ROOT}/app/"
SECONDS_BESIDE_TESTS = 15  # of the processor: to prepare, and for a test that begins at the last moment
TIMES_LONGER = 20  # than by the processor alone may a fork take, on a busy machine
SECONDS_TO_CLEAN_UP = 10
MEMORY_BYTES = 4 * 2**30


@dataclass
class TestMap:
    """Tests by block, from a run without a fault.

    Attributes:
        seconds: Of each test that passed, of this process.
        tests: By block of statements, as `app/room/module.py:10` with the line of its first.
        at_import: Functions (`app/room/module.py:Class.method`) that are called while modules are imported; a mutant of
            those would come too late.

    """

    seconds: dict[str, float] = field(default_factory=dict)
    tests: dict[str, list[str]] = field(default_factory=dict)
    at_import: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Result:
    """Outcome of a mutant: `killed` by a test, `timeout`, `survived` so many tests, or `not tried`."""

    mutant: Mutant
    outcome: str
    test: str
    tests: int


class CallRecorder:
    """Records which functions of the application are called."""

    def __init__(self) -> None:
        self.codes: set[CodeType] = set()

    def record(self, frame: FrameType, _event: str, _argument: object) -> None:
        self.codes.add(frame.f_code)

    def start(self) -> None:
        threading.settrace(self.record)
        sys.settrace(self.record)

    def stop(self) -> None:
        sys.settrace(None)
        threading.settrace(None)

    def take_functions(self) -> set[str]:
        """Return the recorded functions, and forget them."""
        codes, self.codes = self.codes, set()
        return {
            f"app/{code.co_filename.removeprefix(APP)}:{code.co_qualname.partition('.<locals>')[0]}"
            for code in codes
            if code.co_filename.startswith(APP)
        }


class MutationPlugin:
    """Runs `work` in place of the tests, with what it needs to run tests in forks."""

    def __init__(self, work: Callable[["Forks"], None], recorder: CallRecorder) -> None:
        self.work, self.recorder = work, recorder

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.recorder.stop()
        at_import = self.recorder.take_functions()
        if not session.testsfailed:
            use_processes_that_inherit_the_fault()
            # As pytest-xdist prepares a worker: it starts PostgreSQL.
            session.config.hook.pytest_configure_node(node=SimpleNamespace(config=session.config, workerinput={}))
            self.work(Forks(session, sorted(at_import)))
        return True


def use_processes_that_inherit_the_fault() -> None:
    """Fork the application's own child processes, too; a fork server would import modules without the fault."""
    import multiprocessing

    from app.background import process

    process.FORK_SERVER = multiprocessing.get_context("fork")  # type: ignore[assignment]


class Forks:
    """Runs collected tests in forks of this process.

    Attributes:
        items: The collected tests by name.
        seconds: Processor time of each test as it was last seen.

    """

    def __init__(self, session: pytest.Session, at_import: list[str]) -> None:
        self.session, self.at_import = session, at_import
        self.items = {item.nodeid: item for item in session.items}
        self.functions = index_functions()
        self.seconds: dict[str, float] = {}

    def make_test_map(self, file: Path, sources: Mapping[str, str]) -> TestMap:
        """Run all tests without a fault, or those that the file does not know yet."""
        run_in_fork(lambda: self._write_test_map(file, sources), None)
        return read_test_map(file)

    def _write_test_map(self, file: Path, sources: Mapping[str, str]) -> None:
        blocks: set[str] = set()
        for path, source in sources.items():
            codes = codes_by_place(compile_noting_blocks(path, source, ROOT / path))
            for function in self.replace_functions(ROOT / path, codes):
                function.__globals__[NOTE_BLOCK] = blocks.add
        known = read_test_map(file).seconds if file.exists() else {}
        items = [item for nodeid, item in self.items.items() if nodeid not in known]
        with file.open("a") as lines:
            lines.write(json.dumps({"at_import": self.at_import}) + "\n")
            for item, following in zip(items, [*items[1:], None], strict=True):
                blocks.clear()
                failures, began = self.session.testsfailed, time.process_time()
                run_test(item, following)
                passed = self.session.testsfailed == failures
                seconds = round(time.process_time() - began, 3)
                test = {"test": item.nodeid, "passed": passed, "seconds": seconds, "blocks": sorted(blocks)}
                lines.write(json.dumps(test) + "\n")
                lines.flush()

    def try_mutant(self, mutant: Mutant, source: str, tests: Sequence[str], seconds: float) -> Result:
        """Return what became of a mutant under as many of these tests as fit into so many seconds of the processor."""
        file = ROOT / mutant.path
        codes = codes_by_place(compile_mutant(mutant, source, file))
        with tempfile.NamedTemporaryFile("r", prefix="easel-mutant-") as log:

            def test_mutant() -> None:
                signal.signal(signal.SIGXCPU, signal.SIG_DFL)
                limit_resources(round(seconds) + SECONDS_BESIDE_TESTS)
                if self.replace_functions(file, codes):
                    self.run_until_failure(tests, seconds, Path(log.name))
                    signal.signal(signal.SIGALRM, signal.SIG_DFL)
                    signal.alarm(SECONDS_TO_CLEAN_UP)
                    self.session._setupstate.teardown_exact(None)

            status = run_in_fork(test_mutant, TIMES_LONGER * seconds)
            finished = [line.split("\t") for line in log.read().splitlines()]
        for test, _outcome, spent in finished:
            self.seconds[test] = float(spent)
        failed = [test for test, outcome, _spent in finished if outcome == "failed"]
        if failed:
            return Result(mutant, "killed", failed[0], len(finished))
        if (finished and finished[-1][1] == "last") or not tests:
            return Result(mutant, "survived", "", len(finished))
        if status == 0:
            return Result(mutant, "not tried", "", 0)
        is_timeout = status is None or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU)
        return Result(mutant, "timeout" if is_timeout else "killed", "the process ended", len(finished))

    def run_until_failure(self, tests: Sequence[str], seconds: float, log: Path) -> None:
        """Run tests until one fails or so many seconds of the processor are over, and note each in a file."""
        began = before = time.process_time()
        for test, following in zip(tests, [*tests[1:], None], strict=True):
            run_test(self.items[test], self.items[following] if following else None)
            now = time.process_time()
            is_last = following is None or now - began > seconds
            outcome = "failed" if self.session.testsfailed else "last" if is_last else "passed"
            with log.open("a") as lines:
                lines.write(f"{test}\t{outcome}\t{now - before:.3f}\n")
            if outcome != "passed":
                return
            before = now

    def replace_functions(self, file: Path, codes: Mapping[tuple[int, str], CodeType]) -> list[FunctionType]:
        """Give functions of this process other code, and return them."""
        replaced = [
            (function, code)
            for place, code in codes.items()
            for function in self.functions.get((str(file), *place), ())
            if function.__code__.co_freevars == code.co_freevars and function.__code__ != code
        ]
        for function, code in replaced:
            function.__code__ = code
        return [function for function, _code in replaced]


def read_test_map(file: Path) -> TestMap:
    found, tests = TestMap(), defaultdict(list)
    for line in map(json.loads, file.read_text().splitlines()):
        found.at_import |= set(line.get("at_import", ()))
        if line.get("passed"):
            found.seconds[line["test"]] = line["seconds"]
            for block in line["blocks"]:
                tests[block].append(line["test"])
    found.tests = dict(tests)
    return found


def index_functions() -> dict[tuple[str, int, str], list[FunctionType]]:
    """Return the application's functions by file, first line and name."""
    gc.unfreeze()  # tests/conftest.py hides what is there after the collection
    functions = defaultdict(list)
    for thing in gc.get_objects():
        if isinstance(thing, FunctionType) and (code := thing.__code__).co_filename.startswith(APP):
            functions[code.co_filename, code.co_firstlineno, code.co_qualname].append(thing)
    gc.freeze()
    return dict(functions)


def codes_by_place(code: CodeType) -> dict[tuple[int, str], CodeType]:
    """Return all code in a module by its first line and name."""
    found = {}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            found[inner.co_firstlineno, inner.co_qualname] = inner
            found |= codes_by_place(inner)
    return found


def limit_resources(seconds: int) -> None:
    """Let this process end if it uses the processor for longer, and fail if it takes too much memory."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, hard))
    _soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, hard))


def run_test(item: pytest.Item, following: pytest.Item | None) -> None:
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)


def run_in_fork(work: Callable[[], None], seconds: float | None) -> int | None:
    """Return the exit status of a fork that does the work, or None if it was not done in time.

    Its process group ends with it.
    """
    if (pid := os.fork()) == 0:
        try:
            os.setpgid(0, 0)
            with contextlib.suppress(AttributeError):  # Linux: end with the parent
                ctypes.CDLL(None).prctl(1, signal.SIGKILL)
            silence = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silence, 1)
            os.dup2(silence, 2)
            work()
        except BaseException:  # noqa: BLE001  (this process must not go on with what its parent does)
            os._exit(2)
        os._exit(0)
    began, status = time.monotonic(), None
    while status is None and (seconds is None or time.monotonic() - began < seconds):
        ended, code = os.waitpid(pid, os.WNOHANG)
        status = code if ended else None
        time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    if status is None:
        os.waitpid(pid, 0)
    return status
