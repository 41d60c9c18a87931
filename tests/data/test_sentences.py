"""Files with a token and its labels on each line: which are such, what is read of them, and what is wrong with them."""

from collections.abc import Callable

import pytest

from regard.data.guess import guess
from regard.data.read import Columns, read
from regard.data.sentences import Shape, shape_of
from regard.errors import DataError

Write = Callable[[str, str], str]
TAGGED = Columns(tagged=True)

NEWS = """-DOCSTART- -X- O O

U.N. NNP I-NP I-ORG
official NN I-NP O
heads VBZ I-VP O

Peter NNP I-NP I-PER
Blackburn NNP I-NP I-PER
rests VBZ I-VP O
"""
UNIVERSAL = """# sent_id = 1
# text = Don't go
1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tDo\tdo\tAUX\tVB\t_\t3\taux\t_\t_
2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t_\t_
3\tgo\tgo\tVERB\tVB\t_\t0\troot\t_\t_

# sent_id = 2
1\tthey\tthey\tPRON\tPRP\t_\t2\tnsubj\t_\t_
2\twill\twill\tAUX\tMD\t_\t0\troot\t_\t_
2.1\tgo\tgo\tVERB\tVB\t_\t_\t_\t_\t_
3\tsee\tsee\tVERB\tVB\t_\t0\troot\t_\t_
4\tus\twe\tPRON\tPRP\t_\t3\tobj\t_\t_
5\ttoo\ttoo\tVERB\tRB\t_\t3\tobj\t_\t_
"""
WORDS = ["please", "wake", "me", "at", "ten\u00a0to", "six"]
SLOTS = "".join(f"{word}\t{label}\n" for word, label in zip(WORDS, "OOOOBI", strict=True))


def pairs(path: str, columns: Columns = TAGGED) -> list[tuple[str, str | None, int]]:
    return [(example.source[0], example.target, example.line) for example in read(path, columns).examples]


@pytest.mark.parametrize("name", ["x.conll", "x.txt", "x.tsv", "x"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_columns_with_spaces(write: Write, name: str, end: str) -> None:
    path = write(name, NEWS.replace("\n", end))
    assert pairs(path) == [("U.N. official heads", "I-ORG O O", 3), ("Peter Blackburn rests", "I-PER I-PER O", 7)]
    assert pairs(path, Columns(("1",), "2", tagged=True))[0][1] == "NNP NN VBZ"
    found = guess(path)
    assert found.task == "tag"
    assert "a token and its label on each line" in found.why[0]
    assert "--source 1 --target 4, of 4" in found.why[1]
    assert any("2 sentences" in note for note in read(path, TAGGED).notes)


def test_universal_dependencies(write: Write) -> None:
    path = write("x.conllu", UNIVERSAL)
    assert pairs(path)[0] == ("Do n't go", "AUX PART VERB", 1)
    assert pairs(path)[1][0] == "they will see us too"


def test_a_space_in_a_token_parts_nothing(write: Write) -> None:
    path = write("x.tsv", (SLOTS + "\n") * 3 + "in\tO\nNew York\tB\nnow\tO\n" + "\nit\tO\nis\tO\nhere\tO\n" * 20)
    assert ("in New\u00a0York now", "O B O", 22) in pairs(path)


@pytest.mark.parametrize(
    "text",
    [
        "hund\tdog\nkatze\tcat\n\nkuh\tcow\nhuhn\then\n",  # as many kinds as words
        "Anna\tf\nMaria\tf\nEva\tf\n\nOtto\tm\nHans\tm\nEmil\tm\n",  # one label in each group
        "a good film\tyes\na bad film\tno\n\nfine work\tyes\nso so so\tno\n" * 3,  # texts, no tokens
        "".join(f"name{i}\t{i % 2}\n" for i in range(200)) + "\n" + "".join(f"nome{i}\t{i % 2}\n" for i in range(200)),
        "one\ttwo\n",
        "",
        "a b\n\n",
    ],
)
def test_what_is_none(text: str) -> None:
    assert shape_of(text.split("\n")) is None


def test_few_words_of_nearly_as_many_kinds() -> None:
    lines = "the DT,cat NN,sat VB,,a DT,dog NN,ran VB,off RP,".split(",")  # noqa: SIM905
    assert shape_of(lines * 5) == Shape(2, False, 0, 1)


def test_another_task_reads_the_lines_as_they_are(write: Write) -> None:
    path = write("x.tsv", (SLOTS + "\n") * 20)
    assert shape_of((SLOTS + "\n").split("\n") * 3) == Shape(2, True, 0, 1)
    assert guess(path).task == "tag"
    assert guess(path, task="transduce").task == "transduce"
    assert len(read(path).examples) == 120
    assert len(read(path, guess(path).asked(Columns())).examples) == 20


def test_a_line_without_its_label_is_named(write: Write) -> None:
    path = write("x.conll", NEWS.replace("Blackburn NNP I-NP I-PER", "Blackburn") + ("\n" + NEWS) * 20)
    with pytest.raises(
        DataError, match=r"x\.conll:8: expected 4 columns, a token and its label, found 1: \"Blackburn\""
    ):
        read(path, TAGGED)
    assert len(read(path, TAGGED, skip_bad=True).examples) == 41
