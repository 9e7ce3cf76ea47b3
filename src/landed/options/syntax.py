"""Parse Python that may be newer than this interpreter, or broken for a commit.

``ast`` reads the file if it can. If not, tree-sitter (which never fails) finds the statements, every
statement that ``ast`` accepts on its own is kept, headers of classes and functions are rebuilt without what
this interpreter does not know (PEP 695 type parameters, for example), and what is left is reported by line.
"""

from __future__ import annotations

import ast
import functools
import warnings
from typing import TYPE_CHECKING

from landed.options.facts import ProblemFact

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_COMPOUND = {
    "if_statement", "elif_clause", "else_clause", "for_statement", "while_statement", "with_statement", "try_statement",
    "except_clause", "except_group_clause", "finally_clause", "match_statement", "case_clause", "block", "module", "ERROR",
}  # fmt: skip
_TRIVIA = {"comment", "line_continuation", "pass_statement"}
_FAILURES = (SyntaxError, ValueError, RecursionError, MemoryError)


def _try(source: str | bytes) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = compile(source, "<blob>", "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    assert isinstance(module, ast.Module)
    return module


@functools.cache
def _parser() -> Parser:
    import tree_sitter_python
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_python.language()))


def parse(source: bytes) -> tuple[ast.Module, list[ProblemFact]]:
    """Syntax tree of ``source`` and the places that could not be read. Never raises."""
    try:
        return _try(source), []
    except _FAILURES as e:
        first = ProblemFact(getattr(e, "lineno", None) or 1, f"not read whole: {_reason(e)}")
    text = source.decode("utf-8", "replace").replace("\0", " ")
    try:
        body = _Salvage(text.encode()).block(_parser().parse(text.encode()).root_node)
    except _FAILURES as e:  # pragma: no cover - nesting beyond any real source
        return ast.Module([], []), [first, ProblemFact(1, f"nothing kept: {_reason(e)}")]
    return ast.Module(body, []), [first]


def _reason(e: BaseException) -> str:
    if isinstance(e, SyntaxError):
        return e.msg or "invalid syntax"
    return {"RecursionError": "nested too deeply", "MemoryError": "nested too deeply"}.get(type(e).__name__, str(e))


class _Salvage:
    def __init__(self, source: bytes) -> None:
        self.source = source

    def text(self, node: Node) -> str:
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def statements(self, node: Node) -> list[ast.stmt] | None:
        """The node read by ``ast`` at its own indentation, or None."""
        row, column = node.start_point
        try:
            if column and node.type != "module":
                body = _try("if 1:\n" + " " * column + self.text(node)).body[0]
                assert isinstance(body, ast.If)
                found, shift = body.body, row - 1
            else:
                found, shift = _try(self.text(node)).body, row
        except _FAILURES:
            return None
        for statement in found:
            ast.increment_lineno(statement, shift)
        return found

    def block(self, node: Node | None) -> list[ast.stmt]:
        body: list[ast.stmt] = []
        for child in node.named_children if node else ():
            if child.type not in _TRIVIA:
                body += self.statement(child)
        return body

    def statement(self, node: Node) -> list[ast.stmt]:
        if node.type not in ("ERROR", "block"):
            found = self.statements(node)
            if found is not None:
                return found
        line = node.start_point[0] + 1
        if node.type == "decorated_definition":
            decorators: list[ast.expr] = []
            for child in node.named_children:
                if child.type == "decorator" and child.named_children:
                    decorators += self.expression(child.named_children[0])
            inner = node.child_by_field_name("definition")
            made = self.statement(inner) if inner else []
            if made and isinstance(made[0], ast.ClassDef | ast.FunctionDef):
                made[0].decorator_list = decorators
            return made
        name = node.child_by_field_name("name")
        if node.type == "class_definition" and name:
            bases = node.child_by_field_name("superclasses")
            shell = self.header(f"class {self.text(name)}{self.text(bases) if bases else ''}: pass", line)
            if not isinstance(shell, ast.ClassDef):
                shell = ast.ClassDef(self.text(name), [], [], [], [], lineno=line, col_offset=0)
            shell.body = self.block(node.child_by_field_name("body")) or [ast.Pass(lineno=line, col_offset=0)]
            return [shell]
        if node.type == "function_definition" and name:
            parameters = node.child_by_field_name("parameters")
            made_header = self.header(f"def {self.text(name)}{self.text(parameters) if parameters else '()'}: pass", line)
            if not isinstance(made_header, ast.FunctionDef):
                made_header = self.header(f"def {self.text(name)}(): pass", line)
            if not isinstance(made_header, ast.FunctionDef):
                return self.block(node.child_by_field_name("body"))
            made_header.body = self.block(node.child_by_field_name("body")) or [ast.Pass(lineno=line, col_offset=0)]
            return [made_header]
        if node.type in _COMPOUND:
            body: list[ast.stmt] = []
            for child in node.named_children:
                body += self.statement(child) if child.type not in _TRIVIA else []
            return body
        return [ast.Expr(e, lineno=e.lineno, col_offset=0) for e in self.expression(node)]

    def header(self, source: str, line: int) -> ast.stmt | None:
        try:
            made = _try(source).body[0]
        except _FAILURES:
            return None
        return ast.increment_lineno(made, line - 1)

    def expression(self, node: Node) -> list[ast.expr]:
        """The expression, or the largest parts of it that can be read."""
        try:
            made = compile(f"(\n{self.text(node)}\n)", "<blob>", "eval", ast.PyCF_ONLY_AST)
            assert isinstance(made, ast.Expression)
            return [ast.increment_lineno(made.body, node.start_point[0] - 1)]
        except _FAILURES:
            parts: list[ast.expr] = []
            for child in node.named_children:
                if child.type not in _TRIVIA:
                    parts += self.expression(child)
            return parts
