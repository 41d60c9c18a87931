"""What fails, made up so that the reason is known."""

import json
import math
import random

import pytest

from regard.data.doctor.failures import Case, Failures, failures, tail
from regard.data.read import Example

LETTERS = "abcdefghij"


def text(draw: random.Random, length: int) -> str:
    return "".join(draw.choices(LETTERS, k=length))


def trained_on(count: int = 300) -> list[Example]:
    draw = random.Random(1)
    return [Example((text(draw, draw.randint(5, 20)),), text(draw, 6), line) for line in range(count)]


def asked(count: int = 200) -> list[Case]:
    """Cases of which one in ten is wrong for no reason."""
    draw = random.Random(2)
    return [Case((text(draw, draw.randint(5, 20)),), text(draw, 6), "x", draw.random() > 0.1) for _ in range(count)]


def found(cases: list[Case], task: str = "transduce", known: list[Example] | None = None) -> Failures:
    made = failures(cases, trained_on() if known is None else known, task)
    assert made is not None
    return made


def raised(made: Failures) -> list[str]:
    return [cause.kind for cause in made.causes if cause.stands_out]


def test_failures_without_a_reason_have_none() -> None:
    made = found(asked())
    assert raised(made) == []
    assert "nothing stands out" in made.said
    assert made.causes  # but they are told


def test_long_sources() -> None:
    cases = [Case(case.source, case.target, "x", case.length <= 16) for case in asked()]
    made = found(cases)
    worst = made.causes[0]
    assert (worst.kind, worst.stands_out) == ("long source", True)
    assert worst.inside.value == worst.inside.low == 0.0
    assert worst.rest.value > 80.0
    assert worst.explains > 0.5
    assert worst.cure
    assert 1 <= len(worst.examples) <= 3
    assert f"{made.failed} of 200 examples fail" in made.said
    assert "the longest" in made.said


@pytest.mark.parametrize(
    ("kind", "source", "target"),
    [
        ("unseen character", "abcdé", "abcdef"),
        ("longer than trained", "ab" * 20, "abcdef"),
        ("unseen output", "abcdef", "abcdeé"),
    ],
)
def test_what_training_never_showed(kind: str, source: str, target: str) -> None:
    cases = asked() + [Case((f"{source}{LETTERS[i % 10]}",), target, "x", False) for i in range(20)]
    assert kind in raised(found(cases))
    assert kind not in raised(found(asked()))


def test_rare_outputs() -> None:
    known = [*trained_on(), *[Example((f"abc{LETTERS[i]}",), "abcdeé", i) for i in range(3)]]
    cases = asked() + [Case((f"bcdefg{LETTERS[i % 10]}",), "abcdeé", "x", False) for i in range(20)]
    assert "rare output" in raised(found(cases, known=known))


def test_unseen_words() -> None:
    draw = random.Random(3)
    words = ["".join(draw.choices(LETTERS, k=4)) for _ in range(30)]
    known = [Example((" ".join(draw.choices(words, k=4)),), "y", line) for line in range(200)]
    cases = [Case((" ".join(draw.choices(words, k=4)),), "y", "y", True) for _ in range(100)]
    odd = [Case((" ".join([*draw.choices(words, k=3), f"é{i:03}"]),), "y", "n", False) for i in range(20)]
    assert "unseen word" in raised(found(cases + odd, known=known))
    assert raised(found(cases, known=known)) == []


def test_far_from_training() -> None:
    known = [Example((f"turn the light {name} on please",), "y", 1) for name in ("red", "blue", "green", "dim")] * 20
    near = [Case((f"turn the light {name} on",), "y", "y", True) for name in ("red", "blue", "green")] * 20
    far = [Case((f"fog jog {LETTERS[i % 7]} log bog cog hog nog",), "y", "n", False) for i in range(20)]
    assert "far from training" in raised(found([*near, *far], known=known))


def test_conflicts() -> None:
    known = [*trained_on(), *[Example((f"{letter}{letter}Ä",), "one", 1) for letter in LETTERS]]
    torn = [Case((f"{letter}{letter}ä",), "two", "one", False) for letter in LETTERS] * 2
    assert "conflict" in raised(found(asked() + torn, known=known))


def test_labels_of_tokens() -> None:
    known = [Example(("the dog runs",), "DET NOUN VERB", 1), Example(("a run",), "DET NOUN", 2),
             Example(("we run",), "PRON VERB", 3)] * 20  # fmt: skip
    sound = [Case(("the dog runs",), "DET NOUN VERB", "DET NOUN VERB", True)] * 30
    new = [Case(("the cat runs",), "DET NOUN VERB", "DET X VERB", False)] * 10
    torn = [Case(("we run",), "PRON VERB", "PRON NOUN", False)] * 10
    made = found([*sound, *new, *torn], "tag", known)
    assert (made.unit, made.judged, made.failed) == ("tokens", 140, 20)
    assert set(raised(made)) >= {"unseen word", "conflict"}
    assert made.causes[0].examples[0][0].startswith(('cat in: "the cat', 'run in: "we run'))


def test_rare_labels() -> None:
    known = [Example((f"text {i}",), "often", i) for i in range(100)] + [Example(("odd",), "seldom", 1)] * 5
    cases = [Case((f"text {i}",), "often", "often", True) for i in range(60)]
    odd = [Case((f"text {i}",), "seldom", "often", False) for i in range(60, 75)]
    made = found([*cases, *odd], "classify", known)
    assert "rare output" in raised(made)
    assert "label" in next(cause.said for cause in made.causes if cause.kind == "rare output")


def test_where_hardly_anything_is_exact_the_least_alike_fail() -> None:
    draw = random.Random(4)
    cases = []
    for _ in range(200):
        source, target = text(draw, draw.randint(5, 20)), text(draw, 12)
        output = target[:-1] + "!" if len(source) < 16 else text(draw, 12)
        cases.append(Case((source,), target, output, False))
    made = found(cases)
    assert "chrF" in made.rule
    assert made.failed == pytest.approx(50, abs=3)
    assert raised(made)[:1] == ["long source"]
    assert "hardly any is exact" in made.said


def test_few_failures_and_few_examples() -> None:
    assert "too few" in found([Case(("a",), "b", "c", False)] * 3 + [Case(("a",), "b", "b", True)] * 30).said
    assert found([Case(("a",), "b", "b", True)] * 30).said == "none of 30 examples fail"
    assert found([Case(("a",), "b", "c", False)] * 30, "extract").said.startswith("all 30 examples fail")
    assert failures([], [], "transduce") is None
    assert failures(asked(), [], "embed") is None


def test_without_the_training_data() -> None:
    cases = asked() + [Case(("abc\ue000def",), "x", "y", False, unknown=True)] * 20
    made = found(cases, known=[])
    assert {cause.kind for cause in made.causes} <= {"long source", "short source", "unknown sign"}
    assert "unknown sign" in raised(made)
    assert "not at hand" in made.left_out


def test_as_json() -> None:
    assert json.loads(json.dumps(found(asked()).as_dict()))["judged"] == 200


def test_the_exact_test() -> None:
    """Fisher's tea: four of four cups, by chance once in seventy."""
    assert tail(4, 4, 4, 8) == pytest.approx(1 / 70)
    assert tail(0, 4, 4, 8) == pytest.approx(1.0)
    assert tail(3, 4, 4, 8) == pytest.approx((1 + 16) / 70)
    assert math.isfinite(tail(900, 1000, 1000, 20_000))
