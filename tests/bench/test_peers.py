"""What all workers share: the corpus they read, and the gate that lets them train in slices."""

import json
import sys
from io import StringIO
from itertools import islice
from pathlib import Path

import pytest

from bench.interleave import turned
from bench.page import put
from bench.peers import corpus, gate
from bench.peers.corpus import Corpus
from bench.peers.gate import Counts, Gate, Job
from regard.errors import UsageError

TEXT = Corpus(60, 0, 1, 2, [([5] * (n % 7 + 1), [n + 3] * (n % 11 + 1)) for n in range(50)])


def test_a_corpus_is_read_as_it_was_saved(tmp_path: Path) -> None:
    TEXT.save(tmp_path / "train.json")
    assert corpus.load(str(tmp_path)) == TEXT
    assert corpus.words([3, 17]) == "p3 p17"


def test_an_epoch_holds_every_example_once_and_no_batch_is_too_large() -> None:
    count = len(corpus.cut(sorted(TEXT.pairs, key=lambda pair: max(map(len, pair))), 40))
    batches = list(islice(corpus.batches(TEXT, 40, seed=1), count))
    seen = [int(row[1]) for batch in batches for row in batch.target_BT]
    assert sorted(seen) == sorted(target[0] for _, target in TEXT.pairs)
    assert all(max(batch.source_BS.numel(), batch.label_BT.numel()) <= 40 for batch in batches)
    assert sum(batch.counts.target for batch in batches) == sum(len(target) + 1 for _, target in TEXT.pairs)
    assert sum(batch.counts.source for batch in batches) == sum(len(source) + 1 for source, _ in TEXT.pairs)


def test_what_is_fed_is_what_is_predicted_one_place_later() -> None:
    batch = corpus.collate(TEXT, [([5, 6], [7, 8, 9]), ([5], [7])])
    assert batch.source_BS.tolist() == [[5, 6, 2], [5, 2, 0]]
    assert batch.target_BT.tolist() == [[1, 7, 8, 9], [1, 7, 0, 0]]
    assert batch.label_BT.tolist() == [[7, 8, 9, 2], [7, 2, 0, 0]]
    assert batch.counts == Counts(target=6, source=5, places=14)


def test_the_gate_answers_when_a_slice_is_over_and_ends_without_an_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os._exit", sys.exit)
    answers = StringIO()
    door = Gate(StringIO('{"updates": 2, "seconds": 0}\n{"updates": 1, "seconds": 0}\n'), answers, {"version": "9"})
    for tokens in (10, 20, 30):
        door.update(Counts(tokens, 2 * tokens, 4 * tokens))
    with pytest.raises(SystemExit, match="0"):
        door.update(Counts(40, 80, 160))
    ready, first, second = (json.loads(line) for line in answers.getvalue().splitlines())
    assert ready["ready"]["version"] == "9"
    assert (first["updates"], first["target"], first["source"], first["places"]) == (2, 30, 60, 120)
    assert (second["updates"], second["target"]) == (1, 30)
    assert second["peak"] >= ready["ready"]["before"] * 0.5


def test_a_slice_lasts_as_long_as_it_was_told(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(100))
    monkeypatch.setattr("time.perf_counter", lambda: float(next(clock)))
    answers = StringIO()
    door = Gate(StringIO('{"updates": 1, "seconds": 3}\n{"updates": 1, "seconds": 0}\n'), answers, {})
    for _ in range(4):
        door.update(Counts(1, 1, 2))
    assert json.loads(answers.getvalue().splitlines()[1])["updates"] == 3


def test_a_job_survives_the_command_line() -> None:
    job = Job("folder with a space", "tiny", 2, 4096, 0, "auto")
    assert Job(**json.loads(gate.argument(job))) == job


def test_every_round_begins_with_another() -> None:
    assert [next(turned([3, 5, 8], turn)) for turn in range(4)] == [3, 5, 8, 3]
    assert list(turned([3, 5, 8], 1)) == [5, 8, 3]
    assert list(turned([], 2)) == []


def test_a_table_takes_the_place_between_its_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- x y -->\nold\n<!-- /x y -->\nb\n", encoding="utf-8")
    put(page, "x y", "new")
    put(page, "x y", "newer\nlines")
    assert page.read_text(encoding="utf-8") == "a\n<!-- x y -->\nnewer\nlines\n<!-- /x y -->\nb\n"
    with pytest.raises(UsageError, match="<!-- other -->"):
        put(page, "other", "new")
