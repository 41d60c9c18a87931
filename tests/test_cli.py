"""The command line: results on stdout, all else on stderr, exit codes as promised, errors of at most three lines."""

import errno
import gzip
import io
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard import cli, config
from regard.data import builtin
from regard.errors import RegardError, UsageError
from regard.lab import laws
from regard.tasks.task import Evaluation
from regard.trained import Trained
from tests.view.small import made

VERBS = ["anatomy", "check", "compare", "demo", "embed", "laws", "look", "port", "presets", "report", "resume", "run",
         "score", "search", "serve", "task", "train"]  # fmt: skip
HEAVY = ["torch", "numpy", "fastapi", "hypercorn", "matplotlib", "tokenizers", "sacrebleu", "babel",
         "regard.config"]  # pydantic is typer's own  # fmt: skip


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.split("\n")[:-1]


Regard = Callable[..., Done]


@pytest.fixture
def regard(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Regard:
    """Runs the command in this process: `regard("run", folder, stdin=b"abc")`."""

    def go(*words: object, stdin: bytes = b"") -> Done:
        monkeypatch.setattr(sys, "argv", ["regard", *map(str, words)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # main replaces it; this puts it back
        capsys.readouterr()
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            with pytest.raises(SystemExit) as caught:
                cli.main()
        code = caught.value.code
        assert code is None or isinstance(code, int)
        return Done(code or 0, *capsys.readouterr())

    return go


@pytest.fixture
def refused(regard: Regard) -> Callable[..., str]:
    """Runs a command that must fail with a code; gives what it said, which is short and has no traceback."""

    def go(code: int, *words: object, stdin: bytes = b"") -> str:
        done = regard(*words, stdin=stdin)
        assert done.code == code, done.err
        assert done.out == ""
        assert "Traceback" not in done.err
        assert done.err.startswith("error: ")
        assert 1 <= len(done.err.splitlines()) <= 3
        assert "\x1b" not in done.err
        return done.err

    return go


def process(
    *words: object, stdin: bytes = b"", variables: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **(variables or {})}
    return subprocess.run([sys.executable, "-m", "regard", *map(str, words)], input=stdin, capture_output=True,
                          env=environment, timeout=120, check=False)  # fmt: skip


# ── help ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_verb_is_here() -> None:
    assert sorted(command.callback.__name__ for command in cli.app.registered_commands if command.callback) == VERBS


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_a_verb_has_an_example(regard: Regard, verb: str) -> None:
    done = regard(verb, "--help")
    assert done.code == 0
    assert any(
        line.strip().startswith(f"regard {verb}") or f"| regard {verb}" in line for line in done.out.splitlines()
    )
    assert regard(verb, "-h").out == done.out
    assert done.err == ""


def test_help_and_version(regard: Regard) -> None:
    done = regard("--help")
    assert done.code == 0
    assert all(verb in done.out for verb in VERBS)
    assert "regard demo" in done.out
    assert regard("--version").out == "regard 0.1.0\n"


def test_help_imports_nothing_heavy() -> None:
    """In one process: all helps, and then a look at what was imported."""
    code = f"""
import contextlib, io, sys
from regard import cli
for words in [["--help"], *([verb, "--help"] for verb in {VERBS})]:
    sys.argv = ["regard", *words]
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()) as out:
        cli.main()
    assert "Usage" in out.getvalue(), words
print(*[name for name in {HEAVY} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("", "")


# ── wrong words ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "words",
    [
        ["trian"],
        ["--unknown"],
        ["train"],
        ["train", "x.tsv", "--unknown"],
        ["train", "x.tsv", "--steps", "many"],
        ["run"],
        ["run", "m", "--beam", "0"],
        ["run", "m", "--top-p", "2"],
        ["run", "m", "--temperature", "0"],
        ["task", "dates", "-n", "0"],
        ["anatomy", "rnn", "--length", "1"],
        ["check"],
    ],
    ids=" ".join,
)
def test_wrong_words(regard: Regard, words: list[str]) -> None:
    done = regard(*words)
    assert done.code == 2
    assert done.out == ""
    assert "Traceback" not in done.err
    assert done.err


def test_error_shows_no_traceback_unless_asked(tmp_path: Path) -> None:
    for words in (["--debug", "check", tmp_path / "none"], ["check", tmp_path / "none", "--debug"]):
        done = process(*words)
        assert done.returncode == 1
        assert b"Traceback" in done.stderr
        assert b"no such file" in done.stderr
    done = process("check", tmp_path / "none")
    assert done.returncode == 66
    assert done.stdout == b""
    assert done.stderr.decode() == f"error: {tmp_path / 'none'}: no such file\n"


def test_what_the_system_refuses_is_one_line(refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "x.tsv")

    monkeypatch.setattr(builtin, "write", full)
    assert refused(1, "task", "copy") == "error: x.tsv: No space left on device\n"


def test_errors_can_not_steer_the_terminal(refused: Callable[..., str]) -> None:
    assert "\\x1b[2J" in refused(66, "check", "\x1b[2J.tsv")


# ── data files, through train ────────────────────────────────────────────────────────────────────────────────────────

GOOD = b"".join(b"s%d\tt%d\n" % (i, i) for i in range(20))
BAD_DATA = {
    "empty": (b"", "an empty file"),
    "blank lines": (b"\n\n \n", "blank lines"),
    "one column": (GOOD + b"alone\n", ":21: expected 2 columns, found 1"),
    "three columns": (b"a\tb\tc\n" + GOOD, ":1: expected 2 columns, found 3"),
    "tab at the end": (GOOD + b"a\tb\t\n", "a tab at the end?"),
    "commas": (b"a,b\nc,d\n", "looks like commas: rename to .csv"),
    "semicolons": (b"a;b\nc;d\n", "looks like semicolons"),
    "json": (b'{"a": 1}\n{"a": 2}\n', "looks like JSON"),
    "invalid UTF-8": (GOOD + b"ab\xffc\td\n", ":21: invalid UTF-8 at byte 2 (0xFF)"),
    "UTF-16": ("a\tb\n".encode("utf-16"), "UTF-16"),
    "NUL": (GOOD + b"a\0\tb\n", ":21: found a NUL byte at byte 1"),
    "empty source": (GOOD + b"\tb\n", ":21: found an empty source"),
    "empty target": (GOOD + b"a\t\n", ":21: found an empty target"),
    "header alone": (b"source\ttarget\n", "nothing after it"),
    "single pair": (b"a\tb\n", "too few"),
    "all too long": (b"".join(b"%d%s\tb%d\n" % (i, b"x" * 6000, i) for i in range(9)), "than data.max_source=4096"),
    "ten megabytes a line": (b"a" * 10_000_000 + b"\tb\nc" + b"d" * 9999 + b"\te\n", "are longer than"),
}


@pytest.mark.parametrize("name", BAD_DATA)
def test_bad_data(refused: Callable[..., str], tmp_path: Path, name: str) -> None:
    content, said = BAD_DATA[name]
    path = tmp_path / "bad.tsv"
    path.write_bytes(content)
    message = refused(65, "train", path, "-o", tmp_path / "m")
    assert str(path) in message
    assert said in message
    assert not (tmp_path / "m").exists()


def test_truncated_gzip(refused: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "x.tsv.gz").write_bytes(gzip.compress(GOOD * 50)[:-20])
    assert "damaged gzip" in refused(65, "train", tmp_path / "x.tsv.gz", "-o", tmp_path / "m")


def test_unequal_parallel_files(refused: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "a.en").write_bytes(b"one\ntwo\n")
    (tmp_path / "a.de").write_bytes(b"eins\n")
    message = refused(65, "train", f"{tmp_path / 'a.en'},{tmp_path / 'a.de'}", "-o", tmp_path / "m")
    assert "has 2 lines" in message
    assert "has 1 lines" in message


def test_all_problems_are_summed_up(refused: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_bytes(GOOD + b"a\nb\n\tc\nd\te\tf\n")
    message = refused(65, "train", tmp_path / "x.tsv", "-o", tmp_path / "m")
    assert "4 of 24 lines can not be used: 3 × wrong column count, 1 × empty source" in message
    assert "--skip-bad" in message


def test_input_that_is_not_there(refused: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_bytes(GOOD)
    message = refused(66, "train", tmp_path / "pair.tsv", "-o", tmp_path / "m")
    assert 'no such file; the nearest name there is "pairs.tsv"' in message
    assert "found a folder without pictures, expected a file" in refused(66, "train", tmp_path, "-o", tmp_path / "m")
    assert "no such file" in refused(66, "train", tmp_path / "pairs.tsv", tmp_path / "v.tsv", "-o", tmp_path / "m")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission_to_read(refused: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_bytes(GOOD)
    (tmp_path / "x.tsv").chmod(0)
    assert "no permission" in refused(66, "train", tmp_path / "x.tsv", "-o", tmp_path / "m")


# ── settings, through train ──────────────────────────────────────────────────────────────────────────────────────────

BAD_WORDS = {
    "unknown key": (["--set", "encoder.widht=4"], "did you mean encoder.width?"),
    "wrong type": (["--set", "encoder.layers=two"], "valid integer"),
    "heads": (["--preset", "transformer", "--set", "encoder.heads=3"], "can not be divided by 3 heads"),
    "negative rate": (["--set", "train.learning_rate=-1.0"], "train.learning_rate"),
    "rate not a number": (["--set", "train.learning_rate=nan"], "train.learning_rate"),
    "dropout": (["--set", "decoder.dropout=1.0"], "decoder.dropout"),
    "zero layers": (["--set", "encoder.layers=0"], "encoder.layers"),
    "preset": (["--preset", "transfomer"], "did you mean transformer?"),
    "device": (["--set", "train.device=gpu"], "expected auto, cpu or cuda"),
    "task": (["--task", "translate"], "expected one of transduce, generate, fill"),
    "contradiction": (["--task", "fill", "--preset", "decoder"], "decoder.kind"),
    "no sign": (["--set", "steps"], "expected name=value"),
    "tokens": (
        ["--tokens", "letters"],
        "tokens.source: found 'letters'; expected one of characters, jamo, bytes, words",
    ),
    "tokens that are nearly right": (["--set", "tokens.source=charcters"], "(did you mean characters?); expected one"),
    "tags": (["--tags", "tags"], "data.tags"),
    "metric": (["--set", "train.metric=accuracy"], "not a score of the task transduce"),
    "minutes": (["--minutes", "-1"], "train.minutes"),
    "steps": (["--steps", "0"], "train.steps"),
    "steps of a search": (["--tune", "--steps", "5"], "a search is bounded by minutes"),
    "minutes of a search": (["--tune", "--minutes", "0"], "train.minutes"),
}


@pytest.mark.parametrize("name", BAD_WORDS)
def test_bad_settings(refused: Callable[..., str], copy_file: Path, tmp_path: Path, name: str) -> None:
    words, said = BAD_WORDS[name]
    assert said in refused(2, "train", copy_file, "-o", tmp_path / "m", *words)
    assert not (tmp_path / "m").exists()


def test_bad_config_file(refused: Callable[..., str], copy_file: Path, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text("[train]\nsteps = \n", encoding="utf-8")
    message = refused(2, "train", copy_file, "-o", tmp_path / "m", "--config", tmp_path / "c.toml")
    assert "line 2, column 9" in message
    refused(66, "train", copy_file, "-o", tmp_path / "m", "--config", tmp_path / "none.toml")


def test_a_guess_is_told_and_stands_on_the_card(regard: Regard, tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_text("".join(f"some text {i}\tl{i % 2}\n" for i in range(60)), encoding="utf-8")
    words = ["--steps", "2", "--set", "encoder.width=16", "--set", "train.warmup=1"]
    done = regard("train", tmp_path / "x.tsv", "-o", tmp_path / "m", *words)
    assert done.code == 0, done.err
    told = "task classify: 2 different targets in 60 different examples; --task transduce overrules it\n"
    assert done.err.startswith(told)
    assert done.err.count("task classify") == 1
    assert "task classify: 2 different targets" in (tmp_path / "m" / "README.md").read_text(encoding="utf-8")
    shown = regard("check", tmp_path / "x.tsv")
    assert "task classify: 2 different targets" in shown.out
    assert json.loads(regard("check", tmp_path / "x.tsv", "--json").out)["task"] == "classify"


def test_a_clear_header_is_no_example(regard: Regard, tmp_path: Path) -> None:
    """Of a file that is trained on, checked or scored; and a model of a file without one reads one with it."""
    rows = [f"{i},{a}{b},{b}{a}" for i, (a, b) in enumerate(product("abcdefgh", repeat=2))]
    (tmp_path / "x.csv").write_text("\n".join(["id,english,german", *rows]), encoding="utf-8")
    (tmp_path / "y.tsv").write_text("word\tpronunciation\nab\tba\ncd\tdc\n", encoding="utf-8")
    (tmp_path / "z.tsv").write_text(
        "".join(f"{a}{b}\t{b}{a}\n" for a, b in product("abcd", repeat=2)), encoding="utf-8"
    )
    words = ["--steps", "2", "--set", "encoder.width=16", "--set", "decoder.width=16", "--preset", "rnn-attention"]
    done = regard("train", tmp_path / "x.csv", "-o", tmp_path / "m", *words)
    assert done.code == 0, done.err
    assert "the first line is taken for a header: id, english, german; --source 2 --target 3" in done.err
    found = json.loads(regard("check", tmp_path / "x.csv", "--json").out)
    assert (found["examples"], found["source_names"], found["target_name"]) == (64, ["english"], "german")
    assert "64 examples" in regard("score", tmp_path / "m", tmp_path / "x.csv").out
    assert regard("train", tmp_path / "z.tsv", "-o", tmp_path / "n", *words).code == 0
    scored = regard("score", tmp_path / "n", tmp_path / "y.tsv")
    assert "2 examples" in scored.out
    assert "taken for a header: word, pronunciation; --source 1 --target 2 reads it as an example" in scored.err


def test_check_takes_a_task_and_tells_of_running_text(
    regard: Regard, refused: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "book.txt").write_text("It was a night.\nIt was dark.\n" * 20, encoding="utf-8")
    told = " ".join(regard("check", tmp_path / "book.txt").out.split())
    assert "one text of some 580 characters, line breaks among them: training goes through it in order" in told
    (tmp_path / "x.tsv").write_text("a b\tc d\n" * 3, encoding="utf-8")
    told = regard("check", tmp_path / "x.tsv", "--task", "embed").out
    assert "task embed: --task says so" in told
    assert "did you mean embed?" in refused(2, "check", tmp_path / "x.tsv", "--task", "embd")
    (tmp_path / "1.png").write_bytes(b"")
    (tmp_path / "p.tsv").write_text("1.png\ta\n2.png\tb\n", encoding="utf-8")
    assert "--task caption" in refused(2, "check", tmp_path / "p.tsv", "--task", "classify")


def test_check_of_texts_and_of_many_columns(regard: Regard, tmp_path: Path) -> None:
    (tmp_path / "book.txt").write_text("It was night.\nAnd it rained.\n", encoding="utf-8")
    assert json.loads(regard("check", tmp_path / "book.txt", "--json").out)["task"] == "generate"
    (tmp_path / "x.tsv").write_text("a\tb\tc\nd\te\tf\n", encoding="utf-8")
    found = json.loads(regard("check", tmp_path / "x.tsv", "--json").out)
    assert (found["source_names"], found["target_name"]) == (["1", "2"], "3")


def test_column_that_is_not_there(refused: Callable[..., str], copy_file: Path, tmp_path: Path) -> None:
    message = refused(65, "train", copy_file, "-o", tmp_path / "m", "--source", "3", "--target", "1")
    assert "found no column" in message


# ── train ────────────────────────────────────────────────────────────────────────────────────────────────────────────

SMALL = ["--set", "encoder.width=16", "--set", "decoder.width=16", "--set", "train.warmup=1",
         "--set", "train.tokens_per_batch=64"]  # fmt: skip


def test_train_run_again_and_force(
    regard: Regard, refused: Callable[..., str], copy_file: Path, tmp_path: Path
) -> None:
    words = ["train", copy_file, "-o", tmp_path / "m", "--steps", "2", "--preset", "rnn", "--seed", "7", *SMALL]
    done = regard(*words)
    assert done.code == 0
    assert done.out.startswith("16 examples\n")
    assert "exact" in done.out
    assert "step 2/2" in done.err
    assert "ETA" in done.err
    assert "tokens/s" in done.err
    first, *_, last = done.err.splitlines()
    assert re.match(r"training rnn \([\d,]+ parameters\) on 68 examples for 2 steps, ", first)
    assert re.search(r": (a few seconds|about \d+ \w+), until", first)
    assert f"the model is in {tmp_path / 'm'}: README.md is its card" in done.err
    assert last == f"      regard laws {tmp_path / 'm'}"
    card = (tmp_path / "m" / "README.md").read_text(encoding="utf-8")
    assert f"command: `regard train {copy_file}" in card
    assert "seed 7" in card
    assert "holds another run" in refused(2, *words)
    again = regard(*words, "--force", "--quiet")
    assert (again.code, again.out, again.err) == (0, done.out, "")


@pytest.mark.parametrize("kind", ["jamo", "spelled", "sentences"])
def test_kinds_that_are_only_read_leave_the_target_its_own(regard: Regard, tmp_path: Path, kind: str) -> None:
    rows = "".join(f"{word}{i}\t{'yes' if i % 2 else 'no'}\n" for i, word in enumerate(["하나", "둘", "셋", "넷"] * 5))
    (tmp_path / "f.tsv").write_text(rows, encoding="utf-8")
    words = ["--task", "transduce", "--tokens", kind]
    done = regard("train", tmp_path / "f.tsv", "-o", tmp_path / "m", "--steps", "2", *words, *SMALL)
    assert done.code == 0, done.err
    saved = config.from_toml((tmp_path / "m" / "config.toml").read_text(encoding="utf-8"), "x")
    assert saved.tokens.source == kind


def test_columns_by_name_and_tags(regard: Regard, tmp_path: Path) -> None:
    rows = "".join(f"walk{i}\tV;PST\twalked{i}\n" for i in range(12))
    (tmp_path / "f.tsv").write_text("lemma\ttags\tform\n" + rows, encoding="utf-8")
    words = ["--source", "lemma,tags", "--target", "form", "--tags", "tags", "--tokens", "characters,words"]
    done = regard("train", tmp_path / "f.tsv", "-o", tmp_path / "m", "--steps", "2", *words, *SMALL)
    assert done.code == 0
    saved = config.from_toml((tmp_path / "m" / "config.toml").read_text(encoding="utf-8"), "x")
    assert (saved.data.source, saved.data.target, saved.data.tags) == (("lemma", "tags"), "form", ("tags",))
    assert (saved.tokens.source, saved.tokens.target) == ("characters", "words")
    lines = b"walk1\tV;PST\n\nwalk\nwalk1\tV;PST\tmore\n\t\n"
    done = regard("run", tmp_path / "m", stdin=lines)
    assert (done.code, len(done.lines)) == (0, 5)
    assert done.lines[0] == done.lines[3]
    assert done.lines[1:3] == ["", ""]
    assert done.lines[4] == ""
    assert (
        "line 3: expected 2 columns, found 1; a tab parts them, as in: printf 'lemma\\ttags\\n' | regard run"
        in done.err
    )
    assert "line 4: 3 columns, the first 2 are read" in done.err


def test_skip_bad(regard: Regard, tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_bytes(GOOD + b"alone\n")
    done = regard("train", tmp_path / "x.tsv", "-o", tmp_path / "m", "--steps", "2", "--skip-bad", *SMALL)
    assert done.code == 0
    assert "1 of 21 lines can not be used" in done.err


# ── run, the filter ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_one_line_out_for_each_line_in(regard: Regard, copy_folder: Path) -> None:
    lines = [b"abc", b"", b"d", b"a" * 100, b"\xff\xfe", b"ab\r", b"\0", b"a\tb\tc", b"\t", b" ",
             "é\u2028\x85".encode(), b"<end>", b"cd"]  # fmt: skip
    done = regard("run", copy_folder, stdin=b"\n".join(lines) + b"\n")
    assert done.code == 0
    assert len(done.lines) == len(lines)
    assert [done.lines[i] for i in (0, 1, 2, 12)] == ["abc", "", "d", "cd"]
    assert done.lines[7] == "a"
    for said in ("line 4: 100 tokens, cut to 12", "line 5: not UTF-8 at byte 1; replaced", "line 8: 3 columns"):
        assert said in done.err
    assert all(line.startswith("warning: ") for line in done.err.splitlines())


@pytest.mark.parametrize("stdin", [b"", b"\n", b"abc", b"abc\n", b"\n\n\n", b"abc\n\nd"])
def test_last_line_with_and_without_its_end(regard: Regard, copy_folder: Path, stdin: bytes) -> None:
    done = regard("run", copy_folder, stdin=stdin)
    expected = stdin.decode().split("\n")
    assert done.lines == (expected[:-1] if expected[-1] == "" else expected)
    assert done.err == ""


def test_over_long_line_far_down_is_named(regard: Regard, copy_folder: Path) -> None:
    """In another chunk, with a batch of one."""
    done = regard("run", copy_folder, "--batch", "1", stdin=b"a\n" * 40 + b"b" * 20 + b"\n")
    assert len(done.lines) == 41
    assert done.err == "warning: line 41: 20 tokens, cut to 12 (data.max_source)\n"


def test_beam_and_batch_change_no_easy_answer(regard: Regard, copy_folder: Path) -> None:
    texts = ["abc", "dd", "", "bca", "a"] * 5
    stdin = "\n".join(texts).encode()
    for words in ([], ["--batch", "1"], ["--batch", "3", "--beam", "4"], ["--beam", "2"]):
        assert regard("run", copy_folder, *words, stdin=stdin).lines == texts


def test_json_and_n_best(regard: Regard, copy_folder: Path) -> None:
    done = regard("run", copy_folder, "--json", stdin=b"abc\n\n")
    first, second = (json.loads(line) for line in done.lines)
    assert first["text"] == "abc"
    assert 0.1 < first["confidence"] <= 1.0
    assert second["text"] == ""
    done = regard("run", copy_folder, "--json", "--n-best", "3", stdin=b"abc\n")
    (found,) = (json.loads(line) for line in done.lines)
    assert found["n_best"][0]["text"] == "abc"
    assert len({each["text"] for each in found["n_best"]}) == 3
    done = regard("run", copy_folder, "--n-best", "3", "--beam", "3", stdin=b"abc\nd\n")
    assert [len(line.split("\t")) for line in done.lines] == [3, 3]


def test_sampling_is_reproducible(regard: Regard, copy_folder: Path) -> None:
    stdin = b"abc\n" * 20
    words = ["run", copy_folder, "--sample", "--temperature", "3"]
    one, again, other = (regard(*words, "--seed", seed, stdin=stdin).lines for seed in (1, 1, 2))
    assert one == again
    assert one != other
    assert len(set(one)) > 1
    assert regard(*words, "--seed", "1", "--batch", "3", stdin=stdin).lines == one
    assert set(regard(*words, "--top-k", "1", stdin=stdin).lines) == {"abc"}


def test_rules(regard: Regard, copy_folder: Path) -> None:
    assert regard("run", copy_folder, "--prefix", "d", stdin=b"abc\n").lines[0].startswith("d")
    assert "b" not in regard("run", copy_folder, "--ban", "b", stdin=b"abc\n").lines[0]
    assert len(regard("run", copy_folder, "--max-length", "2", stdin=b"abc\n").lines[0]) == 2
    assert len(regard("run", copy_folder, "--min-length", "5", stdin=b"abc\n").lines[0]) >= 5
    repeated = regard("run", copy_folder, "--no-repeat", "1", stdin=b"aaa\n").lines[0]
    assert len(set(repeated)) == len(repeated)


def test_constraints(regard: Regard, copy_folder: Path, tmp_path: Path) -> None:
    stdin = b"abc\n\nd\n"
    assert regard("run", copy_folder, "--pattern", "[ab]{2}d|c", stdin=stdin).lines[0] == "abd"
    (tmp_path / "choices.txt").write_text("dab\nabb\n\nabd\n", encoding="utf-8")
    found = regard("run", copy_folder, "--choices", tmp_path / "choices.txt", "--beam", "3", stdin=stdin).lines
    assert (found[0] in ("abb", "abd"), found[1], found[2]) == (True, "", "dab")
    found = regard("run", copy_folder, "--require", "dd", "--require", "b", "--beam", "5", stdin=stdin).lines
    assert all("dd" in line and "b" in line for line in (found[0], found[2]))
    for words, what in (
        (["--pattern", "(a"], "missing ), unterminated subpattern"),
        (["--pattern", r"(a)\1"], "a reference back to a group"),
        (["--pattern", "a{9}", "--max-length", "3"], "max_length 3"),
    ):
        done = regard("run", copy_folder, *words, stdin=stdin)
        assert (done.code, what in done.err, "Traceback" in done.err) == (2, True, False)
    done = regard("run", copy_folder, "--choices", tmp_path / "choice.txt", stdin=stdin)
    assert (done.code, "choices.txt" in done.err) == (66, True)


def test_pictures_that_can_not_be_read_leave_an_empty_line(
    regard: Regard, small_model: Callable[..., Trained], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builtin.write("captions", 2, tmp_path / "c.tsv")
    small_model("caption").save(tmp_path / "m")
    monkeypatch.chdir(tmp_path)
    done = regard("run", "m", stdin=b"c.npz#0\nnone.png\nc.npz#9\n\nc.npz#1\n")
    assert done.code == 0
    assert len(done.lines) == 5
    assert done.lines[1:4] == ["", "", ""]
    assert "warning: line 2: image" in done.err
    assert "warning: line 3: image" in done.err


def test_inputs_may_be_words_of_the_command(regard: Regard, copy_folder: Path, refused: Callable[..., str]) -> None:
    by_stream = regard("run", copy_folder, stdin=b"abc\nda\n")
    by_words = regard("run", copy_folder, "abc", "da", stdin=b"not read\n")
    assert (by_words.code, by_words.out) == (0, by_stream.out)
    assert "has a line end in it" in refused(2, "run", copy_folder, "ab\nc")


def test_pictures_as_words_of_the_command_and_as_rows(
    regard: Regard, small_model: Callable[..., Trained], tmp_path: Path, refused: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch, copy_folder: Path,
) -> None:  # fmt: skip
    """From wherever one stands, the path that one sees there is right."""
    builtin.write("captions", 2, tmp_path / "c.tsv")
    small_model("caption").save(tmp_path / "m")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    done = regard("run", "../m", "../c.npz#0", "../c.npz#1")
    assert (done.code, done.err, len(done.lines)) == (0, "", 2)
    assert regard("run", "../m", "--images", "../c.npz", stdin=b"0\n1\n").out == done.out
    (tmp_path / "rows.tsv").write_text("0\ta dog\n1\ta cat\n", encoding="utf-8")
    assert regard("score", "../m", "../rows.tsv", "--images", "../c.npz").out.startswith("2 examples")
    assert "reads no pictures" in refused(2, "run", copy_folder, "--images", "../c.npz", stdin=b"0\n")


def test_closed_pipe_ends_silently(copy_folder: Path, tmp_path: Path) -> None:
    """Closed in the middle of a long output, and before a short one."""
    (tmp_path / "many").write_bytes(b"abc\n" * 6000)
    (tmp_path / "few").write_bytes(b"abc\n" * 3)
    line = 'set -o pipefail; "$0" -m regard run "$1" < "$2" | head -n 1'
    gone = 'set -o pipefail; "$0" -m regard run "$1" < "$3" | true'
    for script, out in ((line, b"abc\n"), (gone, b"")):
        done = subprocess.run(
            ["bash", "-c", script, sys.executable, copy_folder, tmp_path / "many", tmp_path / "few"],
            capture_output=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, timeout=120, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout, done.stderr) == (0, out, b"")


def test_run_in_a_process_of_its_own(copy_folder: Path) -> None:
    done = process("run", copy_folder, stdin=b"abc\n\xff\n")
    assert done.returncode == 0
    assert done.stdout.startswith(b"abc\n")
    assert done.stdout.count(b"\n") == 2
    assert b"not UTF-8" in done.stderr


def test_results_are_utf8_whatever_the_locale(copy_folder: Path) -> None:
    words = ["run", copy_folder, "--input-column", "1", "--output-column", "日"]
    given = "source\ttarget\nabc\t→\n".encode()
    done = process(*words, stdin=given, variables={"PYTHONIOENCODING": "latin-1"})
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode() == "source\ttarget\t日\nabc\t→\tabc\n"
    done = process("check", "日.tsv", variables={"PYTHONIOENCODING": "latin-1"})
    assert (done.returncode, done.stderr) == (66, b"error: \\u65e5.tsv: no such file\n")


# ── vectors ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_embed_writes_a_row_for_each_line(regard: Regard, copy_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "vectors.npy"
    done = regard("embed", copy_folder, "-o", out, stdin=b"abc\n\na\tb\nabc")
    assert (done.code, done.out) == (0, "")
    assert (
        done.err
        == f"line 3: expected 1 source columns with tabs between them, found 2: 'a ⇥ b'; zeros\nwrote {out}: 4 × 32\n"
    )
    found = np.load(out, allow_pickle=False)
    assert (found.shape, found.dtype) == ((4, 32), np.float32)
    assert np.array_equal(found[0], found[3])
    assert np.linalg.norm(found, axis=1) == pytest.approx([1, 0, 0, 1], abs=1e-5)
    assert list(tmp_path.iterdir()) == [out]


def test_embed_writes_to_a_pipe(copy_folder: Path) -> None:
    done = process("embed", copy_folder, "--batch", "1", stdin=b"abc\nd\n")
    assert (done.returncode, done.stderr) == (0, b"")
    assert np.load(io.BytesIO(done.stdout), allow_pickle=False).shape == (2, 32)
    empty = process("embed", copy_folder)
    assert np.load(io.BytesIO(empty.stdout), allow_pickle=False).shape == (0, 32)


def test_embed_is_not_for_a_terminal(
    refused: Callable[..., str], copy_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused(66, "embed", copy_folder, "-o", tmp_path / "none" / "x.npy", stdin=b"abc")
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda _: True)
    assert "-o vectors.npy" in refused(2, "embed", copy_folder, stdin=b"abc")


def test_search_shows_the_nearest_lines(regard: Regard, copy_folder: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("abc\n\ndd\nba\n", encoding="utf-8")
    done = regard("search", copy_folder, corpus, "dd", "-k", "2")
    assert (done.code, done.err, len(done.lines)) == (0, "", 2)
    assert done.lines[0] == "1.0000\tdd"
    done = regard("search", copy_folder, corpus, "-k", "1", stdin=b"ba\n\nabc\n")
    assert done.lines == ["ba\t1.0000\tba", "abc\t1.0000\tabc"]
    done = regard("search", copy_folder, corpus, "--json", "dd")
    found = json.loads(done.out)
    assert (found["query"], len(found["results"])) == ("dd", 3)
    assert found["results"][0] == {"text": "dd", "score": pytest.approx(1.0, abs=1e-5), "line": 3}


def test_what_can_not_be_searched(refused: Callable[..., str], copy_folder: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("abc\na\tb\n", encoding="utf-8")
    assert "corpus.txt:2: expected 1 source columns" in refused(65, "search", copy_folder, corpus, "dd")
    assert "empty text" in refused(2, "search", copy_folder, corpus, " ")
    corpus.write_text("\n", encoding="utf-8")
    assert "no line with text" in refused(65, "search", copy_folder, corpus, "dd")
    refused(66, "search", copy_folder, tmp_path / "none.txt", "dd")


@pytest.mark.parametrize("verb", ["run", "laws", "score", "embed", "search"])
def test_what_is_no_model(refused: Callable[..., str], copy_file: Path, tmp_path: Path, verb: str) -> None:
    more = [copy_file] if verb in ("score", "search") else []
    assert "no such model folder" in refused(66, verb, tmp_path / "none", *more)
    assert "not a model folder" in refused(1, verb, tmp_path, *more)
    (tmp_path / "x.pt").write_bytes(b"\x80")
    assert "never opens them" in refused(1, verb, tmp_path / "x.pt", *more)


# ── the other verbs ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_presets(regard: Regard) -> None:
    done = regard("presets")
    names = [line.split()[0] for line in done.lines]
    assert names[:4] == ["rnn-single", "rnn", "rnn-context", "rnn-attention"]  # in the order of the lineage
    assert sorted(names) == config.presets()
    assert all(len(line.split()) > 3 for line in done.lines)
    assert set(json.loads(regard("presets", "--json").out)) == set(config.presets())
    assert regard("presets", "transformer").out == config.preset_text("transformer")


def test_unknown_preset(refused: Callable[..., str]) -> None:
    assert "did you mean transformer?" in refused(2, "presets", "transformers")


@pytest.mark.parametrize("ending", ["tsv", "csv", "jsonl", "tsv.gz"])
def test_task_writes_a_file_that_check_reads(regard: Regard, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"reverse.{ending}"
    done = regard("task", "reverse", "-n", "30", "-o", path)
    assert (done.code, done.out, done.err) == (0, "", f"wrote {path}\n")
    done = regard("check", path, "--json")
    assert done.code == 0
    assert "30" in done.out
    json.loads(done.out)


def test_task_parts_and_seeds(regard: Regard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    regard("task", "dates", "-n", "40")
    regard("task", "dates", "-n", "40", "--part", "test", "-o", "t.tsv")
    regard("task", "dates", "-n", "40", "--seed", "1", "-o", "s.tsv")
    rows = {
        name: (tmp_path / name).read_text(encoding="utf-8").splitlines() for name in ("dates.tsv", "t.tsv", "s.tsv")
    }
    assert all(len(lines) == 40 for lines in rows.values())
    sources = {name: {line.split("\t")[0] for line in lines} for name, lines in rows.items()}
    assert not sources["dates.tsv"] & sources["t.tsv"]
    assert sources["dates.tsv"] != sources["s.tsv"]


def test_unknown_task(refused: Callable[..., str], tmp_path: Path) -> None:
    assert "dates" in refused(2, "task", "date", "-o", tmp_path / "x.tsv")
    refused(66, "task", "copy", "-o", tmp_path / "none" / "x.tsv")
    refused(2, "task", "copy", "-o", tmp_path / "x.xls")


def test_check_tells_what_some_minutes_would_have_chosen(
    regard: Regard, refused: Callable[..., str], copy_file: Path
) -> None:
    assert "--minutes or" in regard("check", copy_file).out
    told = regard("check", copy_file, "--minutes", 0.2).out
    assert "what follows is learnt by heart" in " ".join(told.split())
    assert "--minutes 0: expected more than 0" in refused(2, "check", copy_file, "--minutes", 0)


def test_check(regard: Regard, refused: Callable[..., str], copy_file: Path, tmp_path: Path) -> None:
    done = regard("check", copy_file)
    assert done.code == 0
    assert "84" in done.out
    (tmp_path / "t.tsv").write_text("abc\tabc\nxyz\tz\n", encoding="utf-8")
    both = json.loads(regard("check", copy_file, tmp_path / "t.tsv", "--json").out)
    assert both
    (tmp_path / "bad.tsv").write_text("a\tb\nc\n", encoding="utf-8")
    assert "expected 2 columns" in refused(65, "check", tmp_path / "bad.tsv")
    assert regard("check", tmp_path / "bad.tsv", "--skip-bad").code == 0


def test_score(regard: Regard, refused: Callable[..., str], copy_folder: Path, copy_file: Path, tmp_path: Path) -> None:
    done = regard("score", copy_folder, copy_file)
    assert done.code == 0
    assert done.lines[0] == "84 examples"
    found = json.loads(regard("score", copy_folder, copy_file, "--json", "--beam", "2").out)
    assert found["examples"] == 84
    assert found["metrics"]["exact"]["value"] >= 95
    assert found["metrics"]["exact"]["low"] <= found["metrics"]["exact"]["value"] <= found["metrics"]["exact"]["high"]
    assert {"loss", "perplexity", "token_accuracy_forced", "token_accuracy_free", "exposure_gap"} <= found.keys()
    refused(66, "score", copy_folder, tmp_path / "none.tsv")


def test_score_against_another_model(
    regard: Regard, refused: Callable[..., str], copy_folder: Path, copy_file: Path, tmp_path: Path
) -> None:
    other = Path(shutil.copytree(copy_folder, tmp_path / "other"))
    done = regard("score", copy_folder, copy_file, "--against", other, "--beam", "1")
    assert done.code == 0
    assert "right (exact): both" in done.out
    assert "difference: model less other" in done.out
    found = json.loads(regard("score", copy_folder, copy_file, "--against", copy_folder, "--json").out)
    assert found["metrics"]["exact"]["p_value"] == 1
    assert found["models"] == [str(copy_folder)] * 2
    assert found["differ"] == []
    refused(66, "score", copy_folder, copy_file, "--against", tmp_path / "none")


def test_compare(
    regard: Regard, refused: Callable[..., str], copy_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["--set", "encoder.width=16", "--set", "decoder.width=16", "--seeds", "1", "--steps", "2"]
    done = regard("compare", copy_file, copy_file, "--presets", "rnn,transformer", "-o", "both", *words)
    assert done.code == 0
    assert "2 presets × 1 seed" in done.out
    assert "run 2 of 2: transformer, seed 0; all of them: " in done.err
    assert "compare.html" in done.err
    again = regard(
        "compare", copy_file, copy_file, "--presets", "rnn,transformer", "-o", "both", *words, "--json", "-q"
    )
    assert [row["preset"] for row in json.loads(again.out)["rows"]] == ["rnn", "transformer"]
    assert "run 1" not in again.err
    assert "expected two or more" in refused(2, "compare", copy_file)
    assert "expected at least two" in refused(2, "compare", copy_file, "--presets", "rnn")
    assert "needs a decoder" in refused(2, "compare", copy_file, "--presets", "rnn,encoder", "-o", "no")
    assert "no such file" in refused(66, "compare", tmp_path / "none.tsv", "--presets", "rnn,conv", "-o", "no", *words)
    assert not (tmp_path / "no").exists()


def test_laws_hold(regard: Regard, copy_folder: Path) -> None:
    done = regard("laws", copy_folder)
    assert done.code == 0
    assert len(done.lines) == len(laws.LAWS)
    assert all(line.startswith("holds") for line in done.lines)
    found = json.loads(regard("laws", copy_folder, "--json", "--seed", "3").out)
    assert all(law["holds"] for law in found)


def test_broken_law_is_told_by_the_exit_code(
    regard: Regard, copy_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = laws.LAWS[0]
    broken = (lambda probe: replace(sound(probe), difference=0.5), *laws.LAWS[1:])
    monkeypatch.setattr(laws, "LAWS", broken)
    done = regard("laws", copy_folder)
    assert done.code == 1
    assert done.lines[0].startswith("BROKEN  causal")
    assert "5.0e-01" in done.lines[0]
    done = regard("laws", copy_folder, "--json")
    assert done.code == 1
    assert [law["holds"] for law in json.loads(done.out)][:2] == [False, True]


def strict(text: str) -> Any:
    """As other readers of JSON take it: NaN and Infinity are no words of it."""

    def refuse(word: str) -> None:
        raise ValueError(word)

    return json.loads(text, parse_constant=refuse)


def test_json_has_null_for_what_is_not_finite(
    regard: Regard, copy_folder: Path, copy_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound, judge = laws.LAWS[0], Trained.judge
    monkeypatch.setattr(laws, "LAWS", (lambda probe: replace(sound(probe), difference=math.nan),))
    assert strict(regard("laws", copy_folder, "--json").out)[0]["difference"] is None

    def judged(*given: Any) -> Evaluation:
        return replace(judge(*given), facts={"loss": math.inf})

    monkeypatch.setattr(Trained, "judge", judged)
    assert strict(regard("score", copy_folder, copy_file, "--json").out)["loss"] is None


def test_anatomy(regard: Regard, refused: Callable[..., str]) -> None:
    words = ["anatomy", "rnn", "--length", "8", "--set", "encoder.width=16", "--set", "decoder.width=16"]
    done = regard(*words)
    assert done.code == 0
    assert "parameters" in done.out
    assert json.loads(regard(*words, "--json").out)
    assert "did you mean rnn" in refused(2, "anatomy", "rnnn")


def test_demo_refuses_what_turns_no_text_into_text(refused: Callable[..., str], tmp_path: Path) -> None:
    assert "the demo turns dates into dates" in refused(2, "demo", "-o", tmp_path / "d", "--preset", "encoder")
    assert not (tmp_path / "d").exists()


# ── what once went wrong ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_newline_in_an_output_makes_no_second_line(regard: Regard, tmp_path: Path) -> None:
    rows = "".join(f'{word},"{word}\nx"\n' for word in ("ab", "ba", "aa", "bb", "abb", "bab"))
    (tmp_path / "x.csv").write_text(rows, encoding="utf-8")
    words = ["--steps", "2", "--set", "tokens.target=characters", *SMALL]
    assert regard("train", tmp_path / "x.csv", "-o", tmp_path / "m", *words).code == 0
    for more in ([], ["--n-best", "2"], ["--sample"], ["--json"]):
        done = regard("run", tmp_path / "m", "--prefix", "x\nx", *more, stdin=b"ab\nba\n\n")
        assert done.code == 0
        assert len(done.lines) == 3
        if "--json" in more:
            assert json.loads(done.lines[0])["text"].startswith("x\nx")
        else:
            assert all(part.startswith("x x") for line in done.lines[:2] for part in line.split("\t"))


def ended(capsys: pytest.CaptureFixture[str], error: RegardError) -> Done:
    """How the command ends with this error."""
    with pytest.raises(SystemExit) as caught:
        cli.fail(error)
    assert isinstance(caught.value.code, int)
    return Done(caught.value.code, *capsys.readouterr())


@pytest.mark.parametrize("character", ["\x1b", "\x07", "\x9b", "\u202e", "\r"])
def test_no_error_can_steer_the_terminal(capsys: pytest.CaptureFixture[str], character: str) -> None:
    done = ended(capsys, UsageError(f"x{character}[2Jy"))
    spelled = character.encode("unicode_escape").decode()
    assert (done.code, done.out, done.err) == (2, "", f"error: x{spelled}[2Jy\n")


def test_lines_of_an_error_stay_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(capsys, RegardError("one\ntwo\nthree\nfour")).err == "error: one\ntwo\nthree\n"


def unforeseen(*given: object) -> None:
    raise ZeroDivisionError("of nobody's making")


def test_what_nobody_foresaw_is_told_as_a_defect(refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtin, "write", unforeseen)
    message = refused(1, "task", "copy")
    assert message.startswith("error: a defect of regard: ZeroDivisionError: of nobody's making")
    assert "--debug shows where it happened" in message


def test_a_defect_is_told_in_two_lines(refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtin, "write", unforeseen)
    assert refused(1, "task", "copy").splitlines()[1:] == ["--debug shows where it happened"]


def test_debug_shows_where_a_defect_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raised as it is: Python itself prints the traceback and leaves with 1."""
    monkeypatch.setattr(builtin, "write", unforeseen)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    monkeypatch.setattr(sys, "argv", ["regard", "task", "copy", "--debug"])
    with pytest.raises(ZeroDivisionError, match="of nobody's making"):
        cli.main()


def test_debug_as_the_value_of_another_option_is_one(regard: Regard, copy_folder: Path) -> None:
    done = regard("run", copy_folder, "--prefix", "--debug", stdin=b"abc\n")
    assert (done.code, done.err, done.lines[0][:7]) == (0, "", "--debug")
    assert regard("run", copy_folder, "--debug", stdin=b"abc\n").lines == ["abc"]
    assert "--debug: no such file" in regard("check", "--", "--debug").err
    assert "Usage" in regard("--debug").out


def test_notes_can_not_steer_the_terminal(regard: Regard, tmp_path: Path) -> None:
    done = regard("task", "copy", "-n", "3", "-o", tmp_path / "a\x1b[2J.tsv")
    assert (done.code, done.err) == (0, f"wrote {tmp_path}/a\\x1b[2J.tsv\n")


@pytest.mark.parametrize(
    "word", ["search.length_penalty=1e6", "search.beam=1000000", "search.beam=0", "train.device=meta"]
)
def test_settings_out_of_all_bounds(refused: Callable[..., str], copy_file: Path, tmp_path: Path, word: str) -> None:
    assert word.split("=")[0] in refused(2, "train", copy_file, "-o", tmp_path / "m", "--set", word)
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("words", [["--beam", "1000000"], ["--n-best", "1000000"], ["--length-penalty", "1e6"]])
def test_flags_out_of_all_bounds(regard: Regard, copy_folder: Path, words: list[str]) -> None:
    done = regard("run", copy_folder, *words, stdin=b"abc\n")
    assert (done.code, done.out) == (2, "")
    assert words[0] in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--sample", "--n-best", "3"], "--sample draws one output"),
        (["--sample", "--beam", "3"], "--sample draws one output"),
        (["--min-length", "10", "--max-length", "5"], "--min-length 10 is more than --max-length 5"),
        (["--seed", "0"], "they need --sample"),
        (["--top-k", "0"], "they need --sample"),
        (["--no-align"], "they need --json"),
        (["--align"], "they need --json"),
        (["--output-column", "output"], "it needs --input-column"),
        (["--output-column", "x", "--format", "lines"], "it needs --input-column"),
    ],
)
def test_flags_that_contradict_each_other(
    refused: Callable[..., str], copy_folder: Path, words: list[str], said: str
) -> None:
    assert said in refused(2, "run", copy_folder, *words, stdin=b"abc\n")


def test_a_table_without_named_columns_may_name_its_output(regard: Regard, copy_folder: Path) -> None:
    done = regard("run", copy_folder, "--format", "tsv", "--output-column", "x", stdin=b"source\nabc\n")
    assert (done.lines, done.err) == (["source\tx", "abc\tabc"], "")


@pytest.mark.parametrize("words", [["--beam", "1"], ["--length-penalty", "1"], ["--prefix", "a"]])
def test_flags_that_fill_nothing(
    refused: Callable[..., str], small_model: Callable[..., Trained], tmp_path: Path, words: list[str]
) -> None:
    small_model("encoder").save(tmp_path / "m")
    assert "only --n-best, --batch, --json" in refused(2, "run", tmp_path / "m", *words, stdin=b"a[mask]\n")


def test_flags_of_a_search_for_what_fills(regard: Regard, small_model: Callable[..., Trained], tmp_path: Path) -> None:
    small_model("encoder").save(tmp_path / "m")
    assert regard("run", tmp_path / "m", "--n-best", "2", "--batch", "1", stdin=b"a[mask]\n").code == 0


def test_force_keeps_what_no_run_of_ours_wrote(refused: Callable[..., str], copy_file: Path, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine", encoding="utf-8")
    for more in ([], ["--force"]):
        assert "holds README.md, and no run" in refused(2, "train", copy_file, "-o", tmp_path, *SMALL, *more)
    assert [path.read_text(encoding="utf-8") for path in tmp_path.iterdir()] == ["mine"]


def test_score_leaves_bad_lines_out_where_asked(
    regard: Regard, refused: Callable[..., str], copy_folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "t.tsv").write_text("abc\tabc\nalone\nd\td\n", encoding="utf-8")
    assert "t.tsv:2: expected 2 columns" in refused(65, "score", copy_folder, tmp_path / "t.tsv")
    done = regard("score", copy_folder, tmp_path / "t.tsv", "--skip-bad", "--json")
    assert (done.code, json.loads(done.out)["examples"]) == (0, 2)
    assert "1 of 3 lines can not be used" in done.err


def test_source_and_target_of_one_column(refused: Callable[..., str], copy_file: Path, tmp_path: Path) -> None:
    words = ["train", copy_file, "-o", tmp_path / "m", "--source", "2", "--target", "2"]
    assert "data.target: the column 2 is read as a source too" in refused(2, *words)


def test_a_space_through_a_model_of_words(regard: Regard, small_model: Callable[..., Trained], tmp_path: Path) -> None:
    """A line that has no token at all, for a model that reads the source as its prefix."""
    small_model("decoder", "tokens.source=words", "tokens.target=words").save(tmp_path / "m")
    done = regard("run", tmp_path / "m", stdin=b" \na b\n  \n")
    assert (done.code, len(done.lines), done.err) == (0, 3, "")
    assert done.lines[0] == done.lines[2]


def test_byte_order_mark_and_line_ends_of_stdin(regard: Regard, copy_folder: Path) -> None:
    done = regard("run", copy_folder, stdin=b"\xef\xbb\xbfabc\r\nd\r\n\r\nba")
    assert (done.code, done.lines) == (0, ["abc", "d", "", "ba"])
    assert done.err == "warning: lines end in \\r\\n; the \\r is left out\n"
    assert regard("run", copy_folder, stdin=b"\xef\xbb\xbfabc\nd\n").lines == ["abc", "d"]


# ── the filter that behaves ──────────────────────────────────────────────────────────────────────────────────────────


def test_json_has_what_the_page_promises(regard: Regard, copy_folder: Path) -> None:
    done = regard("run", copy_folder, "--json", stdin=b"abc\n")
    found = json.loads(done.out)
    assert {"text", "score", "confidence", "probability", "lowest", "n_best", "tokens", "source_tokens",
            "alignment"} == found.keys()  # fmt: skip
    assert found["tokens"] == ["a", "b", "c"]
    assert [row.index(max(row)) for row in found["alignment"]] == [0, 1, 2]
    assert "alignment" not in json.loads(regard("run", copy_folder, "--json", "--no-align", stdin=b"abc\n").out)


def test_columns_in_and_out(regard: Regard, refused: Callable[..., str], copy_folder: Path) -> None:
    words = ["run", copy_folder, "--input-column"]
    done = regard(*words, "word", "--output-column", "copy", stdin=b"id\tword\n1\tabc\n2\tdd\n")
    assert (done.lines, done.err) == (["id\tword\tcopy", "1\tabc\tabc", "2\tdd\tdd"], "")
    assert regard(*words, "2", stdin=b"1\tabc\n").lines == ["1\tabc\tabc"]
    assert regard(*words, "w", stdin=b'{"w": "abc"}\n').lines == ['{"w": "abc", "output": "abc"}']
    assert "found no column" in refused(65, *words, "other", stdin=b"id\tword\n")
    assert "the model reads 1 columns" in refused(2, *words, "id,word", stdin=b"id\tword\n")
    assert "expected lines, tsv, csv, jsonl" in refused(2, "run", copy_folder, "--format", "xml", stdin=b"a\n")


def test_what_is_not_sure_is_left_empty(
    regard: Regard, refused: Callable[..., str], copy_folder: Path, small_model: Callable[..., Trained], tmp_path: Path
) -> None:
    done = regard("run", copy_folder, "--min-confidence", "0.9999999", stdin=b"abc\n\n")
    assert (done.code, done.lines) == (0, ["", ""])
    assert re.fullmatch(r"line 1: confidence 0\.\d+ < 1; left empty\n", done.err)
    assert regard("run", copy_folder, "--min-confidence", "0.2", stdin=b"abc\n").lines == ["abc"]
    said = refused(2, "run", copy_folder, "--sample", "--min-confidence", "0.5", stdin=b"a\n")
    assert "drawn at random has no confidence" in said
    small_model("rnn").save(tmp_path / "m")
    done = regard("run", tmp_path / "m", "--min-confidence", "0.5", stdin=b"a\n")
    assert "confidence is the raw probability" in done.err


def test_an_endless_stream_through_a_short_pipe(copy_folder: Path) -> None:
    script = 'yes abc | "$0" -m regard run "$1" | head -n 5; echo "${PIPESTATUS[1]}"'
    done = subprocess.run(["bash", "-c", script, sys.executable, copy_folder], capture_output=True, timeout=120,
                          env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False)  # fmt: skip
    assert (done.stdout, done.stderr) == (b"abc\n" * 5 + b"0\n", b"")


def heeding_interruptions() -> None:
    """In a child: a shell that runs the tests in the background has them, and all they start, ignore interruptions."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_answers_come_while_more_is_awaited_and_an_interruption_is_quiet(copy_folder: Path) -> None:
    with subprocess.Popen([sys.executable, "-m", "regard", "run", str(copy_folder)], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=heeding_interruptions,
                          env={**os.environ, "OMP_NUM_THREADS": "1"}) as child:  # fmt: skip
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        for word in (b"abc\n", b"dd\n", b"a\n"):
            child.stdin.write(word)
            child.stdin.flush()
            assert child.stdout.readline() == word
        child.send_signal(signal.SIGINT)
        assert (child.wait(60), child.stdout.read(), child.stderr.read()) == (130, b"", b"")


def test_a_model_card_tells_what_confidence_is_worth(copy_folder: Path) -> None:
    card = (copy_folder / "README.md").read_text(encoding="utf-8")
    assert "| Brier score |" in card
    assert "| expected calibration error |" in card
    assert "learnt from the 84 examples" in card


@pytest.mark.parametrize("flag", ["--pattern", "--require", "--ban"])
def test_an_empty_demand_is_refused(regard: Regard, copy_folder: Path, flag: str) -> None:
    """As an unset variable of a shell would make it: the demand would be lifted without a word."""
    done = regard("run", copy_folder, flag, "", stdin=b"abc\n")
    assert done.code == 2
    assert f"{flag}: found an empty text" in done.err


# ── looking in ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_look_in_the_terminal(regard: Regard, copy_folder: Path) -> None:
    done = regard("look", copy_folder, "abc", "--derive")
    assert done.code == 0, done.err
    assert done.lines[0].startswith("abc  →  abc")
    assert "without each token" in done.out
    assert "rank correlation" in done.out


@pytest.mark.parametrize("ending", ["html", "svg", "png", "json"])
def test_look_into_a_file(regard: Regard, copy_folder: Path, tmp_path: Path, ending: str) -> None:
    done = regard("look", copy_folder, "abc", "-o", tmp_path / f"x.{ending}")
    assert (done.code, done.out) == (0, ""), done.err
    assert (tmp_path / f"x.{ending}").stat().st_size > 500


def test_look_with_something_changed(regard: Regard, copy_folder: Path) -> None:
    assert regard("look", copy_folder, "abc", "--erase", "b").lines[0].startswith("abc  →  ac")
    assert regard("look", copy_folder, "abc", "--erase", "0", "--erase", "2").lines[0].startswith("abc  →  b")
    assert regard("look", copy_folder, "abc", "--begin", "dd").lines[0].startswith("abc  →  dd")
    assert regard("look", copy_folder, "abc", "--off", "decoder.cross:0").code == 0


def test_erase_names_the_tokens_that_are_shown(regard: Regard, tmp_path: Path) -> None:
    """Of a prompt that is longer than there is room for, those of its end: there is one c in it."""
    made("generate", "decoder").save(tmp_path / "model")
    text, out = "ab cd ab cd ab cd ab d", tmp_path / "x.json"
    done = regard("look", tmp_path / "model", text, "--beam", "1", "--erase", "c", "--erase", "2", "-o", out)
    assert done.code == 0, done.err
    left = json.loads(out.read_text(encoding="utf-8"))["source"]
    assert "".join(token["text"] for token in left) == "␣␣ab␣d"


@pytest.mark.parametrize(
    "words", [("--erase", "x"), ("--erase", "9"), ("--off", "decoder.cross"), ("--off", "no:0"), ("-o", "x.pdf")]
)
def test_look_at_what_is_not_there(refused: Callable[..., str], copy_folder: Path, words: tuple[str, ...]) -> None:
    assert "expected" in refused(2, "look", copy_folder, "abc", *words) or words[1] == "no:0"


def test_report_from_the_command_line(regard: Regard, copy_folder: Path, copy_file: Path, tmp_path: Path) -> None:
    done = regard("report", copy_folder, copy_file, "-o", tmp_path / "r.html")
    assert done.code == 0, done.err
    assert "open it in a browser" in done.err
    assert (tmp_path / "r.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_misspelt_task_is_heard_of_before_the_ending(refused: Callable[..., str], tmp_path: Path) -> None:
    assert "no built-in task 'dtes' (did you mean dates?)" in refused(2, "task", "dtes", "-o", tmp_path / "x")


@pytest.mark.parametrize("ending", [".svg", ".png", ".html", ".json"])
def test_a_folder_that_is_not_there_is_named(
    refused: Callable[..., str], copy_folder: Path, tmp_path: Path, ending: str
) -> None:
    said = refused(66, "look", copy_folder, "ab", "-o", tmp_path / "none" / f"x{ending}")
    assert f"no folder {tmp_path / 'none'}" in said


def test_what_was_guessed_is_told_as_such_after_an_error(
    refused: Callable[..., str], copy_file: Path, tmp_path: Path
) -> None:
    said = refused(2, "train", copy_file, "-o", tmp_path / "m", "--set", "encoder.layers=x").splitlines()
    assert said[0].startswith("error: ")
    assert said[1].startswith("guessed before that: task ")
