"""Lines through a model: one out for each in, in order, in memory that does not grow, and left empty with a reason."""

import io
import json
import tracemalloc
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard import config, trained
from regard.data import builtin
from regard.data.images import load_image
from regard.data.lines import Layout, Line
from regard.data.read import Example
from regard.data.vocabulary import learn
from regard.errors import DataError, UsageError
from regard.filter import Ask, Filter, Searcher, write_vectors
from regard.models.build import build
from regard.tasks import transduce
from regard.tasks.task import Answer, Item, Wish
from regard.trained import Trained

SmallModel = Callable[..., Trained]


@pytest.fixture
def model(small_model: SmallModel, monkeypatch: pytest.MonkeyPatch) -> Trained:
    """A model whose answers are known: the source in capitals, the surer the shorter."""
    made = small_model("rnn-attention")

    def answer(_: object, items: Sequence[Item], wish: Wish, numbers: Sequence[int]) -> list[Answer]:
        return [shouted(made, item, wish.n_best) for item in items]

    monkeypatch.setattr(made.task, "answer", answer)
    return made


def shouted(model: Trained, item: Item, count: int) -> Answer:
    text = model.vocabulary.source.decode(item.source[:-1])
    sure = 1.0 - len(text) / 10
    best = tuple(
        Answer(text.upper() + "!" * i, -float(i), sure, item.source[:-1], (), sure, sure) for i in range(count)
    )
    return Answer(best[0].text, 0.0, sure, item.source[:-1], best, sure, sure)


def through(model: Trained, ask: Ask, given: bytes) -> tuple[list[str], list[str]]:
    """Lines out, and what was told."""
    out, told = io.StringIO(), []  # type: ignore[var-annotated]
    Filter(model, ask, told.append).run(io.BytesIO(given), out)
    assert out.getvalue() == "" or out.getvalue().endswith("\n")
    return out.getvalue().split("\n")[:-1], told


# ── one line out for each line in ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("layout", [Layout(), Layout("tsv", ("1",)), Layout("jsonl", ("a",)), Layout("tsv", ("a",))])
@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("count", [1, 3])
def test_whatever_comes_in(model: Trained, layout: Layout, as_json: bool, count: int) -> None:
    lines = [
        b"a\tb",
        b"",
        b"abc",
        b"\xff",
        b'{"a": "b"}',
        b'{"a": ',
        b"\t",
        b"[]",
        b"\0",
        b"x\r",
        b"d" * 50,
        b'{"a": 1}',
    ]
    wish = Wish(n_best=count, batch=2, align=as_json)
    layout = Layout(layout.format, layout.columns, "output", count)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out, _ = through(model, Ask(wish, layout, as_json, 0.5), b"\n".join(lines))
    assert len(out) == len(lines)


def test_lines(model: Trained) -> None:
    out, told = through(model, Ask(Wish()), b"abc\n\nd\na\tb\n")
    assert out == ["ABC", "", "D", "A"]
    assert told == ["warning: line 4: 2 columns, the first 1 are read"]


def test_tables(model: Trained) -> None:
    given = b"id\tword\n1\tabc\n2\n\n3\td\textra\n"
    out, told = through(model, Ask(Wish(), Layout(columns=("word",))), given)
    assert out == ["id\tword\toutput", "1\tabc\tABC", "2\t\t", "", "3\td\tD\textra"]
    assert told == [
        "warning: line 3: expected 2 columns, found 1; left empty",
        "warning: line 5: 3 columns, the header has 2; the output stands before the others",
    ]


def test_blank_lines_before_the_first_with_text(model: Trained) -> None:
    """They decide nothing, and stay blank lines."""
    ask = Ask(Wish(batch=1), Layout(columns=("word",)))
    out, told = through(model, ask, b"\n \n\nid\tword\n1\tabc\n\n")
    assert (out, told) == (["", "", "", "id\tword\toutput", "1\tabc\tABC", ""], [])
    out, told = through(model, ask, b'\n\n{"word": "abc"}\n')
    assert (out, told) == (["", "", '{"word": "abc", "output": "ABC"}'], [])
    out, told = through(model, ask, b"\n\n")
    assert (out, told) == (["", ""], [])
    with pytest.raises(DataError, match='line 2: found no column "word"; the columns are id'):
        through(model, ask, b"\nid\n")


def test_a_blank_first_line_is_answered_at_once(model: Trained) -> None:
    out, _ = through(model, Ask(Wish(), as_json=True), b"\nab\n")
    assert [json.loads(line)["text"] for line in out] == ["", "AB"]
    out, _ = through(model, Ask(Wish()), b" \nab\n")
    assert out == [" ", "AB"]
    seen: list[tuple[int, int]] = []
    ask = Ask(Wish(), Layout(columns=("a",)))
    Filter(model, ask, print, lambda lines, size: seen.append((lines, size))).run(
        io.BytesIO(b"\na\nb\n"), io.StringIO()
    )
    assert seen[-1] == (3, 5)


def test_objects(model: Trained) -> None:
    given = b'{"word": "abc", "n": 1.10}\n{"word"\n\n{"other": "x"}\n'
    out, told = through(model, Ask(Wish(), Layout(columns=("word",), output="loud")), given)
    assert out == ['{"word": "abc", "n": 1.10, "loud": "ABC"}', '{"loud": ""}', "", '{"other": "x", "loud": ""}']
    assert [line[:17] for line in told] == ["warning: line 2: ", "warning: line 4: "]


def test_a_key_that_is_there_already_ends_the_filter_at_its_line(model: Trained) -> None:
    """Neither lost nor mistaken for an answer, wherever it stands first."""
    out = io.StringIO()
    given = io.BytesIO(b'{"a": "b"}\n{"a": "c", "output": "mine"}\n')
    with pytest.raises(UsageError, match='line 2: the input has a key "output" already'):
        Filter(model, Ask(Wish(), Layout(columns=("a",))), print).run(given, out)
    assert out.getvalue() == '{"a": "b", "output": "B"}\n'


def test_an_over_long_line_is_named_by_its_line(model: Trained) -> None:
    """Of the input, its header counted."""
    with pytest.warns(UserWarning, match="line 3: 20 tokens, cut to 12"):
        through(model, Ask(Wish(), Layout(columns=("a",))), b"a\nb\n" + b"c" * 20)


def test_a_picture_is_loaded_once(small_model: SmallModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builtin.write("captions", 2, tmp_path / "c.tsv")
    monkeypatch.chdir(tmp_path)
    loaded: list[str] = []

    def load(reference: str, *more: Any) -> Any:
        loaded.append(reference)
        return load_image(reference, *more)

    monkeypatch.setattr(transduce, "load_image", load)
    out, _ = through(small_model("caption"), Ask(Wish(align=True), as_json=True), b"c.npz#0\nc.npz#1\n")
    assert [len(json.loads(line)["source_tokens"]) for line in out] == [4, 4]
    assert loaded == ["c.npz#0", "c.npz#1"]


def test_n_best_in_columns(model: Trained) -> None:
    out, _ = through(model, Ask(Wish(n_best=2), Layout("tsv", ("1",), count=2)), b"a\tx\n\td\n")
    assert out == ["a\tx\tA\tA!", "\td\t\t"]


def test_one_out_for_each_in_over_many_bundles(model: Trained) -> None:
    words = ["abcd"[i % 4] * (1 + i % 7) for i in range(500)]
    out, _ = through(model, Ask(Wish(batch=1)), "\n".join(words).encode())
    assert out == [word.upper() for word in words]


# ── how sure ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_less_sure_is_left_to_a_person(model: Trained) -> None:
    out, told = through(model, Ask(Wish(n_best=2), min_confidence=0.8), b"ab\nabc\n\na\n")
    assert out == ["AB\tAB!", "", "", "A\tA!"]
    assert told == ["line 2: confidence 0.7 < 0.8; left empty"]


def test_and_in_json_with_its_reason(model: Trained) -> None:
    out, told = through(model, Ask(Wish(), as_json=True, min_confidence=0.8), b"ab\nabc\n")
    sure, unsure = map(json.loads, out)
    assert (sure["text"], "left" in sure) == ("AB", False)
    assert (unsure["text"], unsure["left"], unsure["best"]) == ("", "confidence 0.7 < 0.8", "ABC")
    assert told == []


def test_a_reason_never_rounds_up_to_what_is_asked_for(model: Trained) -> None:
    doubt = Filter(model, Ask(Wish(), min_confidence=0.9), print).doubt
    assert doubt(Answer("", 0.0, 0.8999999)) == "confidence 0.8999 < 0.9"
    assert doubt(Answer("", 0.0, 0.9)) == ""


def test_json_has_all_that_is_known(model: Trained) -> None:
    ask = Ask(Wish(n_best=2, align=True), as_json=True)
    (line,), _ = through(model, ask, b"abc\n")
    found = json.loads(line)
    assert (found["text"], found["score"], found["confidence"]) == ("ABC", 0.0, 0.7)
    assert (found["probability"], found["lowest"]) == (0.7, 0.7)
    assert [each["text"] for each in found["n_best"]] == ["ABC", "ABC!"]
    assert len(found["alignment"]) == len(found["tokens"]) == 3
    assert {len(row) for row in found["alignment"]} == {len(found["source_tokens"])} == {4}
    assert found["source_tokens"] == ["a", "b", "c", "<end>"]
    assert all(abs(sum(row) - 1.0) < 1e-3 for row in found["alignment"])
    (line,), _ = through(model, Ask(Wish(), as_json=True), b"abc\n")
    assert "alignment" not in json.loads(line)


def test_json_of_a_line_that_can_not_be_read(model: Trained) -> None:
    ask = Ask(Wish(), Layout("jsonl", ("a",)), as_json=True)
    (line,), _ = through(model, ask, b'{"b": "x"}\n')
    found = json.loads(line)
    assert found["b"] == "x"
    assert (found["output"]["text"], found["output"]["confidence"]) == ("", 0.0)
    assert 'expected the key "a"' in found["output"]["left"]


# ── streams ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class Endless(io.RawIOBase):
    """So many lines, all different, made when they are read."""

    def __init__(self, lines: int) -> None:
        self.left = lines

    def read1(self, size: int) -> bytes:
        now = min(self.left, 200)
        self.left -= now
        return b"".join(b"%06d\n" % (self.left + i) for i in range(now))


class Counter(io.StringIO):
    """Counts lines and keeps none."""

    lines = 0

    def write(self, text: str) -> int:
        self.lines += text.count("\n")
        return len(text)


def peak(model: Trained, lines: int) -> int:
    """The most bytes that were held while so many lines went through."""
    out = Counter()
    tracemalloc.start()
    Filter(model, Ask(Wish(batch=4)), print).run(Endless(lines), out)  # type: ignore[arg-type]
    _, found = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert out.lines == lines
    return found


def test_memory_does_not_grow_with_the_number_of_lines(model: Trained, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trained, "REMEMBERED", 2000)
    peak(model, 500)  # whatever is made once is made here
    assert peak(model, 6000) < 1.5 * peak(model, 1500)


def test_the_first_line_is_out_before_the_second_is_read(model: Trained) -> None:
    class Waiting(io.RawIOBase):
        """Gives a second line only when the first was answered."""

        asked = 0

        def read1(self, size: int) -> bytes:
            self.asked += 1
            if self.asked == 2:
                assert out.getvalue() == "AB\n"
            return (b"ab\n", b"d\n", b"")[self.asked - 1]

    out = io.StringIO()
    Filter(model, Ask(Wish()), print).run(Waiting(), out)  # type: ignore[arg-type]
    assert out.getvalue() == "AB\nD\n"


def test_whoever_watches_is_told_lines_and_bytes(model: Trained) -> None:
    seen: list[tuple[int, int]] = []
    given = b"a\tb\n" * 9 + b"c\td"
    ask = Ask(Wish(batch=1), Layout("tsv", ("1",)))
    Filter(model, ask, print, lambda lines, size: seen.append((lines, size))).run(io.BytesIO(given), io.StringIO())
    assert seen == [(1, 4), (3, 12), (7, 28), (9, 36), (10, 39)]


def test_nothing_on_a_terminal_can_steer_it(model: Trained) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    out = Terminal()
    Filter(model, Ask(Wish(), Layout("tsv", ("1",))), print).run(io.BytesIO(b"a\t\x1b[2J\n"), out)
    assert out.getvalue() == "a\t\\x1b[2J\tA\n"


# ── labels, pieces, vectors ──────────────────────────────────────────────────────────────────────────────────────────


def reader(task: str, *targets: str) -> Trained:
    c = config.resolve("conv", None, [f"task={task}", "encoder.width=16", "encoder.layers=1"])
    vocabulary = learn([Example(("abcd",), target, 1) for target in targets], c, [False])
    return Trained(c, vocabulary, build(c, vocabulary.source.size, vocabulary.target.size).eval())


def test_a_record_of_a_classification_tells_the_chance_of_every_label() -> None:
    model = reader("classify", "yes", "no", "may be")
    (line, empty), _ = through(model, Ask(Wish(n_best=2, align=True), as_json=True), b"abc\n\n")
    found = json.loads(line)
    assert set(found["probabilities"]) == {"yes", "no", "may be"}
    assert list(found["probabilities"].values()) == sorted(found["probabilities"].values(), reverse=True)
    assert [each["text"] for each in found["n_best"]] == list(found["probabilities"])[:2]
    assert found["text"] == next(iter(found["probabilities"]))
    assert found["tokens"] == [found["text"].replace(" ", "␣")]
    assert "probabilities" not in json.loads(empty)
    found = json.loads(empty)
    assert (found["text"], found["n_best"], found["empty"]) == ("", [], True)
    assert found["confidence"] is found["probability"] is found["score"] is found["lowest"] is None


def test_a_record_of_a_piece_tells_its_tokens() -> None:
    (line,), _ = through(reader("extract", "abcd"), Ask(Wish(), as_json=True), b"abc\n")
    found = json.loads(line)
    assert found["text"] == "".join(found["tokens"])
    assert found["text"] in "abc"


def test_vectors_of_many_lines_wait_on_the_disk() -> None:
    model = reader("embed", "abcd")
    lines = b"".join(b"abcd" * (1 + number % 3) + b"\n" for number in range(3000))
    write_vectors(model, io.BytesIO(lines), io.BytesIO(), 8, print)
    out = io.BytesIO()
    tracemalloc.start()
    assert write_vectors(model, io.BytesIO(lines), out, 8, print) == 3000
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    found = np.load(io.BytesIO(out.getvalue()), allow_pickle=False)
    assert found.shape == (3000, 16)
    assert np.array_equal(found[0], found[3])
    assert most < 2 * found.nbytes + 3_000_000


def test_a_searcher_goes_through_the_lines_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "corpus.txt").write_text("ab\ncd\n", encoding="utf-8")
    out = io.StringIO()
    searcher = Searcher(reader("embed", "abcd"), str(tmp_path / "corpus.txt"), 8)
    searcher.run(iter([[Line(1, "cd", 3), Line(2, "", 1)]]), 1, print, out, as_json=True, named=True)
    first, second = map(json.loads, out.getvalue().splitlines())
    assert (first["results"][0]["line"], second["results"]) == (2, [])


def test_a_model_of_pictures_has_no_vectors_of_texts(small_model: SmallModel, tmp_path: Path) -> None:
    model = small_model("caption")
    (tmp_path / "corpus.txt").write_text("a text\n", encoding="utf-8")
    for ask in (
        lambda: model.embed(["a text"]),
        lambda: write_vectors(model, io.BytesIO(b"a text\n"), io.BytesIO(), 1, print),
        lambda: Searcher(model, str(tmp_path / "corpus.txt"), 1),
    ):
        with pytest.raises(UsageError, match="this model reads pictures"):
            ask()


def test_a_csv_that_is_read_whole_is_told(model: Trained) -> None:
    out, told = through(model, Ask(Wish()), b"text,label\nabc,d\n")
    assert out == ["TEXT,LABEL", "ABC,D"]
    assert told[0] == ("warning: line 1 looks like a header of CSV (text, label), but lines are read whole: say "
                       "--input-column NAME to read a column")  # fmt: skip
    out, told = through(model, Ask(Wish(), Layout(columns=("text",))), b'text,label\n"abc, d",e\n')
    assert out == ["text,label,output", '"abc, d",e,"ABC, D"']
    assert told == ['warning: line 2 has characters that the model never learnt: ",", " "']


# ── what was never learnt ────────────────────────────────────────────────────────────────────────────────────────────


def made_model(c: config.Config, examples: Sequence[Example], is_tags: Sequence[bool]) -> Trained:
    vocabulary = learn(examples, c, is_tags)
    sizes = vocabulary.source.size, vocabulary.target.size
    return Trained(c, vocabulary, build(c, *sizes, copies=vocabulary.copies()).eval())


@pytest.mark.parametrize(
    ("tokens", "told"),
    [
        ("characters", ['2 lines have characters that the model never learnt (the first is line 2): "x", "é", "1"']),
        ("words", ['3 lines have words that the model never learnt (the first is line 2): "x", "é", "aé1", "ab"']),
        ("bpe", []),
        ("bytes", []),
    ],
)  # fmt: skip
def test_what_was_never_learnt_is_told_once(tokens: str, told: list[str]) -> None:
    """And changes no line that is written."""
    c = config.resolve("rnn-attention", None, ["encoder.width=8", "decoder.width=8", f"tokens.source={tokens}",
                                               "tokens.size=300"])  # fmt: skip
    model = made_model(c, [Example(("a b c d",), "a b c d", 1)] * 3, [False])
    lines = ["a b", "a x é", "", "aé1", "ab" if tokens == "words" else "b"]
    out, said = through(model, Ask(Wish()), "".join(f"{line}\n" for line in lines).encode())
    assert [line.removeprefix("warning: ") for line in said] == told
    assert out == [answer.text for answer in model.stream([lines], wish=Wish())]


def test_only_the_first_of_many_strangers_are_told(model: Trained) -> None:
    given = "".join(f"a{chr(0x3B1 + line % 24)}\n" for line in range(500)).encode()
    _, told = through(model, Ask(Wish()), given)
    assert told == ["warning: 500 lines have characters that the model never learnt (the first is line 1): "
                    '"α", "β", "γ", "δ", "ε", …']  # fmt: skip
    assert through(model, Ask(Wish()), b"ab\ncz\n")[1] == [
        'warning: line 2 has characters that the model never learnt: "z"'
    ]


def test_columns_are_parted_by_a_tab_which_is_shown_once() -> None:
    c = config.resolve("rnn-attention", None, ["encoder.width=8", "decoder.width=8", 'data.source=["lemma", "tags"]',
                                               "data.target=form"])  # fmt: skip
    model = made_model(c, [Example(("walk", "V;PST"), "walked", 1)], [False, True])
    out, told = through(model, Ask(Wish()), b"walk V;PST\nwalk\tV;PST\nwalk\nwalk\tV;FUT\n")
    assert (out[0], out[2]) == ("", "")
    assert told == [
        "warning: line 1: expected 2 columns, found 1; a tab parts them, as in: printf 'lemma\\ttags\\n' | regard run "
        "MODEL; left empty",
        "warning: line 3: expected 2 columns, found 1; left empty",
        'warning: line 4 has characters or tags that the model never learnt: "FUT"',
    ]


def test_a_token_a_line_has_a_label_a_line() -> None:
    """A sentence is answered at its blank line, however its lines come; comments and blank lines stay."""
    model = reader("tag", "O N")
    ask = Ask(Wish(), Layout("conll"))
    given = b"\n# a comment of several words\nthe DT\ncat NN\n\n\nsat VB"
    out, told = through(model, ask, given)
    kept = [line.rpartition(" ")[0] if line and line[0] != "#" else line for line in out]
    assert "\n".join(kept).encode() == given
    assert {line.split()[2] for line in out if line and line[0] != "#"} <= {"O", "N"}
    assert told == []
    labels = [line.split()[2] for line in out[2:4]]
    assert labels == model("the cat").split()
    out, _ = through(model, Ask(Wish(), Layout("conll", ("2",))), b"1\tthe\n2\tNew York\n")
    assert [line.split("\t")[:2] for line in out] == [["1", "the"], ["2", "New York"]]
    assert all(line.split("\t")[2] in ("O", "N") for line in out)
    out, _ = through(model, Ask(Wish(), Layout("conll"), as_json=True), b"the\ncat\n\nsat\n")
    assert [len(json.loads(line)["tokens"]) for line in out if line] == [2, 1]
    out, told = through(model, Ask(Wish(), Layout("conll", ("2",))), b"the\tO\ncat\n\n")
    assert out == ["the\tO\t", "cat\t", ""]
    assert "line 1: expected a token in column 2 of each line" in told[0]


def test_a_token_a_line_is_for_labels_of_tokens(model: Trained) -> None:
    with pytest.raises(UsageError, match="--format conll has a label for each token, and the task is transduce"):
        through(model, Ask(Wish(), Layout("conll")), b"a\n")
    with pytest.raises(UsageError, match="there is one column of tokens; name it by its number"):
        through(reader("tag", "O"), Ask(Wish(), Layout("conll", ("word",))), b"a\n")
