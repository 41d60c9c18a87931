"""The learning curve with and without a body: its file, its table, and that a finished run is not run again."""

import argparse
import sys
from pathlib import Path

import pytest

from bench.tasks import transfer
from bench.tasks.transfer import BODY, SCRATCH, SETS, Labelled, Outcome, Run


def line(variant: str, seed: int, right: list[int], share: float = 0.1) -> Outcome:
    value = 100 * sum(right) / len(right)
    return Outcome("names", share, variant, seed, 10, 20, 5, value, value, transfer.packed(right), 1.5)


def test_counts_survive_the_packing() -> None:
    counts = [0, 1, 300, 7]
    assert transfer.unpacked(transfer.packed(counts)).tolist() == counts


def test_a_line_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "lines.csv"
    assert transfer.lines_of(path) == []
    found = [line(SCRATCH, 0, [1, 0]), line(BODY, 0, [1, 1])]
    for each in found:
        transfer.append(path, each)
    assert transfer.lines_of(path) == found
    assert found[0].run == Run("names", 0.1, SCRATCH, 0, 10, 20)


def test_the_table_pairs_the_seeds_that_both_have() -> None:
    better, worse = [1] * 90 + [0] * 10, [1] * 60 + [0] * 40
    found = [line(SCRATCH, 0, worse), line(BODY, 0, better), line(SCRATCH, 1, worse), line(BODY, 1, better)]
    text = transfer.table([*found, line(SCRATCH, 2, [1] * 100), line(SCRATCH, 0, worse, 0.3)], {"names": [1] * 100})
    assert len(text) == 3  # one pair is not there yet
    assert text[2].startswith("| names | 10 % | 5 | 73.33 ± 23.09 | 90.00 ± 0.00 | +30.00 (+")
    assert text[2].endswith("| 0.001 |")


def test_no_difference_is_seen_where_there_is_none() -> None:
    found = transfer.paired([line(SCRATCH, 0, [1, 0] * 50), line(BODY, 0, [0, 1] * 50)], [1] * 100)
    assert found is not None
    assert found.difference == 0
    assert found.p_value > 0.5


def test_labels_are_counted_whole_or_token_by_token(tmp_path: Path) -> None:
    (tmp_path / "test.tsv").write_text("a b\tX Y\nc\tZ\n", encoding="utf-8")
    assert transfer.rights(tmp_path / "test.tsv", Labelled("", "tag", 2, "words"), ["X X", "Z"]) == [1, 1]
    assert transfer.rights(tmp_path / "test.tsv", Labelled("", "classify", 2, "words"), ["X X", "Z"]) == [0, 1]


def test_a_share_is_drawn_by_its_seed(tmp_path: Path) -> None:
    (tmp_path / "all.tsv").write_text("".join(f"{number}\tx\n" for number in range(100)), encoding="utf-8")
    drawn = []
    for seed in (0, 0, 1):
        assert transfer.drawn(tmp_path / "all.tsv", 0.1, seed, tmp_path / "share.tsv") == 10
        drawn.append((tmp_path / "share.tsv").read_text(encoding="utf-8"))
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_finished_run_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, ran = tmp_path / "lines.csv", list[Run]()
    for part in ("train", "valid", "test"):
        (tmp_path / "names").mkdir(exist_ok=True)
        (tmp_path / "names" / f"{part}.tsv").write_text("a\tx\nb\ty\n", encoding="utf-8")
    transfer.append(path, line(SCRATCH, 0, [1, 0]))

    def pretend(run: Run, asked: argparse.Namespace) -> None:
        ran.append(run)
        transfer.append(asked.lines, line(run.variant, run.seed, [1, 1]))

    monkeypatch.setattr(transfer, "run_apart", pretend)
    words = ["--data", str(tmp_path), "--sets", "names", "--shares", "0.1", "--seeds", "0", "--steps", "10",
             "--body-steps", "20", "--lines", str(path), "--page", "none"]  # fmt: skip
    monkeypatch.setattr(sys, "argv", ["transfer", *words])
    transfer.main()
    assert ran == [Run("names", 0.1, BODY, 0, 10, 20)]


def test_data_that_are_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["transfer", "--data", str(tmp_path)])
    with pytest.raises(SystemExit) as caught:
        transfer.main()
    assert caught.value.code == 66
    assert "no such file; name the folder of data sets with --data" in capfd.readouterr().err


def test_one_run_of_each_kind(tmp_path: Path) -> None:
    folder = tmp_path / SETS["names"].folder
    folder.mkdir()
    for part, count in (("train", 40), ("valid", 8), ("test", 8)):
        text = "".join(f"{'ab' * (i % 3 + 1)}{i}\t{'even' if i % 2 else 'odd'}\n" for i in range(count))
        (folder / f"{part}.tsv").write_text(text, encoding="utf-8")
    for variant in (SCRATCH, BODY):
        found = transfer.trained(Run("names", 0.5, variant, 0, 2, 2), tmp_path, tmp_path / "cache")
        assert found.examples == 20
        assert 0 <= found.test <= 100
        assert transfer.unpacked(found.right).sum() == round(found.test * 8 / 100)
