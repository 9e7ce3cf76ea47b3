"""Each kind of declaration that frameworks use, in the idioms of the real ones, with fixtures of our own."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from landed.history.states import state_of
from landed.options.facts import PythonFacts, TextFacts
from landed.options.hydra import compose
from landed.options.python import Memo, chunks, names_read, read_python
from landed.options.read import read
from landed.options.rules import READER_OF, Rule, RuleSet, glob
from landed.options.shell import read_shell
from landed.options.yamls import MAX_KEYS, read_yaml


def options(files: dict[str, str], **rule: object) -> dict[tuple[str, str], str]:
    """(option, value) to default, as one rule sees a tree."""
    made = Rule(id="r", **{"paths": ["**"], **rule})  # type: ignore[arg-type]
    rules = RuleSet([made])
    patterns = {rules.marker(i): p for i, p in rules.markers.items()}
    texts = {path: textwrap.dedent(text).encode() for path, text in files.items()}
    state = state_of(rules, {p: p for p in texts}, lambda path, blob, need: read(need, texts[path], patterns))
    assert READER_OF[made.kind]
    return {key: shown.default for key, shown in state.items()}


def test_dataclass_fields_with_every_form_of_default() -> None:
    text = '''
        from dataclasses import dataclass, field
        @dataclass
        class LossConfig(Base):
            """Documentation."""
            eps: float = 0.2
            eps_high: float | None = field(default=None, metadata={"help": "upper"})
            betas: list[float] = field(default_factory=lambda: [0.1])
            names: list = field(default_factory=list)
            mode: Literal["ppo", "gspo"] = "ppo"
            kind: Optional[Literal['a', 'b']] = field(default="a", metadata={"choices": ["a", "b", "c"]})
            required: int
            negative: float = -1.0
    '''
    got = options({"a.py": text}, kind="fields", classes=["LossConfig"], prefix="loss")
    assert got == {
        ("loss.eps", ""): "0.2", ("loss.eps_high", ""): "null", ("loss.betas", ""): "[0.1]", ("loss.names", ""): "[]",
        ("loss.mode", ""): "ppo", ("loss.mode", "ppo"): "", ("loss.mode", "gspo"): "", ("loss.kind", ""): "a",
        ("loss.kind", "a"): "", ("loss.kind", "b"): "", ("loss.kind", "c"): "", ("loss.required", ""): "",
        ("loss.negative", ""): "-1.0",
    }  # fmt: skip


def test_inheritance_across_files_and_nested_classes() -> None:
    files = {
        "base.py": "class OnPolicy(TrainingArguments):\n    k: int = 4\n    lr: float = 1.0\n",
        "cfg.py": """
            class Inner(BaseModel):
                ratio: float = Field(0.5, gt=0)
            class RLOOConfig(OnPolicy):
                lr: float = 2.0
                inner: Inner = field(default_factory=Inner)
                maybe: NotRequired[Inner | None]
        """,
    }
    got = options(files, kind="fields", classes=["RLOOConfig"], prefix="{class}")
    assert got[("RLOOConfig.k", "")] == "4"
    assert got[("RLOOConfig.lr", "")] == "2.0"
    assert got[("RLOOConfig.inner.ratio", "")] == "0.5"
    assert got[("RLOOConfig.maybe.ratio", "")] == "0.5"


def test_typed_dicts_have_no_default() -> None:
    got = options({"a.py": "class C(TypedDict):\n    x: NotRequired[float | None]\n"}, kind="fields", prefix="loss_fn")
    assert got == {("loss_fn.x", ""): ""}


def test_defaults_in_the_signature_of_init() -> None:
    text = "class PPOConfig:\n    def __init__(self, lr: float = 1e-5, *, adap: Optional[bool] = True, name='a', **kw): ...\n"
    got = options({"a.py": text}, kind="fields", init=True, prefix="PPOConfig")
    assert got == {("PPOConfig.lr", ""): "1e-05", ("PPOConfig.adap", ""): "true", ("PPOConfig.name", ""): "a"}


def test_argparse_flags_choices_dests_actions_and_overrides() -> None:
    text = """
        KINDS = ["k1", "k2"]
        def add_algo_arguments(parser):
            parser.add_argument("--eps-clip", type=float, default=0.2)
            parser.add_argument("-k", "--kl", choices=KINDS, default="k1")
            group.add_argument('--estimator', type=str, choices=["gae", "grpo"],
                default="gae", help="--not-a-flag")
            parser.add_argument("--disable-norm", action="store_false", dest="normalize")
            parser.add_argument("--on", action="store_true", default=False)
            reset_arg(parser, "--lr", type=float, default=1e-6)
            parser.add_argument(NAME)
            parser.set_defaults(eps_clip=0.3)
    """
    got = options({"a.py": text}, kind="argparse", names=["add_argument", "reset_arg"])
    assert got == {
        ("--eps-clip", ""): "0.3", ("--kl", ""): "k1", ("--kl", "k1"): "", ("--kl", "k2"): "", ("--estimator", ""): "gae",
        ("--estimator", "gae"): "", ("--estimator", "grpo"): "", ("--disable-norm", ""): "true", ("--on", ""): "false",
        ("--lr", ""): "1e-06",
    }  # fmt: skip


def test_argparse_in_loops_over_constants() -> None:
    text = """
        for prefix in ("actor", "critic"):
            parser.add_argument(f"--{prefix}.lr", type=float, default=1e-6 if prefix == "actor" else 9e-6)
            for n in [1, 2]:
                parser.add_argument(f"--{prefix}.b{n}", dest=f"{prefix}.beta", choices=["x"])
        for name in NAMES:
            parser.add_argument(f"--{name}")
    """
    got = options({"a.py": text}, kind="argparse")
    assert {k: v for k, v in got.items() if not k[1]} == {
        ("--actor.lr", ""): "1e-06", ("--critic.lr", ""): "9e-06", ("--actor.b1", ""): "", ("--actor.b2", ""): "",
        ("--critic.b1", ""): "", ("--critic.b2", ""): "",
    }  # fmt: skip
    assert ("--critic.b2", "x") in got


def test_enums_registries_and_tables() -> None:
    text = '''
        class Adv(str, Enum):
            """Names."""
            GAE = "gae"
            GRPO = 'grpo'
            PASSK = auto()

        @register_adv_est(Adv.REINFORCE_PP)
        def a(): ...

        @register_adv_est(
            "rloo"
        )
        def b(): ...

        @register_loss(Settings(names=["k1", "k2"], clamp=True))
        def c(): ...

        REGISTRY.register("opo", d)
        LOSSES = {"ppo": ppo, "gspo": gspo}
        LOSSES["cispo"] = cispo
    '''
    files = {"a.py": text}
    assert options(files, kind="enum", classes=["Adv"], option="adv").keys() == {
        ("adv", "gae"),
        ("adv", "grpo"),
        ("adv", "passk"),
    }
    assert options(files, kind="registry", names=["register_adv_est"], option="adv").keys() == {
        ("adv", "reinforce_pp"),
        ("adv", "rloo"),
    }
    assert options(files, kind="registry", names=["register_loss"], option="l").keys() == {("l", "k1"), ("l", "k2")}
    assert options(files, kind="registry", names=["register"], option="r").keys() == {("r", "opo")}
    assert options(files, kind="table", names=["LOSSES"], option="t").keys() == {("t", "ppo"), ("t", "gspo"), ("t", "cispo")}
    params = {
        "a.py": """
        class Trainer:
            default_params = {"clip": .2, "adaptive": True, "target": -1, "model": build()}
    """
    }
    assert options(params, kind="table", names=["default_params"], prefix="Trainer") == {
        ("Trainer.clip", ""): "0.2", ("Trainer.adaptive", ""): "true", ("Trainer.target", ""): "-1", ("Trainer.model", ""): "",
    }  # fmt: skip


def test_string_comparisons_and_membership() -> None:
    text = """
        def loss(self, config):
            if self.loss_type == "grpo" or "bnpo" == self.loss_type: ...
            elif self.loss_type in ["dapo", "cispo"]: ...
            elif config.get("loss_type", "x") != "luspo": ...
            elif cfg["loss_type"] not in ("a", 'b'): ...
            match self.loss_type:
                case "sapo" | "vespo": ...
            if "mask" in self.loss_type: ...
            if other == "no": ...
    """
    got = options({"a.py": text}, kind="compare", subjects=["loss_type"], option="l")
    assert {v for _, v in got} == {"grpo", "bnpo", "dapo", "cispo", "luspo", "a", "b", "sapo", "vespo", "mask"}


def test_reads_without_declaration() -> None:
    text = """
        def f(cfg):
            a = cfg.get("disable_ratio", False)
            b = getattr(cfg.actor, "tis_lower", 0.5)
            c = cfg["plain"]
            return hasattr(cfg, "never")
    """
    got = options({"a.py": text}, kind="read", prefix="loss")
    assert got == {("loss.disable_ratio", ""): "false", ("loss.tis_lower", ""): "0.5", ("loss.plain", ""): ""}


def test_definitions_leave_shims_out() -> None:
    text = """
        class PPOTrainer(_PPOTrainer):
            def __init__(self, *args, **kwargs):
                warnings.warn("moved")
                super().__init__(*args, **kwargs)
        class GRPOTrainer(Trainer):
            def step(self): return 1
        def soft_overlong_punishment(x): ...
    """
    assert options({"a.py": text}, kind="definition", names=["*Trainer"]).keys() == {("GRPOTrainer", "")}
    assert options({"a.py": text}, kind="definition", names=["soft*"], option="reward").keys() == {
        ("reward", "soft_overlong_punishment")
    }


def test_newer_syntax_than_this_interpreter() -> None:
    text = """
        type Pair[T] = tuple[T, T]
        class Box[T: int]:
            def get[U](self, x: U) -> U:
                return self.args.dual_clip
        @dataclass
        class LossConfig:
            eps: float = 0.2
        @register_loss("gspo")
        def loss[T](x: T): return f"{x["a"]}"
    """
    facts = read_python(textwrap.dedent(text).encode())
    assert {c.name for c in facts.classes} == {"Box", "LossConfig"}
    assert [(r.names, r.line) for r in facts.registrations] == [(["gspo"], 9)]
    assert "dual_clip" in facts.uses


def test_broken_files_give_what_can_be_read_and_the_line() -> None:
    text = b"""@register_loss("a")
def f(): ...
<<<<<<< HEAD
x = (1
=======
x = 2
>>>>>>> other
@register_loss("b")
def g(): ...
"""
    facts = read_python(text)
    assert ["a"] in [r.names for r in facts.registrations]
    assert facts.problems
    assert facts.problems[0].line == 3


@pytest.mark.parametrize(
    "text", [b"\xff\xfe\x00x", b"x = '\xe9'\n", b"\0\0", b"# coding: nonsense\nx=1\n", b"(" * 5000, b"x=" + b"-" * 50_000 + b"1"]
)
def test_unreadable_bytes_are_reported(text: bytes) -> None:
    assert isinstance(read_python(text), PythonFacts)
    assert read_python(text).problems


def test_ten_megabytes_are_reported_not_parsed() -> None:
    made = read("python", b"x = 1\n" * 2_000_000, {})
    assert isinstance(made, PythonFacts)
    assert "not read" in made.problems[0].message


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=400) | st.text(max_size=400).map(str.encode))
def test_readers_never_raise(data: bytes) -> None:
    assert isinstance(read_python(data), PythonFacts)
    assert isinstance(read_yaml(data), TextFacts)
    assert isinstance(read_shell(data), TextFacts)


_PIECES = st.sampled_from(
    [
        "import a\n", "x = args.alpha\n", "class A:\n    y = 1\n\n    def f(self):\n        return self.beta\n",
        "def g(c):\n    '''c.hidden'''\n    return c['gamma']\n", "# args.comment\n", 'T = """\nargs.text\ndef z(): ...\n"""\n',
        "if a.delta == 'eps':\n    pass\n",
    ]
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(st.lists(_PIECES, max_size=12))
def test_pieces_of_a_file_read_the_same_names_as_the_whole(pieces: list[str]) -> None:
    source = "".join(pieces).encode()
    assert b"".join(chunks(source)) == source
    by_piece = set().union(*(names_read(c) for c in chunks(source)))
    assert by_piece == names_read(source)
    exact = {u.encode() for u in read_python(source).uses}
    assert exact <= by_piece
    assert not {b"hidden", b"comment", b"text"} & by_piece


LONG = "".join(
    f"    if a.b{n} == 'v{n}':\n      c = d.e{n}  # {'pad ' * 60}\n    else:\n      ''''doc'\n    x = [\n      cfg.get('k{n}', {n}),\n    ]\n"
    for n in range(10)
)
_CLASSES = st.sampled_from(
    [
        "@dataclass\nclass C(Base):\n    a: int = 1\n", "class D:\n    x = 1\n\n", "class E(Enum):\n    A = 'a'\n",
        "    def m(self, q=1):\n        '''doc\n    def no(): ...\n'''\n        if self.mode == 'x' * 3:\n            return cfg['k']\n\n",
        "    @property\n    def p(self):\n        return getattr(self.c, 'z', 2)\n", "    later: float = 0.5\n",
        "    def __init__(self, lr=0.1):\n        super().__init__(lr)\n", "# " + "pad " * 500 + "\n", "def g(a=1):\n    return a.b\n",
        "try:\n    import q\nexcept ImportError:\n    q = {'k': 1}\nelse:\n    z = 1\n", "@register_loss(\n    'gspo',\n)\n", "x = [\n'a',\n]\n",
        'T = """\nclass F:\n    y = 1\n"""\n', "p.add_argument('--a', choices=['b'])\n", "if (\n    a\n):\n    pass\n", "    # odd\n", "\\\n",
        "    class Inner:\n        z: int = 3\n\n        def __init__(self): ...\n", "x = 1 if y else \\\nz\n", "with a:\n  b.c\n", "    def long(\n        self,\n        a=1,\n    ) -> None:\n" + LONG.replace("    ", "        "),
        "if __name__ == 'x':  # why\n    # more\n" + LONG, "if long:\n" + LONG + "elif b:\n    c.d\n", "async def long(a):\n    # why\n\n" + LONG, "class Pad(B):\n\n    # pad\n    def m(self):\n        # why\n" + LONG.replace("    ", "        "), "@dec(\n    x\n)\ndef long(a: dict = {}) -> int:  # why\n    'doc'\n" + LONG + "    def inner():\n        return cfg['q']\n", "\r\n", "\f\n",
    ]
)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.lists(st.lists(_CLASSES, max_size=10).map("".join), min_size=1, max_size=4))
def test_reading_by_pieces_gives_the_same_facts(versions: list[str]) -> None:
    memo: Memo = {}
    for text in versions:
        assert read_python(text.encode(), memo) == read_python(text.encode())


def test_yaml_keys_lines_defaults_and_scalars() -> None:
    facts = read_yaml(
        b"# @package _global_\ndefaults:\n  - actor@a.actor: dp\n  - _self_\na:\n  n: 5\n  on: yes\n  x: ~\n  s: '1'\n  l: [1, 2]\n  e: {}\n"
    )
    assert facts.package == "_global_"
    assert facts.defaults == [["actor@a.actor", "dp"], ["_self_", ""]]
    assert {(k.key, k.value, k.line) for k in facts.keys} == {
        ("a.n", "5", 6), ("a.on", "true", 7), ("a.x", "null", 8), ("a.s", "1", 9), ("a.l", "[1, 2]", 10), ("a.e", "{}", 11),
    }  # fmt: skip


def test_yaml_duplicates_anchors_bombs_and_templates() -> None:
    twice = read_yaml(b"a: 1\nb: 2\na: 3\n")
    assert [(k.key, k.value) for k in twice.keys] == [("b", "2"), ("a", "3")]
    assert twice.problems[0].line == 3
    merged = read_yaml(b"base: &b\n  x: 1\nd:\n  <<: *b\n  y: 2\n")
    assert ("d.x", "1") in [(k.key, k.value) for k in merged.keys]
    bomb = "a: &a {x: 1, y: 2}\n" + "".join(
        f"{chr(98 + i)}: &{chr(98 + i)} {{p: *{chr(97 + i)}, q: *{chr(97 + i)}, r: *{chr(97 + i)}}}\n" for i in range(20)
    )
    facts = read_yaml(bomb.encode())
    assert len(facts.keys) <= MAX_KEYS
    assert facts.problems
    assert read_yaml(b"a: {{ template }}\nb: [").problems


def test_hydra_composition_groups_packages_self_and_references() -> None:
    files = {
        "c/main.yaml": "defaults:\n  - model_engine: dp\n  - actor@role.actor: ${model_engine}_actor\n  - opt: adam\n  - optional missing: x\n  - _self_\n"
        "algo:\n  eps: 0.2\n  eps_high: ${algo.eps}\n  far: ${oc.select:no.where,7}\nrole:\n  actor:\n    lr: 2\n",
        "c/model_engine/dp.yaml": "# @package _global_\nengine: dp\n",
        "c/actor/dp_actor.yaml": "defaults:\n  - base\n  - inner@opt: small\n  - _self_\nlr: 1\nextra: ${..top}\n",
        "c/actor/base.yaml": "lr: 0\nkept: true\n",
        "c/actor/inner/small.yaml": "size: 1\n",
        "c/opt/adam.yaml": "beta: 0.9\n",
    }
    got = {k: v for k, (v, _, _) in compose({p: read_yaml(t.encode()) for p, t in files.items()}, "c/main.yaml").items()}
    assert got == {
        "engine": "dp", "role.actor.lr": "2", "role.actor.kept": "true", "role.actor.opt.size": "1", "role.actor.extra": "${..top}",
        "opt.beta": "0.9", "algo.eps": "0.2", "algo.eps_high": "0.2", "algo.far": "7",
    }  # fmt: skip


def test_shell_overrides_flags_arrays_and_variables() -> None:
    text = r"""
#!/bin/bash
MODE=gspo
ARGS=(
   --eps-clip 0.2
   --estimator=grpo   # comment
   --flag
)
python -m x.main \
    actor.loss_mode=${MODE} \
    +new.key="a b" \
    ~gone=1 \
    'data.files=["x","y"]' "${ARGS[@]}"
"""
    got = {(k.key, k.value) for k in read_shell(text.encode()).keys}
    assert {
        ("--eps-clip", "0.2"), ("--estimator", "grpo"), ("--flag", ""), ("actor.loss_mode", "gspo"), ("new.key", "a b"), ("gone", "1"),
        ("data.files", '["x","y"]'), ("$MODE", "gspo"),
    } <= got  # fmt: skip


def test_shell_scripts_with_any_character() -> None:
    made = read_shell('echo "熵坍塌" \U0010ffff\x18 a.b=Ā x.y="é"\n'.encode())
    assert {(k.key, k.value) for k in made.keys} == {("a.b", "Ā"), ("x.y", "é")}
    read_shell(bytes.fromhex("2fc389c2b9354118c2af1a7bf48fbfbfc3aa36c4b01ac29502c3b11800054f4bc383c2a7"))


def test_folders_files_and_path_patterns() -> None:
    files = {"recipe/dapo/run.sh": "", "recipe/dapo/a/b.py": "", "recipe/README.md": "", "recipe/prime/x.txt": "", "s/a.sh": ""}
    assert options(files, kind="folder", prefix="recipe/", paths=["recipe/**/*.{py,sh}"]).keys() == {("recipe/dapo", "")}
    assert options(files, kind="file", paths=["s/*.sh"]).keys() == {("s/a.sh", "")}
    assert glob("a/**/b.py").match("a/b.py")
    assert not glob("a/*.py").match("a/b/c.py")
    assert glob("**/*.{yaml,yml}").match("x/y.yml")


def test_the_first_rule_gives_the_default_and_later_ones_fill_in() -> None:
    rules = RuleSet(
        [
            Rule(id="yaml", kind="yaml", paths=["*.yaml"], prefix="loss"),
            Rule(id="class", kind="fields", paths=["*.py"], prefix="loss"),
        ]
    )
    texts = {"a.yaml": b"eps: 0.3\n", "c.py": b"class C:\n    eps: float = 0.2\n    other: int = 1\n"}
    state = state_of(rules, {p: p for p in texts}, lambda path, blob, need: read(need, texts[path], {}))
    assert {k[0]: (s.default, s.type) for k, s in state.items()} == {"loss.eps": ("0.3", "float"), "loss.other": ("1", "int")}
