"""Before the loop: what is held out, what is left out and told, what is refused."""

from collections.abc import Callable
from pathlib import Path

import pytest

from regard import config
from regard.data import builtin
from regard.data.division import FEWEST, HELD_OUT, MOST, Division, rank
from regard.data.read import Example
from regard.data.spool import spool
from regard.errors import ConfigError, DataError
from regard.training.prepare import Prepared, held_out, prepare, split

pytestmark = pytest.mark.no_shapes  # there are none here, and the watch is slow

Write = Callable[..., str]
Prepare = Callable[..., Prepared]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(text: str, name: str = "pairs.tsv") -> str:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return str(tmp_path / name)

    return write


@pytest.fixture
def prepared(tmp_path: Path) -> Prepare:
    def make(path: str, *words: str, valid: str | None = None, preset: str = "rnn") -> Prepared:
        return prepare(config.resolve(preset, None, list(words)), path, valid, tmp_path / "store")

    return make


def sources(found: Prepared) -> list[str]:
    """What is trained on, as text."""
    return [found.vocabulary.source.decode(item.source) for item in found.train.items]


def rows(count: int, first: int = 0) -> str:
    return "".join(f"s{i}\tt{i}\n" for i in range(first, first + count))


# ── the split ────────────────────────────────────────────────────────────────────────────────────────────────────────


def halves(examples: list[Example], folder: Path) -> tuple[list[Example], list[Example]]:
    """The examples of a file, split."""
    (folder / "x.tsv").write_text("".join(f"{e.source[0]}\t{e.target}\n" for e in examples), encoding="utf-8")
    division = Division()
    table = spool(str(folder / "x.tsv"), folder / "spool", watch=division.add)
    train, valid, _ = split(table, division)
    assert (len(train), len(valid)) == (len(list(train)), len(list(valid)))
    return list(train), list(valid)


@pytest.mark.parametrize("distinct", [2, 3, 10, 200, 3000, 19_999, 20_000, 30_000])
def test_the_smallest_by_hash_are_held_out_and_no_source_stands_on_both_sides(distinct: int, tmp_path: Path) -> None:
    examples = [Example((f"s{i % distinct}",), f"t{i}", i + 1) for i in range(distinct + distinct // 2)]
    kept, held = halves(examples, tmp_path)
    assert not {e.source for e in kept} & {e.source for e in held}
    assert sorted([*kept, *held], key=lambda e: e.line) == examples
    sources = {e.source for e in held}
    assert 1 <= len(sources) <= max(1, distinct // 5)
    assert len(sources) == min(max(int(HELD_OUT * distinct), FEWEST), MOST, max(1, distinct // 5))
    assert sources == set(sorted({e.source for e in examples}, key=rank)[: len(sources)])


def test_a_source_with_most_of_the_examples_is_learnt_from(tmp_path: Path) -> None:
    for heavy in range(10):  # wherever it stands by its hash
        sources = [f"s{heavy}" if i >= 10 else f"s{i}" for i in range(500)]
        kept, held = halves([Example((source,), f"t{i}", i + 1) for i, source in enumerate(sources)], tmp_path)
        assert 1 <= len(held) <= 250
        assert kept


def test_split_depends_on_sources_alone(tmp_path: Path) -> None:
    examples = [Example((f"s{i}",), f"t{i}", i) for i in range(100)]
    others = [Example((f"s{i}",), "another", 100 - i) for i in reversed(range(100))]
    held = [{e.source for e in halves(each, tmp_path)[1]} for each in (examples, others)]
    assert held[0] == held[1]
    assert held[0] != {(f"s{i}",) for i in range(20)}


def test_split_is_told_and_the_tokens_are_learnt_from_the_rest_alone(prepared: Prepare, write: Write) -> None:
    found = prepared(write(rows(50)), "tokens.source=words", "tokens.target=words")
    assert (len(found.train.items), len(found.valid.items)) == (40, 10)
    assert any("10 of 50 examples are held out" in note for note in found.notes)
    known = {found.vocabulary.target.decode(item.target) for item in found.train.items}
    assert {found.vocabulary.target.token(i) for i in range(7, found.vocabulary.target.size)} == known


@pytest.mark.parametrize("text", ["a\tb\n", "a\tb\na\tc\n"])
def test_one_source_is_too_few(prepared: Prepare, write: Write, text: str) -> None:
    with pytest.raises(DataError, match=r"pairs\.tsv: .*1 distinct source.* too few"):
        prepared(write(text))


# ── a validation file ────────────────────────────────────────────────────────────────────────────────────────────────


def test_overlap_is_a_warning(prepared: Prepare, write: Write) -> None:
    train, valid = write(rows(10)), write(rows(6, 7), "valid.tsv")
    notes = prepared(train, valid=valid).notes
    assert f"warning: {valid}: 3 of 6 sources are in the training file too" in notes


def test_no_overlap_no_warning(prepared: Prepare, write: Write) -> None:
    found = prepared(write(rows(10)), valid=write(rows(6, 10), "valid.tsv"))
    assert not any("warning" in note for note in found.notes)
    assert (len(found.train.items), len(found.valid.items)) == (10, 6)


def test_fingerprint_knows_every_example_and_the_split(prepared: Prepare, write: Write) -> None:
    train, valid = write(rows(10)), write(rows(6, 10), "valid.tsv")
    found = prepared(train, valid=valid).data_hash
    assert len(found) == 64
    assert found == prepared(train, valid=valid).data_hash
    assert found != prepared(valid, valid=train).data_hash
    assert found != prepared(write(rows(9) + "s9\tT9\n", "other.tsv"), valid=valid).data_hash


# ── too long ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_over_long_examples_are_left_out_and_counted(prepared: Prepare, write: Write) -> None:
    train = write("abcd\tabcd\nabcde\ta\na\tabcde\nab\tab\n")
    found = prepared(train, "data.max_source=4", "data.max_target=4", valid=write("b\tb\n", "valid.tsv"))
    assert sources(found) == ["abcd", "ab"]
    assert len(found.train.items) == 2
    assert (
        f"warning: {train}: 2 examples left out: longer than data.max_source=4 or data.max_target=4 tokens"
        in found.notes
    )


def test_all_too_long(prepared: Prepare, write: Write) -> None:
    with pytest.raises(DataError, match=r"pairs\.tsv: all 8 examples are longer than data\.max_source=1 or"):
        prepared(write(rows(10)), "data.max_source=1")


# ── columns ──────────────────────────────────────────────────────────────────────────────────────────────────────────

FORMS = "lemma\ttags\tform\n" + "".join(f"w{i}\tV;{i % 3}\tw{i}s\n" for i in range(10))


def test_tags_are_tokens_of_their_own(prepared: Prepare, write: Write) -> None:
    found = prepared(write(FORMS), 'data.source=["lemma","tags"]', "data.target=form", "data.tags=tags")
    assert found.vocabulary.is_tags == (False, True)
    assert set(found.vocabulary.source.tags) == {"0", "1", "2", "V"}


def test_tags_column_that_is_not_read(prepared: Prepare, write: Write) -> None:
    with pytest.raises(ConfigError, match=r"data\.tags: tag is not among the source columns lemma, tags"):
        prepared(write(FORMS), 'data.source=["lemma","tags"]', "data.target=form", "data.tags=tag")


def test_fill_reads_no_target(prepared: Prepare, write: Write) -> None:
    found = prepared(write("".join(f"word {i}\n" for i in range(20)), "lines.txt"), preset="encoder")
    assert all(example.target is None for example in found.valid.examples)
    assert all(item.target == () for item in found.train.items)


# ── pictures ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_pictures_become_arrays(prepared: Prepare, tmp_path: Path) -> None:
    builtin.write("captions", 10, tmp_path / "c.tsv")
    found = prepared(str(tmp_path / "c.tsv"), preset="caption")
    assert all(item.picture is not None and item.picture.shape == (3, 32, 32) for item in found.train.items)


@pytest.mark.parametrize(
    ("reference", "found"),
    [("none.png", "no such file"), ("c.npz#99", "found 10 rows"), ("../x.png", "leads out of its folder")],
)
def test_image_errors_name_file_and_line(prepared: Prepare, tmp_path: Path, reference: str, found: str) -> None:
    builtin.write("captions", 10, tmp_path / "c.tsv")
    lines = (tmp_path / "c.tsv").read_text(encoding="utf-8").splitlines()
    lines[4] = f"{reference}\ta red circle"
    (tmp_path / "c.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(DataError) as caught:
        prepared(str(tmp_path / "c.tsv"), preset="caption", valid=str(tmp_path / "c.tsv"))
    assert str(caught.value).startswith(f"{tmp_path / 'c.tsv'}:5: image")
    assert found in str(caught.value)


def test_other_bad_lines_are_named_beside_the_first(prepared: Prepare, tmp_path: Path) -> None:
    lines = [f"gone-{number}.png\ta red circle {number}" for number in range(20)]
    (tmp_path / "c.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(DataError) as caught:
        prepared(str(tmp_path / "c.tsv"), preset="caption", valid=str(tmp_path / "c.tsv"))
    first, second = str(caught.value).splitlines()
    assert first.startswith(f"{tmp_path / 'c.tsv'}:1: image")
    assert second.endswith("nor can lines 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and at least 9 more be used")


# ── tokens that are given, and what is held out read again ───────────────────────────────────────────────────────────


def test_tokens_that_are_given_are_taken_as_they_are(write: Write, prepared: Prepare, tmp_path: Path) -> None:
    given = prepared(write(rows(100))).vocabulary
    other, c = write(rows(100).replace("s", "z"), "other.tsv"), config.resolve("transformer")
    found = prepare(c, other, None, tmp_path / "other-store", given)
    assert found.vocabulary is given
    assert not any("unknown" in note for note in found.notes)
    columns = write("".join(f"a{i}\tb{i}\tc{i}\n" for i in range(30)), "three.tsv")
    c = config.resolve("rnn", None, ["data.source=['1', '2']", "data.target=3"])
    with pytest.raises(ConfigError, match="for 1 source columns, found 2"):
        prepare(c, columns, None, tmp_path / "third-store", given)


def test_what_is_held_out_can_be_read_again(write: Write, prepared: Prepare) -> None:
    path, words = write(rows(300) + f"{'s' * 50}\tt\n" * 3), ("data.max_source=20",)
    made = prepared(path, *words)
    again = held_out(made.config, made.vocabulary, path, None)
    assert again.examples == list(made.valid.examples)
    valid = write(rows(10, 500) + f"{'s' * 50}\tt\n", "valid.tsv")
    assert len(held_out(made.config, made.vocabulary, path, valid).examples) == 10
