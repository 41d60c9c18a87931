"""The command that measures training, with the two systems that need no peer, on made-up sentences."""

import random
import subprocess
import sys
from pathlib import Path

import pytest

import regard
from bench import interleave, tokenised, train
from bench.interleave import Lost, Order, System, measure
from bench.peers import corpus, environments, ours
from bench.peers.environments import NotInstalled
from bench.peers.gate import Job
from bench.peers.sizes import SIZES

ROOT = Path(__file__).resolve().parent.parent.parent
SMALL = ("--rounds", "1", "--updates", "2", "--seconds", "0", "--warm-up", "1", "--tokens", "128", "--threads", "1")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few sentences and the same backwards."""
    folder = tmp_path_factory.mktemp("data")
    draw = random.Random(0)
    for part, count in (("train", 60), ("valid", 6)):
        rows = [[draw.choice(["man", "dog", "boat", "red", "street"]) for _ in range(draw.randint(2, 9))]
                for _ in range(count)]  # fmt: skip
        text = "".join(f"{' '.join(row)}\t{' '.join(row[::-1])}\n" for row in rows)
        (folder / f"{part}.tsv").write_text(text, encoding="utf-8")
    return folder


def test_one_round_of_two_systems(data: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- train tiny -->\n<!-- /train tiny -->\n", encoding="utf-8")
    words = ["--data", str(data), "--sizes", "tiny", "--systems", "regard,torch", "--page", str(page), *SMALL]
    done = subprocess.run([sys.executable, "-m", "bench.train", *words], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = {line.split("|")[1].strip(): line.split("|") for line in done.stdout.splitlines() if line.startswith("| ")}
    for name in ("regard", "nn.Transformer loop"):
        assert float(rows[name][2].replace(",", "")) > 0
        assert rows[name][5].strip().endswith("%")
        assert float(rows[name][7].replace(",", "")) > 0
    assert "not measured" in done.stdout  # there is nobody to compare with
    assert "1 rounds of at least 2 updates" in page.read_text(encoding="utf-8")


def test_data_that_are_not_there_are_named(tmp_path: Path) -> None:
    words = ["--data", str(tmp_path), "--page", "none"]
    done = subprocess.run([sys.executable, "-m", "bench.train", *words], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 66
    assert str(tmp_path / "train.tsv") in done.stderr
    assert "--data" in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 3


def test_all_read_the_tokens_that_regard_would_make(data: Path, tmp_path: Path) -> None:
    made = tokenised.write(data, tmp_path)
    settings = [*ours.words(Job("", "tiny", 1, 64, 0)), "train.steps=1", "train.validate_examples=1"]
    model = regard.train(data / "train.tsv", data / "valid.tsv", preset="transformer", settings=settings)
    texts = [line.split("\t") for line in (data / "train.tsv").read_text(encoding="utf-8").splitlines()]
    expected = [tuple(list(model.vocabulary.target.encode(side).ids) for side in text) for text in texts]
    assert made.pairs == expected
    assert made.size == model.vocabulary.target.size
    lines = (tmp_path / "train.target").read_text(encoding="utf-8").splitlines()
    assert lines == [corpus.words(target) for _, target in made.pairs]
    known = (tmp_path / "vocabulary.txt").read_text(encoding="utf-8").split()
    assert {word for line in lines for word in line.split()} <= set(known)


def test_who_can_not_be_had_or_fails_does_not_stop_the_others(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(name: str) -> Path:
        raise NotInstalled(f"no {name} here")

    monkeypatch.setattr(environments, "interpreter", refuse)
    systems = [System("peer", "marian", "transformers"), System("broken", "no_such_worker"), System("product", "limit")]
    peer, broken, product = measure(systems, Job(str(tmp_path), "tiny", 1, 64, 0), 2, Order(1, 0), Order(1, 0))
    assert peer.failed == "not installed: no transformers here"
    assert broken.failed.startswith("failed: ")
    assert "no_such_worker" in broken.failed
    assert len(product.slices) == 2
    assert product.slices[0].rate > 0


def test_who_is_lost_on_the_way_keeps_its_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    class Weary:
        def train(self, order: Order) -> interleave.Slice:
            raise Lost("tired")

    one = interleave.Measured(System("weary", "plain"))
    workers: dict[int, interleave.Worker] = {0: Weary()}  # type: ignore[dict-item]
    interleave.step(one, 0, workers, Order(1, 0))
    assert one.failed == "failed: tired"
    assert workers == {}


def test_regard_runs_in_fp32_as_well_where_it_would_choose_bf16() -> None:
    names = list(train.SYSTEMS)
    chosen = train.systems(names, "tiny")
    ours = [each for each in chosen if each.module == "ours"]
    assert [(each.precision, each.beside) for each in ours] == [("auto", ""), ("fp32", "bf16")]
    always = [each.name for each in chosen if not each.beside]
    assert always == ["fp32 product", "regard", "HF Marian loop", "nn.Transformer loop", "eole", "JoeyNMT"]
    assert [each.name for each in train.systems(names, "gru") if not each.beside] == [
        "fp32 product",
        "regard",
        "JoeyNMT",
    ]
    assert "regard, fp32" not in [each.name for each in train.systems(["torch"], "tiny")]


@pytest.mark.parametrize(
    ("numbers", "expected"), [("fp32", ["regard"]), ("bf16", ["regard", "regard, fp32", "bf16 product"])]
)
def test_who_stands_beside_bf16_waits_for_it(
    numbers: str, expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pretend(one: interleave.Measured, *_: object) -> None:
        one.facts = {"precision": numbers}

    monkeypatch.setattr(interleave, "start", pretend)
    chosen = train.systems(["regard"], "tiny")[1:]
    found = measure(chosen, Job(str(tmp_path), "tiny", 1, 64, 0), 1, Order(1, 0), Order(1, 0))
    assert [one.system.name for one in found] == expected


@pytest.mark.parametrize(("cpu", "warned"), [(1.9, False), (1.4, True)])
def test_a_machine_that_was_shared_is_told(cpu: float, warned: bool) -> None:
    quiet, noisy = (interleave.Slice(1.0, busy, 1, 10, 0, 0, 100.0) for busy in (2.0, cpu))
    product = interleave.Measured(System("product", "limit"), {}, [quiet, noisy])
    assert ("Somebody else" in train.disturbed([product], threads=2)) == warned


def test_every_model_and_every_mark_is_there() -> None:
    page = train.PAGE.read_text(encoding="utf-8")
    for size in SIZES:
        assert page.count(f"<!-- train {size} -->\n") == page.count(f"<!-- /train {size} -->") == 1
        assert all(aim.verdict == "not measured" for aim in train.aims(size, []))


def test_peers_are_pinned() -> None:
    for system in train.SYSTEMS.values():
        if system.peer is not None:
            pins = (ROOT / "bench" / "peers" / f"{system.peer}.txt").read_text(encoding="utf-8").splitlines()
            names = [line for line in pins if not line.startswith("#")]
            assert "torch==2.13.0" in names
            assert all("==" in line and "/" not in line for line in names)
            assert any(line.startswith(f"{system.peer}==") for line in names)
