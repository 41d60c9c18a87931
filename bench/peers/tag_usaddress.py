"""Two tagged files in, how many test tokens usaddress labels right out: as shipped, and trained on the first file.

Runs in the environment of the peer. Its features are its own; the trainer is the library that its makers use, with
their settings (parserator: L1 0.1, L2 0.01, no frequency limit).
"""

import json
import sys
import tempfile
from pathlib import Path

import pycrfsuite
import usaddress

Rows = list[tuple[list[str], list[str]]]


def rows(path: str) -> Rows:
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    pairs = [line.split("\t") for line in lines]
    return [(pair[0].split(" "), pair[1].split(" ")) for pair in pairs]


def right(tagger: pycrfsuite.Tagger, test: Rows) -> list[int]:
    """Right tokens of each line."""
    found = [tagger.tag(usaddress.tokens2features(tokens)) for tokens, _ in test]
    return [sum(a == b for a, b in zip(given, true, strict=True)) for given, (_, true) in zip(found, test, strict=True)]


def trained(train: Rows, place: str) -> pycrfsuite.Tagger:
    trainer = pycrfsuite.Trainer(verbose=False, params={"c1": 0.1, "c2": 0.01, "feature.minfreq": 0})
    for tokens, labels in train:
        trainer.append(usaddress.tokens2features(tokens), labels)
    trainer.train(place)
    tagger = pycrfsuite.Tagger()
    tagger.open(place)
    return tagger


def main() -> None:
    train, test = rows(sys.argv[1]), rows(sys.argv[2])
    count = sum(len(tokens) for tokens, _ in test)
    with tempfile.NamedTemporaryFile() as file:
        own = right(trained(train, file.name), test)
    found = {"shipped": sum(right(usaddress.TAGGER, test)), "trained": sum(own), "tokens": count}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
