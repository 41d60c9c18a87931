"""A folder with train.tsv and valid.tsv in, the same corpus as ids and as words out, for every system to read.

It is cut once, by regard's own tokenizer as regard itself would do it, so that all train on the same tokens.
"""

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from bench.peers.corpus import Corpus, Pair, words
from bench.peers.ours import TOKENS
from regard import config
from regard.data.read import Example, read
from regard.data.tokens import END, PAD, SPECIALS, START
from regard.data.vocabulary import Vocabulary, learn
from regard.errors import MissingError

DATA = Path(__file__).resolve().parent.parent.parent / "shared" / "data" / "multi30k-en-de"
PARTS = ("train", "valid")


def check(data: Path) -> None:
    """The files must be there; they are not ours to bring along."""
    for part in PARTS:
        if not (data / f"{part}.tsv").is_file():
            raise MissingError(f"{data / part}.tsv: no such file; expected Multi30k en-de as two columns, lower-cased\n"
                               "name the folder that holds train.tsv and valid.tsv with --data")  # fmt: skip


def write(data: Path, folder: Path) -> Corpus:
    """All files of the corpus into `folder`, beside the texts themselves; gives the training part."""
    texts = {part: read(str(data / f"{part}.tsv")).examples for part in PARTS}
    vocabulary = learn(texts["train"], config.resolve("transformer", None, list(TOKENS)), [False])
    found = {part: encoded(examples, vocabulary) for part, examples in texts.items()}
    for part, pairs in found.items():
        shutil.copy(data / f"{part}.tsv", folder)
        (folder / f"{part}.source").write_text(lines(source for source, _ in pairs), encoding="utf-8")
        (folder / f"{part}.target").write_text(lines(target for _, target in pairs), encoding="utf-8")
    pieces = range(len(SPECIALS), vocabulary.target.size)
    (folder / "vocabulary.txt").write_text(lines([piece] for piece in pieces), encoding="utf-8")
    corpus = Corpus(vocabulary.target.size, PAD, START, END, found["train"])
    corpus.save(folder / "train.json")
    return corpus


def encoded(examples: Sequence[Example], vocabulary: Vocabulary) -> list[Pair]:
    sources = (list(vocabulary.encode_source(example.source).ids) for example in examples)
    targets = (list(vocabulary.target.encode(example.target or "").ids) for example in examples)
    return list(zip(sources, targets, strict=True))


def lines(rows: Iterable[Sequence[int]]) -> str:
    return "".join(f"{words(row)}\n" for row in rows)
