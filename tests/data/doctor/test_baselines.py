"""What can be had without learning, on files where that is known."""

import pytest

from regard.data.doctor.baselines import Baselines, baselines, divided
from regard.data.doctor.neighbours import Neighbours
from regard.data.read import Example
from tests.data.doctor.rows import sight


def scores(found: Baselines | None) -> dict[str, dict[str, float]]:
    assert found is not None
    return {rule.name: dict(rule.scores) for rule in found.rules}


def test_copying_what_is_copied() -> None:
    found = scores(baselines(sight([(f"word{i}", f"word{i}") for i in range(300)])))
    assert found["copy the input"]["exact"] == 100.0
    assert found["most frequent output"]["exact"] == 0.0
    assert found["nearest neighbour"]["exact"] == 0.0


@pytest.mark.parametrize(("names", "named"), [((), "2"), (("tags", "lemma"), "lemma")])
def test_of_several_columns_the_best_is_copied(names: tuple[str, ...], named: str) -> None:
    found = scores(baselines(sight([("V;NFIN", f"word{i}", f"word{i}") for i in range(300)]), names=names))
    assert found[f"copy the input, column {named}"]["exact"] == 100.0


def test_what_is_always_the_same() -> None:
    assert scores(baselines(sight([(f"word{i}", "yes") for i in range(300)])))["most frequent output"]["exact"] == 100.0


def test_labels() -> None:
    rows = [(f"red apple number {i}", "fruit") for i in range(150)] + [
        ("fast car " + "type" * i, "car") for i in range(50)
    ]
    found = scores(baselines(sight(rows, "classify")))
    assert set(found) == {"majority", "nearest neighbour"}
    assert found["nearest neighbour"]["accuracy"] == 100.0
    assert 50 < found["majority"]["accuracy"] < 100


def test_labels_of_tokens() -> None:
    rows = [(f"the dog number{i}", "DET NOUN NUM") for i in range(100)]
    found = scores(baselines(sight(rows, "tag")))
    assert found["most frequent label of the token"]["accuracy"] == pytest.approx(100.0, abs=34)
    assert found["most frequent label of the token"]["accuracy"] >= 66
    spans = scores(baselines(sight([(f"play song{i}", "O B-song") for i in range(100)], "tag")))
    assert spans["most frequent label"] == {"f1": 0.0, "accuracy": 50.0}


def test_a_second_file_is_what_is_asked_about() -> None:
    found = baselines(sight([("a", "x"), ("b", "x")]), sight([("c", "x"), ("d", "y")]))
    assert found is not None
    assert (found.held, found.of, found.known) == (2, 2, 2)
    assert scores(found)["most frequent output"]["exact"] == 50.0


def test_it_holds_out_what_training_holds_out() -> None:
    known, held = divided([Example((f"s{i % 100}",), "t", i) for i in range(200)])
    assert not {example.source for example in known} & {example.source for example in held}
    assert len({example.source for example in held}) == 20


def test_what_was_sampled_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.data.doctor.baselines.ASKED", 10)
    monkeypatch.setattr("regard.data.doctor.baselines.SEARCHED", 30)
    found = baselines(sight([(f"word{i}", "x") for i in range(300)]))
    assert found is not None
    assert (found.held, found.of, found.searched, found.known) == (10, 60, 30, 240)


@pytest.mark.parametrize("task", ["generate", "fill", "embed"])
def test_tasks_without(task: str) -> None:
    assert baselines(sight([("a", "b"), ("c", "d")], task)) is None


def test_too_few_to_hold_out() -> None:
    assert baselines(sight([("a", "b")])) is None
    assert baselines(sight([])) is None


def test_the_nearest_is_the_nearest() -> None:
    memory = Neighbours(["the cat sat", "a dog ran away", "", "the cat sat down"])
    assert memory.nearest("the cat sat").number == 0
    assert memory.nearest("the cat sat").cosine == pytest.approx(1.0)
    assert memory.nearest("the dog ran").number == 1
    assert 0 < memory.nearest("a cat sat").cosine < 1
    assert Neighbours(["x"]).nearest("entirely else").cosine == 0.0
