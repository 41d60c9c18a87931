"""Constraints of a wish, for every kind of tokens: an untrained model that writes nothing but dates."""

import datetime
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from regard import config
from regard.data.builtin import write
from regard.data.read import read
from regard.data.tokens import UNKNOWN
from regard.data.vocabulary import learn
from regard.errors import UsageError
from regard.models.build import build
from regard.models.model import Model
from regard.search.write import Sampling
from regard.tasks.fill import Fill
from regard.tasks.task import Answer, Item, Wish
from regard.tasks.transduce import Transduce

KINDS = ("characters", "bytes", "words", "bpe", "unigram")
DATE = r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
DAY, YEAR = "0[1-9]|1[0-9]|2[0-8]", "000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3}"
# The months with their own lengths; the 29th of February is left out.
CALENDAR = f"({YEAR})-((0[13578]|1[02])-({DAY}|29|30|31)|(0[469]|11)-({DAY}|29|30)|02-({DAY}))"


@dataclass(frozen=True)
class Made:
    """A task, an untrained model for it, and questions."""

    task: Transduce
    model: Model
    items: list[Item]
    targets: list[str]

    def ask(self, wish: Wish, count: int = 8) -> list[Answer]:
        return self.task.answer(self.model, self.items[:count], wish, range(count))

    def texts(self, wish: Wish, count: int = 8) -> list[str]:
        return [answer.text for answer in self.ask(wish, count)]


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Made]:
    path = tmp_path_factory.mktemp("dates") / "dates.tsv"
    write("dates", 200, path)
    examples = read(str(path)).examples
    known: dict[str, Made] = {}

    def made(kind: str) -> Made:
        if kind not in known:
            words = ["encoder.width=16", "decoder.width=16", "tokens.shared=false", "tokens.size=320"]
            c = config.resolve("rnn-attention", None, [*words, f"tokens.target={kind}"])
            vocabulary = learn(examples, c, [False])
            task = Transduce(c, vocabulary)
            model = build(c, vocabulary.source.size, vocabulary.target.size, seed=1).eval()
            items = [task.encode(example, ".") for example in examples]
            known[kind] = Made(task, model, items, [example.target or "" for example in examples])
        return known[kind]

    return made


def is_date(text: str) -> bool:
    try:
        return datetime.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


each_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.mark.no_shapes  # many steps; the next tests watch the same code
@each_kind
def test_every_output_is_a_date(make: Callable[[str], Made], kind: str) -> None:
    """200 outputs of a model that has learnt nothing, greedy, by beam and drawn."""
    made = make(kind)
    assert kind == "words" or not any(re.fullmatch(DATE, text) for text in made.texts(Wish(max_length=10)))
    for pattern in (DATE, CALENDAR):
        for wish in (
            Wish(pattern=pattern),
            Wish(pattern=pattern, beam=5),
            Wish(pattern=pattern, sampling=Sampling(1)),
        ):
            found = made.texts(wish, 200)
            assert len(found) == 200
            assert all(re.fullmatch(pattern, text) for text in found)
            assert pattern is DATE or all(map(is_date, found))


@each_kind
@pytest.mark.parametrize("beam", [1, 4])
def test_every_output_is_one_of_the_choices(make: Callable[[str], Made], kind: str, beam: int) -> None:
    made = make(kind)
    choices = tuple(made.targets[:40])
    found = made.texts(Wish(choices=choices, beam=beam))
    assert set(found) <= set(choices)
    assert made.texts(Wish(choices=choices, beam=beam, batch=3)) == found


@each_kind
def test_every_output_holds_what_is_required(make: Callable[[str], Made], kind: str) -> None:
    made = make(kind)
    required = tuple(made.targets[:2]) if kind == "words" else ("-12", "é", "日")
    for wish in (Wish(required=required, beam=4, max_length=25), Wish(required=required, sampling=Sampling(2))):
        assert all(word in text for text in made.texts(wish) for word in required)
    (first, *_) = made.ask(Wish(required=required, beam=4, n_best=3, max_length=25))
    assert all(word in each.text for each in first.alternatives for word in required)


def test_the_text_of_the_empty_beginning(make: Callable[[str], Made]) -> None:
    """Subwords take one space off at the start; what is asked of the text is asked of what is left."""
    for kind in ("bpe", "unigram"):
        assert set(make(kind).texts(Wish(pattern=" ?20"))) <= {"20", " 20"}
        assert set(make(kind).texts(Wish(pattern=" 20"))) == {" 20"}


def test_words_have_one_space_between_them(make: Callable[[str], Made]) -> None:
    made = make("words")
    a, b = sorted(set(made.targets))[:2]
    assert set(made.texts(Wish(pattern=f"{a} {b}"))) == {f"{a} {b}"}
    assert UNKNOWN not in {token for answer in made.ask(Wish(pattern=".+", beam=3)) for token in answer.tokens}
    with pytest.raises(UsageError, match="are all its words in the vocabulary"):
        made.texts(Wish(choices=("no such word",)))


def test_constraints_and_other_rules(make: Callable[[str], Made]) -> None:
    made = make("bpe")
    assert all(re.fullmatch(r"1999-\d\d", text) for text in made.texts(Wish(pattern=r"\d{4}-\d\d", prefix="1999")))
    assert set(made.texts(Wish(pattern="a{9}", no_repeat=1, min_length=30))) == {"a" * 9}
    long = made.ask(Wish(pattern="[0-9]*", min_length=6, max_length=8))
    assert all(6 <= len(answer.tokens) <= 8 for answer in long)


@each_kind
@pytest.mark.parametrize("wish", [Wish(), Wish(beam=3, min_length=4), Wish(sampling=Sampling(3))])
def test_what_is_banned_is_not_written_in_any_spelling(make: Callable[[str], Made], kind: str, wish: Wish) -> None:
    """A byte, a character and a subword can spell the same text; with a constraint and without."""
    made = make(kind)
    banned = ("1", "0-", "9")
    assert any(text in found for found in made.texts(replace(wish, pattern="[0-9- ]{9,}")) for text in banned)
    for pattern in ("", "[0-9- ]*"):
        found = made.texts(replace(wish, pattern=pattern, banned=banned))
        assert not [text for text in found if any(each in text for each in banned)]
        assert pattern == "" or all(re.fullmatch(pattern, text) for text in found)


def test_bans_that_leave_nothing_are_refused(make: Callable[[str], Made]) -> None:
    for kind in ("characters", "bpe"):
        made = make(kind)
        with pytest.raises(UsageError, match=r'found no text that matches "1.4." and that does not hold "1"'):
            made.texts(Wish(pattern="1{4}", banned=("1",)))
        with pytest.raises(UsageError, match='among the 2 choices and that does not hold "9"'):
            made.texts(Wish(choices=("1999", "1929"), banned=("9",)))
        assert set(made.texts(Wish(choices=("1999", "2000"), banned=("9",)))) == {"2000"}
        with pytest.raises(UsageError, match='the prefix can not begin a text that does not hold "99"'):
            made.texts(Wish(prefix="199", banned=("99",)))
        assert made.texts(Wish(banned=("",))) == made.texts(Wish())


@pytest.mark.parametrize("kind", ["characters", "bpe", "unigram"])
def test_the_next_best_are_different_texts(make: Callable[[str], Made], kind: str) -> None:
    """One text has many spellings; the best of them stands for it."""
    made = make(kind)
    two = tuple(sorted(set(made.targets))[:2])
    for wish, counts in ((Wish(choices=two), {1, 2}), (Wish(pattern="[ab]{1,2}"), {3}), (Wish(max_length=4), {3})):
        plain = made.ask(replace(wish, beam=3), 4)
        for answer, first in zip(made.ask(replace(wish, beam=3, n_best=3), 4), plain, strict=True):
            assert len({each.text for each in answer.alternatives}) == len(answer.alternatives)
            assert len(answer.alternatives) in counts
            scores = [each.score for each in answer.alternatives]
            assert scores == sorted(scores, reverse=True)
            assert answer.score >= first.score


def test_texts_that_are_not_there_are_not_looked_for_again(make: Callable[[str], Made]) -> None:
    made, widths = make("characters"), list[int]()
    task = Transduce(made.task.config, made.task.vocabulary)
    search = task.search_beam
    task.search_beam = lambda *given: (widths.append(given[2].beam), search(*given))[1]  # type: ignore[method-assign]
    for wish, count, expected in (
        (Wish(choices=("ab",), beam=3, n_best=3), 1, [3]),  # there is but one
        (Wish(pattern="1|2", beam=8, n_best=8), 2, [8]),  # all spellings were found: two bytes and two characters
        (Wish(pattern="1{9}|2{9}", beam=4, n_best=4), 2, [4, 8, 16]),
    ):
        (found,) = task.answer(made.model, made.items[:1], wish, [0])
        assert (len(found.alternatives) <= count, widths) == (True, expected)
        widths.clear()


def test_limits_are_lifted_unless_they_are_given(make: Callable[[str], Made]) -> None:
    made = make("bytes")
    assert set(made.texts(Wish(pattern="(?:abc){50}"), 2)) == {"abc" * 50}
    assert set(made.texts(Wish(choices=("x" * 200,)), 2)) == {"x" * 200}
    with pytest.raises(UsageError, match=r'max_length 9: the shortest text that matches "a.10." has 10 tokens'):
        made.texts(Wish(pattern="a{10}", max_length=9))
    with pytest.raises(UsageError, match=r'the prefix can not begin a text that matches "a\+"'):
        made.texts(Wish(pattern="a+", prefix="b"))


@pytest.fixture
def learned(make: Callable[[str], Made]) -> Made:
    """A model with a vector for each of 24 places and no more."""
    known = make("characters")
    c = config.resolve("transformer", None, ["decoder.position=learned", "data.max_target=24", "tokens.shared=false",
        "encoder.width=16", "decoder.width=16", "encoder.heads=2", "decoder.heads=2", "encoder.layers=1",
        "decoder.layers=1"])  # fmt: skip
    vocabulary = known.task.vocabulary
    model = build(c, vocabulary.source.size, vocabulary.target.size, seed=1).eval()
    return Made(Transduce(c, vocabulary), model, known.items, known.targets)


def test_no_limit_is_lifted_beyond_learned_positions(learned: Made) -> None:
    assert {len(text) for text in learned.texts(Wish(pattern="[0-9]{24}"), 2)} == {24}
    for wish in (Wish(pattern="[0-9]{40}"), Wish(pattern="[0-9]{40}", max_length=50, beam=2)):
        with pytest.raises(UsageError, match=r"\{40\}\" has 40 tokens, .* at most 24 \(data.max_target\)"):
            learned.texts(wish)
    with pytest.raises(UsageError, match=r"the prefix has 25 tokens, .* at most 24 \(data.max_target\)"):
        learned.texts(Wish(prefix="1" * 25))
    assert {len(text) for text in learned.texts(Wish(prefix="1" * 24), 2)} == {24}


@pytest.mark.filterwarnings("always")
def test_a_max_length_that_is_cut_is_told_once(make: Callable[[str], Made], learned: Made) -> None:
    with pytest.warns(UserWarning, match=r"^max_length 30: cut to 24 \(data.max_target\)$") as told:
        twice = [learned.texts(Wish(max_length=30, batch=2)) for _ in range(2)]
    assert (len(told), twice[0]) == (1, twice[1])
    made = make("bytes")
    longest = made.task.config.data.max_target
    wish = Wish(pattern=f"a{{{longest + 9}}}", max_length=longest + 20)
    wanted = rf"has {longest + 9} tokens, .* at most {longest} \(data.max_target\); .* leave out max_length"
    with pytest.warns(UserWarning, match="cut to"), pytest.raises(UsageError, match=wanted):
        made.texts(wish)
    assert made.texts(replace(wish, max_length=None), 1) == ["a" * (longest + 9)]


def test_what_a_constraint_has_found_out_is_kept(make: Callable[[str], Made]) -> None:
    made = make("characters")
    made.texts(Wish(pattern=DATE))
    kept = made.task.kept[1]
    made.texts(Wish())
    made.texts(Wish(pattern=DATE, beam=2))
    assert made.task.kept[1] is kept
    made.texts(Wish(pattern="a"))
    assert made.task.kept[1] is not kept


def test_a_constraint_that_has_met_much_begins_anew(
    make: Callable[[str], Made], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory is bounded, and every answer the same."""
    made = make("characters")
    task = Transduce(made.task.config, made.task.vocabulary)
    wish = Wish(pattern="(.|-)*2(.|-){5}", max_length=12, sampling=Sampling(5), batch=1)

    def asked() -> tuple[list[str], int]:
        answers = task.answer(made.model, made.items[:12], wish, range(12))
        kept = task.kept[1]
        assert kept is not None
        return [answer.text for answer in answers], kept.held

    whole, held = asked()
    monkeypatch.setattr("regard.search.constrain.MOST_HELD", held // 3)
    monkeypatch.setattr("regard.search.constrain.MOST_BYTES", 5000)
    assert task.kept[1] is not None
    assert task.kept[1].is_large
    bounded, least = asked()
    assert bounded == whole
    assert least < held


def test_likelihood_is_that_of_the_free_model(make: Callable[[str], Made]) -> None:
    made = make("characters")
    free = made.task.likelihood(made.model, made.items[:3], Wish())
    assert made.task.likelihood(made.model, made.items[:3], Wish(pattern="x", required=("y",))) == free


@pytest.mark.parametrize("wish", [Wish(pattern="a"), Wish(choices=("a",)), Wish(required=("a",))])
def test_holes_are_filled_without(make: Callable[[str], Made], wish: Wish) -> None:
    made = make("characters")
    with pytest.raises(UsageError, match="only --n-best, --batch, --json"):
        Fill(made.task.config, made.task.vocabulary).answer(made.model, [], wish, [])
