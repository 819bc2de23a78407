"""Small faults of a module's functions: which there are, and the code of the module with one of them.

What cannot change an answer is left alone: docstrings and other texts, type hints, arguments of errors and log lines,
`__repr__`, and `strict=` of `zip`. Decorators, defaults and statements outside functions run when a module is imported;
they are left alone, too, because a mutant replaces functions of a process that has imported everything.
"""

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
}  # fmt: skip
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Div, ast.Mod: ast.Mult,
    ast.Pow: ast.Mult, ast.MatMult: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
LOGGERS = {"logger", "log", "logging", "LOGGER", "LOG"}
BLOCK_FIELDS = ("body", "orelse", "finalbody")
SKIPPED_FIELDS = {"annotation", "returns", "decorator_list", "type_params"}
SKIPPED_FUNCTIONS = {"__repr__", "__str__"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
NOTE_BLOCK = "note_block_of_mutation_test"
"""A global of instrumented modules that is called with the name of each block that runs."""

Changed = ast.stmt | ast.expr | ast.comprehension
Fault = tuple[str, Changed, ast.AST]
"""Operator, the node, and what replaces it."""
Replace = Callable[[ast.AST], None]


@dataclass(frozen=True, slots=True)
class Mutant:
    """A fault of one function.

    Attributes:
        path: Of the module, from the root of the project.
        function: The function of the module or method of a class that has it, without those inside of it.
        block: The line of the first statement of the block that has it.
        position: Among the mutants of the module.
        before: The changed expression or statement as it is.
        after: The same with the fault.
        repeat: From 1, among the mutants of the function with the same before and after.

    """

    path: str
    function: str
    block: int
    line: int
    position: int
    operator: str
    before: str
    after: str
    repeat: int

    @property
    def name(self) -> str:
        """Return a line that identifies the mutant as long as its function does not change."""
        repeat = f" #{self.repeat}" if self.repeat > 1 else ""
        return f"{self.path}:{self.function}: {self.before} -> {self.after}{repeat}"


@dataclass(frozen=True, slots=True)
class Edit:
    """A fault that can be put into a tree."""

    function: str
    block: int
    operator: str
    before: Changed
    after: ast.AST
    replace: Replace

    @property
    def line(self) -> int:
        return (self.before.iter if isinstance(self.before, ast.comprehension) else self.before).lineno


def list_mutants(path: str, source: str) -> list[Mutant]:
    """Return all mutants of a module."""
    seen: Counter[tuple[str, str, str]] = Counter()
    mutants = []
    for position, edit in enumerate(edits_of_functions(ast.parse(source), "")):
        before, after = code_line(edit.before), code_line(edit.after)
        seen[edit.function, before, after] += 1
        repeat = seen[edit.function, before, after]
        mutants.append(
            Mutant(path, edit.function, edit.block, edit.line, position, edit.operator, before, after, repeat)
        )
    return mutants


def compile_mutant(mutant: Mutant, source: str, file: Path) -> CodeType:
    """Return the code of the module with this fault."""
    tree = ast.parse(source)
    edit = list(edits_of_functions(tree, ""))[mutant.position]
    edit.replace(ast.copy_location(edit.after, edit.before))
    return compile(ast.fix_missing_locations(tree), str(file), "exec", dont_inherit=True)


def compile_noting_blocks(path: str, source: str, file: Path) -> CodeType:
    """Return the code of the module in which each block of a function first calls `NOTE_BLOCK` with its name."""
    tree = ast.parse(source)
    functions = [node for node in ast.walk(tree) if isinstance(node, FUNCTIONS)]
    nodes = {id(node): node for function in functions for node in ast.walk(function)}
    for node in nodes.values():
        for field in BLOCK_FIELDS:
            block = getattr(node, field, None)
            if isinstance(block, list) and block and not isinstance(node, ast.ClassDef):
                name = ast.Constant(f"{path}:{block[0].lineno}")
                call = ast.Call(ast.Name(NOTE_BLOCK, ast.Load()), [name], [])
                block.insert(0, ast.copy_location(ast.Expr(call), block[0]))
    return compile(ast.fix_missing_locations(tree), str(file), "exec", dont_inherit=True)


def code_line(node: ast.AST) -> str:
    """Return the code of a node in one line, which may be cut."""
    text = f"if {ast.unparse(node.test)}" if isinstance(node, ast.If) else " ".join(ast.unparse(node).split())
    return text if len(text) <= 100 else f"{text[:97]}..."


def edits_of_functions(node: ast.Module | ast.ClassDef, prefix: str) -> Iterator[Edit]:
    for child in node.body:
        if isinstance(child, ast.ClassDef):
            yield from edits_of_functions(child, f"{prefix}{child.name}.")
        elif isinstance(child, FUNCTIONS) and child.name not in SKIPPED_FUNCTIONS:
            yield from edits_below(child, f"{prefix}{child.name}", child.lineno)


def edits_below(node: ast.AST, function: str, block: int) -> Iterator[Edit]:
    for field, value in ast.iter_fields(node):
        if field in SKIPPED_FIELDS or isinstance(value, ast.arguments):
            continue
        if isinstance(value, ast.AST):
            yield from edits_at(value, function, block, replacing_field(node, field))
        elif isinstance(value, list):
            inner = value[0].lineno if value and field in BLOCK_FIELDS else block
            for place, child in enumerate(value):
                if isinstance(child, ast.AST):
                    yield from edits_at(child, function, inner, replacing_place(value, place))


def replacing_field(node: ast.AST, field: str) -> Replace:
    return lambda new: setattr(node, field, new)


def replacing_place(nodes: list[ast.AST], place: int) -> Replace:
    return lambda new: nodes.__setitem__(place, new)


def edits_at(node: ast.AST, function: str, block: int, replace: Replace) -> Iterator[Edit]:
    if is_text_only(node):
        return
    for operator, before, after in faults_of(node):
        yield Edit(function, block, operator, before, after, replace)
    if not isinstance(node, ast.Raise):
        yield from edits_below(node, function, block)


def is_text_only(node: ast.AST) -> bool:
    """Return whether a node holds texts, such as a docstring or a log line, or what no caller can see."""
    match node:
        case ast.JoinedStr() | ast.Assert() | ast.Expr(value=ast.Constant()) | ast.keyword(arg="strict"):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))):
            return name in LOGGERS
        case _:
            return False


def faults_of(node: ast.AST) -> Iterator[Fault]:
    if isinstance(node, ast.stmt):
        yield from faults_of_statement(node)
    elif isinstance(node, ast.expr):
        yield from faults_of_expression(node)
    elif isinstance(node, ast.comprehension) and node.ifs:
        yield "removed filter", node, ast.comprehension(node.target, node.iter, [], node.is_async)


def faults_of_statement(node: ast.stmt) -> Iterator[Fault]:
    match node:
        case ast.Expr() | ast.Raise() | ast.Continue() | ast.Break() | ast.Delete():
            yield "removed statement", node, ast.Pass()
        case ast.AugAssign(target=target, op=op, value=value):
            yield "removed statement", node, ast.Pass()
            if other := ARITHMETIC.get(type(op)):
                yield "arithmetic", node, ast.AugAssign(target, other(), value)
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield "removed statement", node, ast.Pass()
        case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
            yield "return", node, ast.Return(ast.Constant(None))
        case ast.If(test=test, body=body, orelse=orelse):
            yield "swapped branches", node, ast.If(ast.UnaryOp(ast.Not(), test), body, orelse)


def faults_of_expression(node: ast.expr) -> Iterator[Fault]:
    match node:
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            for place, op in enumerate(ops):
                for other in COMPARISONS[type(op)]:
                    yield "comparison", node, ast.Compare(left, [*ops[:place], other(), *ops[place + 1 :]], comparators)
        case ast.BinOp(left=left, op=op, right=right) if other_operator := ARITHMETIC.get(type(op)):
            yield "arithmetic", node, ast.BinOp(left, other_operator(), right)
        case ast.BoolOp(op=op, values=values):
            yield "boolean", node, ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.UnaryOp(op=ast.Not() | ast.Invert() | ast.USub(), operand=operand):
            yield "removed operator", node, operand
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield "swapped branches", node, ast.IfExp(test, orelse, body)
        case ast.Constant() | ast.ListComp() | ast.DictComp():
            yield from faults_of_value(node)


def faults_of_value(node: ast.Constant | ast.ListComp | ast.DictComp) -> Iterator[Fault]:
    match node:
        case ast.Constant(value=bool() as value):
            yield "constant", node, ast.Constant(not value)
        case ast.Constant(value=int() | float() as number):
            yield "constant", node, ast.Constant(number + 1)
            yield "constant", node, ast.Constant(number - 1)
        case ast.ListComp():
            yield "empty", node, ast.List([], ast.Load())
        case ast.DictComp():
            yield "empty", node, ast.Dict([], [])
