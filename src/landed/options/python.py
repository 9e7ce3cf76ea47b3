"""Facts of a Python file: every kind of declaration that frameworks use, and the names it reads."""

from __future__ import annotations

import ast
import copy
import hashlib
import itertools
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from landed.options import facts as f
from landed.options.syntax import parse

#: A class whose body declares options; reads inside it (validation of itself) are no implementation.
_CONFIG_BASES = re.compile(r"(^|\.)(TypedDict|BaseModel|BaseConfig|Enum|StrEnum|IntEnum|NamedTuple|BaseSettings)$")
_CONFIG_NAME = re.compile(r"(Config|Configs|Args|Arguments|Enum)$")
_IDENT = re.compile(r"[A-Za-z_][\w.+\-/]{0,60}\Z")
_ENUM_BASES = re.compile(r"(^|\.)(\w*Enum|Flag)$")


def dotted(node: ast.AST) -> str:
    """``a.b.c`` of a name or attribute chain; calls and subscripts in it appear as ``()`` and ``[]``."""
    parts: list[str] = []
    while True:
        if isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        elif isinstance(node, ast.Name):
            parts.append(node.id)
            return ".".join(reversed(parts))
        elif isinstance(node, ast.Subscript):
            key = string(node.slice)
            parts.append(key if key is not None else "[]")
            node = node.value
        elif isinstance(node, ast.Call):
            # x.get("k") and getattr(x, "k") are reads of k
            key = None
            if isinstance(node.func, ast.Attribute) and node.func.attr == "get" and node.args:
                key = string(node.args[0])
                base: ast.AST = node.func.value
            elif isinstance(node.func, ast.Name) and node.func.id == "getattr" and len(node.args) > 1:
                key = string(node.args[1])
                base = node.args[0]
            if key is not None:
                parts.append(key)
                node = base
            else:
                parts.append("()")
                node = node.func
        else:
            parts.append("?")
            return ".".join(reversed(parts))


def string(node: ast.AST | None) -> str | None:
    """The string that a constant expression is, or None."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def strings(node: ast.AST | None) -> list[str]:
    """Strings in a constant, list, tuple, set, ``frozenset([...])`` or sum of those; enum members by name."""
    if node is None:
        return []
    one = string(node)
    if one is not None:
        return [one]
    if isinstance(node, _GROUPS[:3]):
        return [s for e in node.elts for s in strings(e)]
    if isinstance(node, ast.Call) and dotted(node.func) in ("frozenset", "set", "list", "tuple", "sorted") and node.args:
        return strings(node.args[0])
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.BitOr):
        return strings(node.left) + strings(node.right)
    if isinstance(node, ast.Attribute):
        name = dotted(node)
        if name.endswith(".value"):
            name = name[: -len(".value")]
        if name.rpartition(".")[2].isupper():
            return [name]
    return []


def canonical(node: ast.AST | None) -> str:
    """Text of a default: ``null``, ``true``, numbers as written, strings bare, the rest as source."""
    if node is None:
        return ""
    if isinstance(node, ast.Constant):
        if node.value is None:
            return "null"
        if isinstance(node.value, bool):
            return "true" if node.value else "false"
        if isinstance(node.value, str):
            return node.value
        if node.value is Ellipsis:
            return ""
    try:
        return ast.unparse(node)
    except (ValueError, RecursionError, AttributeError):
        return "?"


def _annotation(node: ast.AST | None) -> str:
    if isinstance(node, ast.Name):
        return node.id
    text = string(node)
    return text if text is not None else canonical(node)


def _literal_choices(node: ast.AST | None) -> list[str]:
    """Values of every ``Literal[...]`` in an annotation."""
    found: list[str] = []
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and "Literal" in node.value:
        try:
            node = ast.parse(node.value, mode="eval").body
        except (SyntaxError, ValueError):
            return []
    if node is None or isinstance(node, ast.Constant | ast.Name | ast.Attribute):
        return []
    for sub in ast.walk(node):
        if isinstance(sub, ast.Subscript) and dotted(sub.value).rpartition(".")[2] == "Literal":
            inner = sub.slice.elts if isinstance(sub.slice, ast.Tuple) else [sub.slice]
            found += [canonical(e) for e in inner if isinstance(e, ast.Constant)]
    return found


_WRAPPERS = {"Optional", "Annotated", "Union", "NotRequired", "Required", "Final", "None", "Field", "ReadOnly"}


def _nested_class(node: ast.AST | None) -> str:
    """The one class that an annotation names, looking through Optional, ``X | None`` and NotRequired."""
    names = []
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            node = ast.parse(node.value, mode="eval").body
        except (SyntaxError, ValueError):
            return ""
    stack = [node] if node else []
    while stack:
        sub = stack.pop()
        if isinstance(sub, ast.Subscript):
            head = dotted(sub.value).rpartition(".")[2]
            if head in ("Optional", "Union", "Annotated", "NotRequired", "Required", "Final", "ReadOnly"):
                if head == "Annotated" and isinstance(sub.slice, ast.Tuple):
                    stack.append(sub.slice.elts[0])
                else:
                    stack += sub.slice.elts if isinstance(sub.slice, ast.Tuple) else [sub.slice]
        elif isinstance(sub, ast.BinOp):
            stack += [sub.left, sub.right]
        elif isinstance(sub, ast.Name | ast.Attribute):
            name = dotted(sub).rpartition(".")[2]
            if name[:1].isupper() and name not in _WRAPPERS:
                names.append(name)
    return names[0] if len(names) == 1 else ""


def _field_default(value: ast.AST | None) -> tuple[str, list[str], str]:
    """Default, choices and nested class of the right-hand side of a field."""
    if not isinstance(value, ast.Call):
        return canonical(value), [], ""
    call = dotted(value.func).rpartition(".")[2]
    if call not in ("field", "Field", "ib", "attrib"):
        # X() as default: fields of X lie below
        return (canonical(value), [], call if call[:1].isupper() else "")
    choices: list[str] = []
    default, nested = "", ""
    if call == "Field" and value.args:
        default = canonical(value.args[0])
    for kw in value.keywords:
        if kw.arg == "default":
            default, _, nested = _field_default(kw.value)
        elif kw.arg in ("default_factory", "factory"):
            if isinstance(kw.value, ast.Lambda):
                default, _, nested = _field_default(kw.value.body)
            else:
                name = dotted(kw.value).rpartition(".")[2]
                default = {"list": "[]", "dict": "{}", "tuple": "()", "set": "set()"}.get(name, f"{name}()")
                nested = name if name[:1].isupper() else ""
        elif kw.arg == "metadata" and isinstance(kw.value, ast.Dict):
            for k, v in zip(kw.value.keys, kw.value.values, strict=True):
                if string(k) == "choices":
                    choices = strings(v)
        elif kw.arg == "choices":
            choices = strings(kw.value)
    return default, choices, nested


def _parameters(args: ast.arguments) -> list[f.FieldFact]:
    positional = args.posonlyargs + args.args
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(args.defaults)) + list(args.defaults)
    pairs = list(zip(positional, defaults, strict=True)) + list(zip(args.kwonlyargs, args.kw_defaults, strict=True))
    return [
        f.FieldFact(a.arg, _annotation(a.annotation), canonical(d), a.lineno, _literal_choices(a.annotation))
        for a, d in pairs
        if a.arg not in ("self", "cls")
    ]


def _is_quiet(fact: f.ClassFact) -> bool:
    """Whether a class is a declaration: what its body reads is no use of an option."""
    return (
        any(_ENUM_BASES.search(b) for b in fact.bases)
        or any("dataclass" in d or d.endswith("define") for d in fact.decorators)
        or any(_CONFIG_BASES.search(b) for b in fact.bases)
        or bool(_CONFIG_NAME.search(fact.name))
    )


_NAMES = (ast.Name, ast.Attribute)
_TABLES = (ast.Dict, ast.List, ast.Tuple, ast.Set, ast.Call, ast.BinOp, ast.Subscript)
_EQUAL = (ast.Eq, ast.NotEq, ast.Is)
_MEMBER = (ast.In, ast.NotIn)
_GROUPS = (ast.List, ast.Tuple, ast.Set, ast.Call)


class _Substitute(ast.NodeTransformer):
    """Put constants for names and simplify what then is constant: f-strings, comparisons, conditional expressions."""

    def __init__(self, values: dict[str, ast.expr]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.copy_location(copy.copy(self.values[node.id]), node) if node.id in self.values else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        self.generic_visit(node)
        parts = [p.value if isinstance(p, ast.FormattedValue) and p.format_spec is None else p for p in node.values]
        if all(isinstance(p, ast.Constant) for p in parts):
            return ast.copy_location(ast.Constant("".join(str(p.value) for p in parts)), node)  # type: ignore[attr-defined]
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        test = node.test
        if (
            isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq)
            and isinstance(test.left, ast.Constant) and isinstance(test.comparators[0], ast.Constant)
        ):  # fmt: skip
            return node.body if test.left.value == test.comparators[0].value else node.orelse
        return node


class _Reader:
    def __init__(self) -> None:
        self.facts = _nothing()
        self.uses: set[str] = set()
        self.scope: list[str] = []
        #: enclosing loops over constants: variable and values
        self.loops: list[tuple[str, list[ast.expr]]] = []
        #: inside a declaration: names read here are no use of the option
        self.quiet = 0

    # statements -------------------------------------------------------------------------------
    def body(self, statements: list[ast.stmt]) -> None:
        for s in statements:
            if s.__class__ is ast.Expr and isinstance(s.value, ast.Constant):
                continue  # a bare string is documentation
            self.visit(s)

    def visit(self, node: ast.AST) -> None:
        method = _DISPATCH.get(node.__class__)
        if method is not None:
            method(self, node)
        else:
            self.children(node)

    def children(self, node: ast.AST) -> None:
        # the instance's dictionary holds children and places in the grammar's order, and is far faster than _fields
        for value in node.__dict__.values():
            kind = value.__class__
            if kind in _SKIPPED:
                continue
            if kind is list:
                for v in value:
                    kind = v.__class__
                    if kind in _SKIPPED or (kind is ast.Expr and isinstance(v.value, ast.Constant)):
                        continue
                    method = _DISPATCH.get(kind)
                    if method is not None:
                        method(self, v)
                    elif isinstance(v, ast.AST):
                        self.children(v)
            else:
                method = _DISPATCH.get(kind)
                if method is not None:
                    method(self, value)
                elif isinstance(value, ast.AST):
                    self.children(value)

    def class_def(self, node: ast.ClassDef) -> None:
        bases = [dotted(b) for b in node.bases if not isinstance(b, ast.Call)]
        decorators = [dotted(d.func) if isinstance(d, ast.Call) else dotted(d) for d in node.decorator_list]
        fact = f.ClassFact(node.name, bases, decorators, node.lineno, [], [], [], True)
        self.facts.classes.append(fact)
        for d in node.decorator_list:
            self.decorator(d, node.name)
        for b in node.bases:
            self.visit(b)
        self.class_body(fact, node.body)

    def class_body(self, fact: f.ClassFact, body: list[ast.stmt]) -> None:
        """Statements of a class, all of them or a piece; what they declare is added to ``fact``."""
        enum = any(_ENUM_BASES.search(b) for b in fact.bases)
        fact.trivial = fact.trivial and _trivial(body)
        for s in body:
            if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name):
                default, choices, nested = _field_default(s.value)
                fact.fields.append(
                    f.FieldFact(
                        s.target.id, _annotation(s.annotation), default, s.lineno,
                        choices or _literal_choices(s.annotation), nested or _nested_class(s.annotation),
                    )
                )  # fmt: skip
            elif isinstance(s, ast.Assign) and len(s.targets) == 1 and isinstance(s.targets[0], ast.Name):
                default, choices, nested = _field_default(s.value)
                target = fact.members if enum else fact.fields
                target.append(f.FieldFact(s.targets[0].id, "", default, s.lineno, choices, nested))
            elif isinstance(s, ast.FunctionDef) and s.name == "__init__":
                fact.init = _parameters(s.args)
        quiet = _is_quiet(fact)
        self.quiet += quiet
        self.scope.append(fact.name)
        self.body(body)
        self.scope.pop()
        self.quiet -= quiet

    def function_def(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.facts.functions.append(f.FunctionFact(node.name, node.lineno, ".".join(self.scope)))
        for d in node.decorator_list:
            self.decorator(d, node.name)
        for default in [*node.args.defaults, *node.args.kw_defaults]:
            if default is not None:
                self.visit(default)
        self.scope.append(node.name)
        self.body(node.body)
        self.scope.pop()

    def decorator(self, node: ast.expr, target: str) -> None:
        if isinstance(node, ast.Call):
            names = _registered(node)
            if names:
                self.facts.registrations.append(f.RegistrationFact(dotted(node.func), names, node.lineno, target))
            # names given to a registry are declarations, not uses; nested calls still are read
            self.quiet += 1
            self.children(node)
            self.quiet -= 1
        else:
            self.visit(node)

    def assign(self, node: ast.Assign | ast.AnnAssign) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        value = node.value
        for t in targets:
            if isinstance(t, _NAMES):
                if isinstance(value, _TABLES):
                    self.table(dotted(t), value)
            elif isinstance(t, ast.Subscript) and string(t.slice) is not None:
                # REGISTRY["name"] = f
                self.facts.tables.append(
                    f.TableFact(dotted(t.value), [string(t.slice) or ""], [node.lineno], ".".join(self.scope))
                )
            if not isinstance(t, ast.Name):
                self.children(t)
        if value is not None:
            self.visit(value)

    def table(self, name: str, value: ast.AST | None) -> None:
        scope = ".".join(self.scope)
        if isinstance(value, ast.Dict):
            rows = [
                (s, k.lineno, canonical(v) if isinstance(v, ast.Constant | ast.UnaryOp) else "")
                for k, v in zip(value.keys, value.values, strict=True) if k is not None for s in strings(k)
            ]  # fmt: skip
            if rows:
                self.facts.tables.append(
                    f.TableFact(name, [r[0] for r in rows], [r[1] for r in rows], scope, [r[2] for r in rows])
                )
        elif value is not None:
            found = strings(value)
            if not found and isinstance(value, ast.Subscript):
                found = _literal_choices(value)
            if found:
                self.facts.tables.append(f.TableFact(name, found, [value.lineno] * len(found), scope))  # type: ignore[attr-defined]

    # expressions ------------------------------------------------------------------------------
    def call(self, node: ast.Call) -> None:
        name = dotted(node.func)
        last = name.rpartition(".")[2]
        if last.endswith(("add_argument", "reset_arg")) or last == "add_arg":
            self.argument(node, name)
            self.quiet += 1
            self.children(node)
            self.quiet -= 1
            return
        if last == "set_defaults":
            for kw in node.keywords:
                if kw.arg:
                    self.facts.arguments.append(
                        f.ArgumentFact(name, [], kw.arg, canonical(kw.value), "", [], node.lineno, ".".join(self.scope))
                    )
        if last in ("get", "pop", "setdefault") and isinstance(node.func, ast.Attribute) and node.args:
            key = string(node.args[0])
            if key is not None:
                default = canonical(node.args[1]) if len(node.args) > 1 else ""
                self.read("get", node.func.value, key, default, node.lineno)
        elif last in ("getattr", "hasattr") and len(node.args) > 1:
            key = string(node.args[1])
            if key is not None:
                default = canonical(node.args[2]) if len(node.args) > 2 else ""
                self.read(last, node.args[0], key, default, node.lineno)
        elif "regist" in last.lower() or "regist" in name.lower():
            names = _registered(node)
            if names:
                target = dotted(node.args[1]) if len(node.args) > 1 else ""
                self.facts.registrations.append(f.RegistrationFact(name, names, node.lineno, target))
        self.children(node)

    def loop(self, node: ast.For) -> None:
        """``for prefix in ("actor", "critic")``: declarations below stand for one each."""
        values = [canonical(e) for e in node.iter.elts] if isinstance(node.iter, ast.List | ast.Tuple) else []
        simple = isinstance(node.target, ast.Name) and values and all(isinstance(e, ast.Constant) for e in node.iter.elts)  # type: ignore[attr-defined]
        if simple:
            self.loops.append((node.target.id, node.iter.elts))  # type: ignore[attr-defined]
        self.children(node)
        if simple:
            self.loops.pop()

    def argument(self, node: ast.Call, name: str) -> None:
        if self.loops and any(isinstance(a, ast.JoinedStr) for a in node.args):
            names = [n for n, _ in self.loops]
            for values in itertools.product(*(v for _, v in self.loops)):
                made = _Substitute(dict(zip(names, values, strict=True))).visit(copy.deepcopy(node))
                if not any(isinstance(a, ast.JoinedStr) for a in made.args):
                    self.one_argument(made, name)
            return
        self.one_argument(node, name)

    def one_argument(self, node: ast.Call, name: str) -> None:
        flags = [s for a in node.args for s in [string(a)] if s and (s.startswith("-") or len(node.args) == 1)]
        if not flags:
            return
        fact = f.ArgumentFact(name, flags, "", "", "", [], node.lineno, ".".join(self.scope))
        for kw in node.keywords:
            if kw.arg == "dest":
                fact.dest = string(kw.value) or ""
            elif kw.arg == "default":
                fact.default = canonical(kw.value)
            elif kw.arg == "type":
                fact.type = canonical(kw.value)
            elif kw.arg == "choices":
                fact.choices = strings(kw.value) or [f"@{dotted(kw.value)}"]
            elif kw.arg == "action":
                action = string(kw.value) or canonical(kw.value)
                if action == "store_true":
                    fact.type, fact.default = "bool", fact.default or "false"
                elif action == "store_false":
                    fact.type, fact.default = "bool", fact.default or "true"
                elif "BooleanOptionalAction" in action:
                    fact.type = "bool"
        if not fact.dest:
            long = next((x for x in flags if x.startswith("--")), flags[0])
            fact.dest = long.lstrip("-").replace("-", "_")
        self.facts.arguments.append(fact)

    def compare(self, node: ast.Compare) -> None:
        left = node.left
        for op, right in zip(node.ops, node.comparators, strict=True):
            if isinstance(op, _EQUAL):
                if strings(right):
                    self.compared(left, strings(right), node.lineno)
                elif strings(left):
                    self.compared(right, strings(left), node.lineno)
            elif isinstance(op, _MEMBER):
                if isinstance(right, _GROUPS) and strings(right):
                    self.compared(left, strings(right), node.lineno)
                elif string(left) is not None:
                    # "x" in mode: a value whose format carries the option
                    self.compared(right, strings(left), node.lineno)
            left = right
        self.children(node)

    def compared(self, subject: ast.AST, values: list[str], line: int) -> None:
        self.facts.compares.append(f.CompareFact(dotted(subject), values, line, ".".join(self.scope)))

    def match(self, node: ast.Match) -> None:
        for case in node.cases:
            values = [s for p in ast.walk(case.pattern) if isinstance(p, ast.MatchValue) for s in strings(p.value)]
            if values:
                self.compared(node.subject, values, case.pattern.lineno)
        self.children(node)

    def read(self, how: str, receiver: ast.AST, key: str, default: str, line: int) -> None:
        self.facts.reads.append(f.ReadFact(how, dotted(receiver), key, default, line, ".".join(self.scope)))

    def subscript(self, node: ast.Subscript) -> None:
        key = string(node.slice)
        if key is not None and isinstance(node.ctx, ast.Load) and _IDENT.match(key):
            self.read("[]", node.value, key, "", node.lineno)
        self.children(node)

    def attribute(self, node: ast.Attribute) -> None:
        if not self.quiet and isinstance(node.ctx, ast.Load):
            self.uses.add(node.attr)
        self.visit(node.value)

    def constant(self, node: ast.Constant) -> None:
        if not self.quiet and isinstance(node.value, str) and _IDENT.match(node.value):
            self.uses.add(node.value)


_DISPATCH: dict[type, Callable[[Any, Any], None]] = {
    ast.ClassDef: _Reader.class_def,
    ast.FunctionDef: _Reader.function_def,
    ast.AsyncFunctionDef: _Reader.function_def,
    ast.Assign: _Reader.assign,
    ast.AnnAssign: _Reader.assign,
    ast.Call: _Reader.call,
    ast.Compare: _Reader.compare,
    ast.For: _Reader.loop,
    ast.Match: _Reader.match,
    ast.Subscript: _Reader.subscript,
    ast.Attribute: _Reader.attribute,
    ast.Constant: _Reader.constant,
}
#: Values of a node that lead to nothing: places, contexts, operators and bare names.
_SKIPPED = frozenset(
    {int, str, type(None), ast.Name, ast.Load, ast.Store, ast.Del, ast.Pass, ast.Break, ast.Continue, ast.Import, ast.ImportFrom}
    | set(ast.operator.__subclasses__()) | set(ast.cmpop.__subclasses__()) | set(ast.boolop.__subclasses__())
    | set(ast.unaryop.__subclasses__())
)  # fmt: skip


def _registered(node: ast.Call) -> list[str]:
    """String and enum-member names in a registering call, also inside nested calls' ``name``/``names``."""
    names: list[str] = []
    stack: list[ast.AST] = [*node.args[:1], *(k.value for k in node.keywords if k.arg in ("name", "names", "key"))]
    if node.args and isinstance(node.args[0], ast.Call):
        inner = node.args[0]
        stack = [*inner.args[:1], *(k.value for k in inner.keywords if k.arg in ("name", "names", "key"))]
    for s in stack:
        names += strings(s)
    for extra in node.args[1:]:
        if string(extra) is not None:
            names.append(string(extra) or "")
    return names


#: a function with more statements is no shim
_SHIM_STATEMENTS = 8


def _trivial(body: list[ast.stmt]) -> bool:
    """A shim: nothing but documentation, pass, or an ``__init__`` that warns and calls its parent."""

    def forwards(s: ast.stmt) -> bool:
        if isinstance(s, ast.Pass) or (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)):
            return True
        if isinstance(s, ast.FunctionDef) and s.name in ("__init__", "__post_init__"):
            return (
                len(s.body) <= _SHIM_STATEMENTS
                and all(isinstance(x, ast.Expr | ast.Pass | ast.Import | ast.ImportFrom) for x in s.body)
                and any("super" in ast.unparse(x) or "warn" in ast.unparse(x) for x in s.body)
            )
        return False

    return all(forwards(s) for s in body)


def read_python(source: bytes, memo: Memo | None = None) -> f.PythonFacts:
    """Facts of one Python source. Never raises; what cannot be read is in ``problems``.

    With a ``memo``, statements and methods that were read before, in another version of the file, are not parsed
    again; a file that does not fall into pieces is read whole. The facts are the same either way.
    """
    if memo is not None:
        made = _Pieces(memo).file(source)
        if made is not None:
            return made
    module, problems = parse(source)
    reader = _Reader()
    try:
        reader.body(module.body)
    except RecursionError:
        problems.append(f.ProblemFact(1, "nested too deeply: the rest of the file is not read"))
    reader.facts.uses = sorted(reader.uses)
    reader.facts.problems = problems
    return reader.facts


class _Piece(msgspec.Struct, gc=False):
    """Facts of a piece with lines counted from its first; ``part`` is what a piece of a class adds to it."""

    facts: f.PythonFacts
    part: f.ClassFact | None


class _Where(msgspec.Struct, frozen=True):
    """What a piece stands in: a class, a function (of it), a block of the module (``indented``), or nothing."""

    owner: f.ClassFact | None = None
    function: str = ""
    indented: bool = False

    def key(self) -> str:
        c = self.owner
        outer = f"{c.name}|{' '.join(c.bases)}|{' '.join(c.decorators)}" if c else ""
        return f"{outer}|{self.function}|{self.indented}"


#: (digest of a piece, what it stands in) -> its facts
Memo = dict[tuple[bytes, str], _Piece]

_TOP = re.compile(rb"\n(?=[^\s#)\]}])")
_BODY = {4: re.compile(rb"\n(?=    [^\s#)\]}])"), 8: re.compile(rb"\n(?=        [^\s#)\]}])")}
_CONTINUES = re.compile(rb"\s*(?:(?:else|elif|except|finally|case)\b|[\"'])")
_DEFINES = re.compile(rb"\s*(?:async def |def |class )")
_FUNCTION = re.compile(rb"(?:[ ]*@[^\n]*\n)*[ ]*(?:async )?def (\w+)")
_HEADER_END = re.compile(rb"\)[ ]*(?:->[^\n]*)?:[ ]*(?:#[^\n]*)?\n")
#: nothing but comments, or a class statement followed by nothing but comments
_BARE = re.compile(rb"(?:\A|:[ ]*(?:#[^\n]*)?\n)(?:[ \t]*(?:#[^\n]*)?\n)*\Z")
_COOKIE = re.compile(rb"\A(?:[^\n]*\n)?[ \t]*#[^\n]*coding[:=]")
_IF = re.compile(rb"if [^\n]*:[ ]*(?:#[^\n]*)?\n")
_ELSE = re.compile(rb"^(?:else|elif)\b", re.M)
#: classes, functions and ``if`` blocks longer than this are cut at their statements
_LONG_CLASS, _LONG_FUNCTION = 1500, 2500


def _split(source: bytes, at: re.Pattern[bytes]) -> Iterator[bytes]:
    """``source`` cut behind every match (a line break: a pattern that begins with a literal is searched fast)."""
    start = 0
    for found in at.finditer(source):
        yield source[start : found.end()]
        start = found.end()
    if start < len(source):
        yield source[start:]


def _cut(source: bytes, at: re.Pattern[bytes]) -> list[bytes]:
    """Pieces that begin behind matches of ``at``; decorators stay with what they decorate, strings stay whole."""
    out: list[bytes] = []
    held = b""
    defines = False
    for piece in _split(source, at):
        if out and not held and _CONTINUES.match(piece):
            held = out.pop()
        held = held + piece if held else piece
        defines = defines or _DEFINES.match(piece) is not None
        if held.count(b'"""') % 2 or held.count(b"'''") % 2:
            continue
        if not defines and held.lstrip().startswith(b"@"):
            continue
        out.append(held)
        held, defines = b"", False
    if held:
        out.append(held)
    return out


def _with_statement(parts: list[bytes]) -> list[bytes]:
    """The same pieces, the first one large enough to hold a statement (comments alone are no body)."""
    while len(parts) > 1 and _BARE.search(parts[0]):
        parts = [parts[0] + parts[1], *parts[2:]]
    return parts


def _function_parts(piece: bytes, indent: int) -> tuple[list[bytes], str]:
    """A long function as its header with the first statement, and its other statements; and its name."""
    if len(piece) > _LONG_FUNCTION:
        name, end = _FUNCTION.match(piece), _HEADER_END.search(piece)
        if name and end:
            body = _with_statement(_cut(piece[end.end() :], _BODY[indent]))
            if len(body) > _SHIM_STATEMENTS:
                return [piece[: end.end()] + body[0], *body[1:]], name[1].decode()
    return [piece], ""


class _Pieces:
    """Facts of a file put together from pieces; every piece, small or large, is looked up before it is cut or parsed."""

    def __init__(self, memo: Memo) -> None:
        self.memo = memo

    def file(self, source: bytes) -> f.PythonFacts | None:
        """Facts of the whole, or None where a piece cannot be read by itself."""
        if b"\0" in source or b"\r" in source or _COOKIE.match(source):
            return None
        out, uses, line = _nothing(), set[str](), 0
        for piece in _cut(source, _TOP):
            found = self.known(piece, "", self.top)
            if found is None:
                return None
            _add(out, found.facts, line)
            uses.update(found.facts.uses)
            line += piece.count(b"\n")
        out.uses = sorted(uses)
        return out

    def known(self, piece: bytes, where: str, make: Callable[[bytes], _Piece | None]) -> _Piece | None:
        key = (hashlib.blake2b(piece, digest_size=16).digest(), where)
        found = self.memo.get(key)
        if found is None:
            found = make(piece)
            if found is not None:
                self.memo[key] = found
        return found

    def top(self, piece: bytes) -> _Piece | None:
        is_class = piece.startswith(b"class ") or (piece.startswith(b"@") and b"\nclass " in piece)
        if not is_class:
            block = _IF.match(piece)
            if block and len(piece) > _LONG_FUNCTION and not _ELSE.search(piece):
                parts = _with_statement(_cut(piece[block.end() :], _BODY[4]))
                return self.assemble([piece[: block.end()] + parts[0], *parts[1:]], _Where(), _Where(indented=True))
            return self.function(piece, 4, None)
        if len(piece) <= _LONG_CLASS:
            return _read_piece(piece, _Where())
        parts = _with_statement(_cut(piece, _BODY[4]))
        head = _read_piece(parts[0], _Where(), alone=True)
        if head is None or not head.facts.classes:
            return None
        out = _nothing()
        _add(out, head.facts, 0)
        uses = set(head.facts.uses)
        owner = out.classes[0]
        # whether names count as read depends on the whole class statement, which is in the head
        where = _Where(f.ClassFact(owner.name, owner.bases, owner.decorators, 0, [], [], [], True))
        line = parts[0].count(b"\n")
        for part in parts[1:]:
            found = self.known(part, where.key(), lambda p: self.function(p, 8, where.owner))
            if found is None or found.part is None:
                return None
            _add(out, found.facts, line)
            uses.update(found.facts.uses)
            owner.fields += [_down(x, line) for x in found.part.fields]
            owner.members += [_down(x, line) for x in found.part.members]
            owner.init = [_down(x, line) for x in found.part.init] if found.part.name else owner.init
            owner.trivial = owner.trivial and found.part.trivial
            line += part.count(b"\n")
        out.uses = sorted(uses)
        return _Piece(out, None)

    def function(self, piece: bytes, indent: int, owner: f.ClassFact | None) -> _Piece | None:
        """A function, a method or any other statement; a long one by its statements."""
        parts, name = _function_parts(piece, indent)
        if len(parts) == 1:
            return _read_piece(piece, _Where(owner))
        return self.assemble(parts, _Where(owner), _Where(owner, name, True))

    def assemble(self, parts: list[bytes], first: _Where, rest: _Where) -> _Piece | None:
        """A block from its head, read in ``first``, and its other statements, read in ``rest``."""
        head = _read_piece(parts[0], first, alone=True)
        if head is None:
            return None
        out = _nothing()
        _add(out, head.facts, 0)
        uses = set(head.facts.uses)
        if head.part is not None:
            head.part.trivial = False
        line = parts[0].count(b"\n")
        for part in parts[1:]:
            found = self.known(part, rest.key(), lambda p: _read_piece(p, rest))
            if found is None:
                return None
            _add(out, found.facts, line)
            uses.update(found.facts.uses)
            line += part.count(b"\n")
        out.uses = sorted(uses)
        return _Piece(out, head.part)


def _nothing() -> f.PythonFacts:
    return f.PythonFacts([], [], [], [], [], [], [], [], [])


def _read_piece(piece: bytes, where: _Where, alone: bool = False) -> _Piece | None:
    """Facts of one piece; None where it cannot be read by itself, or is not one statement but should be (``alone``)."""
    reader = _Reader()
    part = None
    owner = where.owner
    inside = owner is not None or where.indented
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            text = b"if 1:\n" + piece if inside else piece
            module = compile(text, "<blob>", "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
        assert isinstance(module, ast.Module)
        if not inside:
            if alone and len(module.body) != 1:
                return None
            reader.body(module.body)
        else:
            holder = module.body[0]
            if len(module.body) != 1 or not isinstance(holder, ast.If) or holder.orelse:
                return None
            if alone and len(holder.body) != 1:
                return None
            if where.indented:
                reader.scope = [x for x in (owner.name if owner else "", where.function) if x]
                reader.quiet = int(owner is not None and _is_quiet(owner))
                reader.body(holder.body)
            elif owner is not None:
                part = f.ClassFact(owner.name, owner.bases, owner.decorators, 0, [], [], [], True)
                reader.class_body(part, holder.body)
                # the name stands for: this piece has the class's __init__
                has_init = any(isinstance(s, ast.FunctionDef) and s.name == "__init__" for s in holder.body)
                part = f.ClassFact(
                    part.name if has_init else "", [], [], 0, [_down(x, -1) for x in part.fields],
                    [_down(x, -1) for x in part.init], [_down(x, -1) for x in part.members], part.trivial,
                )  # fmt: skip
            facts = _nothing()
            _add(facts, reader.facts, -1)
            reader.facts = facts
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    reader.facts.uses = sorted(reader.uses)
    return _Piece(reader.facts, part)


def _down(x: f.FieldFact, by: int) -> f.FieldFact:
    return f.FieldFact(x.name, x.type, x.default, x.line + by, x.choices, x.nested)


def _add(out: f.PythonFacts, more: f.PythonFacts, by: int) -> None:
    """Append facts of a piece that begins ``by`` lines down."""
    for c in more.classes:
        out.classes.append(
            f.ClassFact(
                c.name, c.bases, c.decorators, c.line + by, [_down(x, by) for x in c.fields], [_down(x, by) for x in c.init],
                [_down(x, by) for x in c.members], c.trivial,
            )
        )  # fmt: skip
    for fn in more.functions:
        out.functions.append(f.FunctionFact(fn.name, fn.line + by, fn.scope))
    for a in more.arguments:
        out.arguments.append(f.ArgumentFact(a.call, a.flags, a.dest, a.default, a.type, a.choices, a.line + by, a.scope))
    for r in more.registrations:
        out.registrations.append(f.RegistrationFact(r.call, r.names, r.line + by, r.target))
    for t in more.tables:
        out.tables.append(f.TableFact(t.name, t.keys, [n + by for n in t.lines], t.scope, t.values))
    for k in more.compares:
        out.compares.append(f.CompareFact(k.subject, k.values, k.line + by, k.scope))
    for d in more.reads:
        out.reads.append(f.ReadFact(d.how, d.receiver, d.key, d.default, d.line + by, d.scope))


# names read by files that declare nothing ---------------------------------------------------------
_CHUNK = re.compile(rb"\n(?=(?:    )?(?:async def |def |class |@)|[^\s#)\]}])")
_USE = re.compile(
    rb"#[^\n]*"
    rb'|"""(?:[^"\\]|\\.|"(?!""))*"""|\'\'\'(?:[^\'\\]|\\.|\'(?!\'\'))*\'\'\''
    rb'|"([A-Za-z_][\w.+\-/]{0,60})"|\'([A-Za-z_][\w.+\-/]{0,60})\''
    rb'|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\''
    rb"|\.([A-Za-z_]\w*)\b(?!\s*=[^=])",
    re.S,
)


def chunks(source: bytes) -> Iterator[bytes]:
    """Pieces of a file cut at statements and methods, never inside a triple-quoted string."""
    held = b""
    for piece in _split(source, _CHUNK):
        held = held + piece if held else piece
        if held.count(b'"""') % 2 == 0 and held.count(b"'''") % 2 == 0:
            yield held
            held = b""
    if held:
        yield held


def names_read(chunk: bytes) -> set[bytes]:
    """Attribute reads and short strings in a piece of Python, comments and documentation left out."""
    found: set[bytes] = set()
    for groups in _USE.findall(chunk):
        found.update(groups)
    found.discard(b"")
    return found
