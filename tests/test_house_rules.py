"""The rules of the house, read off the source: import order, shape names, words, sizes, public names."""

import ast
import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

import regard

PACKAGE = Path(regard.__file__).parent
FILES = sorted(path for path in PACKAGE.rglob("*.py"))

# Each may import itself and what stands before it. `presets` holds no code, only files that config reads.
ORDER = ["errors", "stop", "presets", "config", "score", "data", "rules", "layers", "models", "search", "engine",
         "tasks", "view", "folder", "trained", "report", "filter", "training", "tune", "api", "lab", "port", "serve",
         "cli"]  # fmt: skip
EVERYTHING = ("__init__.py", "__main__.py")  # the front doors may import all
LATE = ("__init__.py", "cli.py")  # may import the package inside functions, to start fast
WITHOUT_TORCH = ["regard", "regard.errors", "regard.config", "regard.presets", "regard.score", "regard.data.read",
                 "regard.data.lines", "regard.data.recent", "regard.score.calibration", "regard.data.images",
                 "regard.data.check", "regard.data.doctor.sheet", "regard.data.tokens", "regard.data.builtin",
                 "regard.cli"]  # fmt: skip

SUFFIX = re.compile(r"^_?[a-z][a-z0-9_]*_([A-Z][A-Z0-9]*)$")
SHORTHAND = {"src", "tgt", "trg", "hid", "cfg"}
DRAWERS = {"utils.py", "util.py", "helpers.py", "common.py", "misc.py"}
LONGEST = 60
LOOP = "training/loop.py"  # read straight down, so it may be longer
FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
FORBIDDEN_CALLS = {"eval", "exec", "torch.load", "yaml.load", "__import__"}


def place(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imports(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and dotted name of everything imported anywhere below `node`; relative imports as a leading dot."""
    for found in ast.walk(node):
        if isinstance(found, ast.Import):
            yield from ((found.lineno, alias.name) for alias in found.names)
        elif isinstance(found, ast.ImportFrom):
            module = "." * found.level + (found.module or "")
            yield from ((found.lineno, f"{module}.{alias.name}") for alias in found.names)


def functions(node: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (found for found in ast.walk(node) if isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef))


def identifiers(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of all that is named below `node`."""
    for found in ast.walk(node):
        names: list[str | None] = []
        match found:
            case ast.Name():
                names = [found.id]
            case ast.arg() | ast.keyword():
                names = [found.arg]
            case ast.Attribute():
                names = [found.attr]
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names = [found.name]
            case ast.alias():
                names = [found.asname]
        yield from ((getattr(found, "lineno", 0), name) for name in names if name)


def dotted(node: ast.AST) -> str:
    """`a.b.c` of a chain of names; anything else is ''."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return ""


# ── import order ─────────────────────────────────────────────────────────────────────────────────────────────────────


def part_of(name: str) -> str:
    """`regard.layers.tap.Tap` belongs to `layers`."""
    return name.split(".")[1] if "." in name else ""


def out_of_order(where: str, source: ast.Module) -> list[str]:
    """Imports of what stands below `where`, relative ones, and ones inside functions."""
    own = where.split("/")[0].removesuffix(".py")
    wrong = [f"{where}:{line}: relative import {name}" for line, name in imports(source) if name.startswith(".")]
    if where not in EVERYTHING:
        above = ORDER[: ORDER.index(own) + 1] if own in ORDER else []
        wrong += [f"{where}:{line}: {own} stands above {name}" for line, name in imports(source)
                  if name.split(".")[0] == "regard" and part_of(name) not in [*above, "__version__"]]  # fmt: skip
    if where not in LATE:
        wrong += [f"{where}:{line}: {name} is imported inside {function.name}" for function in functions(source)
                  for line, name in imports(function) if name.split(".")[0] == "regard"]  # fmt: skip
    return wrong


def test_every_part_has_its_place_in_the_order() -> None:
    parts = {place(path).split("/")[0].removesuffix(".py") for path in FILES if place(path) not in EVERYTHING}
    assert parts <= set(ORDER)


@pytest.mark.parametrize("path", FILES, ids=place)
def test_each_imports_only_what_stands_above_it(path: Path) -> None:
    assert out_of_order(place(path), tree(path)) == []


@pytest.mark.parametrize(
    ("where", "source", "complaint"),
    [
        ("layers/tap.py", "from regard.models.build import build", "layers/tap.py:1: layers stands above"),
        ("layers/tap.py", "from regard import train", "layers/tap.py:1: layers stands above"),
        ("errors.py", "import regard.config", "errors.py:1: errors stands above"),
        ("models/build.py", "from .. import errors", "models/build.py:1: relative import"),
        ("models/build.py", "def f():\n    from regard.errors import DataError", "models/build.py:2: .* inside f"),
        ("layers/tap.py", "from regard import Tap", "layers/tap.py:1: layers stands above"),
    ],
)
def test_the_order_can_be_broken(where: str, source: str, complaint: str) -> None:
    assert re.match(complaint, out_of_order(where, ast.parse(source))[0])


def test_what_starts_fast_leaves_torch_alone() -> None:
    """Imported for real, one after the other, so that torch can not come in through a third module."""
    script = f"""
import importlib, sys
for name in {WITHOUT_TORCH!r}:
    importlib.import_module(name)
    if "torch" in sys.modules:
        sys.exit(f"{{name}} imports torch")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=PACKAGE.parent)
    assert done.returncode == 0, done.stderr.strip().splitlines()[-1]


# ── shapes ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def key_of_letters() -> set[str]:
    """The letters that layers/__init__.py explains: `B batch · S source positions · … · Y, X rows and columns`."""
    words = ast.get_docstring(tree(PACKAGE / "layers" / "__init__.py")) or ""
    entries = (entry.strip() for line in words.splitlines() if "·" in line for entry in line.split("·"))
    found = [re.match(r"([A-Z](?:, [A-Z])*) [a-z]", entry) for entry in entries]
    return {letter for match in found if match for letter in match[1].split(", ")}


def test_the_key_can_be_read() -> None:
    assert set("BSTDHKFVLNR") <= key_of_letters()
    assert set("YX") <= key_of_letters()


@pytest.mark.parametrize("path", FILES, ids=place)
def test_suffixes_use_letters_of_the_key(path: Path) -> None:
    key = key_of_letters() | {"1"}
    suffixed = ((line, name, SUFFIX.match(name)) for line, name in identifiers(tree(path)))
    wrong = [f"{place(path)}:{line}: {name}" for line, name, found in suffixed if found and not set(found[1]) <= key]
    assert wrong == []


LIES = """
def two_dimensions(x_BT):
    return x_BT.sum()

def two_sizes(x_BT, y_BT):
    return x_BT.sum() + y_BT.sum()

def another_width(x_BD):
    x_BD = x_BD.repeat(1, 2)
    return x_BD

def not_one(x_B1D):
    return x_B1D[:, 0]

def true(x_BTD, mask_BT, at_T, bias_BT):
    found_BD = (x_BTD * mask_BT[..., None]).sum(1)
    inner_TB = mask_BT.T
    return sum(row_TD.sum() for row_TD in x_BTD)
"""


@pytest.fixture
def liar(tmp_path: Path) -> ModuleType:
    (tmp_path / "liar.py").write_text(LIES, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("liar", tmp_path / "liar.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_watch_sees_each_kind_of_lie(liar: ModuleType, shape_watch: Any, tmp_path: Path) -> None:
    with shape_watch(tmp_path) as watch:
        liar.two_dimensions(torch.ones(2, 3, 4))
        liar.two_sizes(torch.ones(2, 3), torch.ones(2, 1))
        liar.two_sizes(torch.ones(2, 3), torch.ones(2, 5))
        liar.another_width(torch.ones(2, 3))
        liar.not_one(torch.ones(2, 1, 3))
        liar.not_one(torch.ones(2, 4, 3))
    assert watch.wrong == {
        "liar.py two_dimensions x_BT: 3 dimensions",
        "liar.py two_sizes y_BT: T is 5 here, 3 elsewhere",
        "liar.py another_width x_BD: D is 6 here, 3 elsewhere",
        "liar.py not_one x_B1D: 1 is 4 here, 1 elsewhere",
    }


def test_the_watch_lets_the_truth_pass(liar: ModuleType, shape_watch: Any, tmp_path: Path) -> None:
    with shape_watch(tmp_path) as watch, shape_watch(tmp_path / "elsewhere") as blind:
        liar.two_sizes(torch.ones(2, 3), torch.ones(2, 5))
    assert not blind.wrong
    assert not watch.wrong  # the inner one listened, and it looks elsewhere
    with watch:
        liar.true(torch.ones(2, 3, 4), torch.ones(2, 3), torch.arange(3), torch.ones(1, 3))
        liar.true(torch.ones(5, 6, 4), torch.ones(5, 6), torch.arange(6), torch.ones(1, 1))
    assert not watch.wrong
    assert sys.getprofile() is None


# ── words and sizes ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", FILES, ids=place)
def test_names_are_whole_words(path: Path) -> None:
    """Other people's names are met in port/, and nowhere else."""
    if place(path).startswith("port/"):
        return
    wrong = [f"{place(path)}:{line}: {name}" for line, name in identifiers(tree(path))
             if SHORTHAND & set(re.split(r"_|\d+", name.lower()))]  # fmt: skip
    assert wrong == []


def test_no_file_is_a_drawer_for_odds_and_ends() -> None:
    assert [place(path) for path in FILES if path.name in DRAWERS] == []


@pytest.mark.parametrize("path", FILES, ids=place)
def test_a_module_says_what_it_is_for(path: Path) -> None:
    words = ast.get_docstring(tree(path))
    assert words, f"{place(path)} has no docstring"
    assert words.splitlines()[0].strip(), f"{place(path)} begins with an empty line"


@pytest.mark.parametrize("path", FILES, ids=place)
def test_no_function_takes_just_anything(path: Path) -> None:
    takers = (node for node in ast.walk(tree(path)) if isinstance(node, ast.arguments) and node.kwarg)
    assert [f"{place(path)}:{node.kwarg.lineno}: **{node.kwarg.arg}" for node in takers if node.kwarg] == []


@pytest.mark.parametrize("path", FILES, ids=place)
def test_functions_can_be_read_at_a_glance(path: Path) -> None:
    lengths = [(node, (node.end_lineno or 0) - node.lineno + 1) for node in functions(tree(path))]
    too_long = [f"{place(path)}:{node.lineno}: {node.name} has {length} lines" for node, length in lengths
                if length > LONGEST and place(path) != LOOP]  # fmt: skip
    assert too_long == []


def dangers(where: str, source: ast.Module) -> list[str]:
    """Whatever runs code that a file brought along."""
    wrong = [f"{where}:{line}: {name}" for line, name in imports(source)
             if FORBIDDEN_MODULES & set(name.split(".")) or name in FORBIDDEN_CALLS]  # fmt: skip
    calls = [node for node in ast.walk(source) if isinstance(node, ast.Call)]
    wrong += [f"{where}:{call.lineno}: {word.arg}" for call in calls for word in call.keywords
              if word.arg == "allow_pickle" and ast.unparse(word.value) != "False"]  # fmt: skip
    return wrong + [f"{where}:{call.lineno}: {dotted(call.func)}" for call in calls
                    if dotted(call.func) in FORBIDDEN_CALLS]  # fmt: skip


@pytest.mark.parametrize("path", FILES, ids=place)
def test_nothing_read_is_ever_run(path: Path) -> None:
    assert dangers(place(path), tree(path)) == []


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from torch import load",
        "torch.load(path)",
        "x = eval(text)",
        "yaml.load(text)",
        "np.load(path, allow_pickle=True)",
    ],
)
def test_danger_is_seen(source: str) -> None:
    assert dangers("x.py", ast.parse(source))
    assert not dangers("x.py", ast.parse("model.eval()\nregard.load(path)\nnp.load(path, allow_pickle=False)"))


# ── public names ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_public_names_are_sorted_and_there() -> None:
    names = list(getattr(regard, "__all__", []))
    assert names, "regard/__init__.py has no __all__"
    assert names == sorted(set(names))
    assert [name for name in names if getattr(regard, name, None) is None] == []


def test_a_name_that_is_not_public_is_refused() -> None:
    with pytest.raises(AttributeError):
        getattr(regard, "no_such_name")  # noqa: B009
