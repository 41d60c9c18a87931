"""Facts in, what the rules choose of them; what is said overrules each singly; every choice is told."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from regard import config, rules
from regard.data import builtin
from regard.data.measure import Facts, Side
from regard.errors import ConfigError
from regard.rules import CHOSEN, HONEST, Case, configured

Write = Callable[[str, str], str]

LETTERS = Side(characters=8, words=1, longest=16, wordiest=1, alphabet=27, vocabulary=9000, seldom=0.99)
SYMBOLS = Side(characters=15, words=6, longest=36, wordiest=14, alphabet=25, vocabulary=39, seldom=0.0)
PROSE = Side(characters=65, words=13, longest=170, wordiest=33, alphabet=50, vocabulary=10_000, seldom=0.02)
CHINESE = Side(characters=20, words=1, longest=60, wordiest=2, alphabet=3000, vocabulary=29_000, seldom=1.0)
HANGUL = replace(LETTERS, alphabet=800, syllables=0.97, hangul=0.97)


def case(
    source: Side,
    target: Side,
    pairs: int = 10_000,
    alike: float = 1.0,
    copied: float = 0.0,
    said: config.Tree | None = None,
    uneven: float = 0.2,
) -> Case:
    return Case(Facts(pairs, source, target, alike, copied, copied, uneven=uneven), said or {})


# ── tokens ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("source", "target", "kinds"),
    [
        (LETTERS, LETTERS, ("characters", "characters")),
        (LETTERS, SYMBOLS, ("characters", "words")),
        (SYMBOLS, SYMBOLS, ("words", "words")),
        (PROSE, PROSE, ("bpe", "bpe")),
        (PROSE, LETTERS, ("bpe", "characters")),
        (CHINESE, PROSE, ("characters", "bpe")),
        (PROSE, replace(LETTERS, words=2.5), ("bpe", "bpe")),
        (HANGUL, SYMBOLS, ("jamo", "words")),
        (HANGUL, LETTERS, ("jamo", "characters")),
        (replace(HANGUL, syllables=0.2), LETTERS, ("jamo", "characters")),
        (HANGUL, HANGUL, ("characters", "characters")),
        (LETTERS, HANGUL, ("characters", "characters")),
        (replace(PROSE, words=14, vocabulary=6, alphabet=19, seldom=0.0), SYMBOLS, ("words", "words")),
    ],
)
def test_each_side_has_its_tokens(source: Side, target: Side, kinds: tuple[str, str]) -> None:
    assert case(source, target).kinds == kinds
    chosen = rules.tokens(case(source, target))
    assert chosen.words[:2] == (f"tokens.source={kinds[0]}", f"tokens.target={kinds[1]}")
    assert (len(chosen.words) == 3) == ("bpe" in kinds)


def test_what_is_copied_is_not_cut_into_letters() -> None:
    copying = replace(case(HANGUL, LETTERS), facts=Facts(1000, HANGUL, LETTERS, 0.3, 0.4, own=0.5))
    assert copying.kinds == ("characters", "characters")
    assert rules.copying(copying).words
    assert replace(copying, said={"decoder": {"copy": False}}).kinds == ("jamo", "characters")


def test_a_text_of_syllables_alone_has_room() -> None:
    mixed = case(replace(HANGUL, syllables=0.6, hangul=0.6, longest=150), LETTERS)
    assert mixed.longest[0] > 3 * 150


def test_sources_that_are_only_changed_are_letters() -> None:
    short = replace(PROSE, characters=40)
    assert case(short, short, copied=0.8, uneven=0.08).kinds == ("characters", "characters")
    assert case(short, short, copied=0.34, uneven=0.08).kinds == ("bpe", "bpe")
    assert case(short, short, copied=0.8, uneven=0.2).kinds == ("bpe", "bpe")  # words are put in or left out
    filled = Case(replace(case(short, short, copied=0.8, uneven=0.08).facts, formal=0.5))
    assert filled.kinds == ("bpe", "bpe")


def test_letters_that_follow_letters_are_letters_if_there_is_time() -> None:
    script = replace(PROSE, characters=120)  # sentences in another script, or with accents put in
    assert case(script, script, uneven=0.03).kinds == ("characters", "characters")
    assert case(script, script, uneven=0.15).kinds == ("bpe", "bpe")
    assert case(script, script, 100_000, uneven=0.03).kinds == ("bpe", "bpe")
    assert case(script, script, uneven=0.03, said={"train": {"minutes": 2}}).kinds == ("bpe", "bpe")
    assert case(LETTERS, SYMBOLS, uneven=0.03).kinds == ("characters", "words")


def test_what_is_copied_is_cut_alike_on_both_sides() -> None:
    commands = replace(PROSE, vocabulary=120, seldom=0.0)
    assert case(commands, PROSE, copied=0.4).kinds == ("bpe", "bpe")
    assert case(commands, PROSE, copied=0.1).kinds == ("words", "bpe")
    assert case(commands, PROSE, copied=0.4, said={"decoder": {"copy": False}}).kinds == ("words", "bpe")


def test_signs_that_spaces_part_are_judged_by_letters() -> None:
    couplet = replace(CHINESE, characters=14, words=7, vocabulary=3000, seldom=0.05, unspaced=1.0)
    assert case(couplet, couplet).kinds == ("words", "words")
    assert rules.judging(case(couplet, couplet)) == ["train.metric=chrf"]


def test_symbols_stay_symbols_where_they_are_only_changed() -> None:
    assert case(SYMBOLS, SYMBOLS, copied=0.8, uneven=0.03).kinds == ("words", "words")


def test_short_sentences_are_pieces_if_both_sides_are() -> None:
    phrase = replace(PROSE, words=3.5, characters=16, often=9.0)
    assert case(phrase, phrase).kinds == ("bpe", "bpe")
    assert "train.metric=chrf" in rules.learning(case(phrase, phrase), None).words  # hardly ever four words in a row
    assert case(phrase, LETTERS).kinds == ("characters", "characters")
    rich = replace(phrase, words=2.4, vocabulary=3000, often=2.0)  # the same in a language with longer words
    assert case(rich, phrase, 1000).kinds == case(phrase, rich, 1000).kinds == ("bpe", "bpe")
    names = replace(rich, vocabulary=5000, often=1.2)
    assert case(names, phrase, 1000).kinds == ("characters", "characters")


def test_every_letter_has_a_piece() -> None:
    syllables = replace(PROSE, alphabet=1100)
    assert rules.tokens(case(PROSE, PROSE, 1000)).words[-1] == "tokens.size=1000"
    assert rules.tokens(case(PROSE, syllables, 1000)).words[-1] == "tokens.size=2500"
    written = rules.tokens(case(PROSE, replace(syllables, words=1, unspaced=1.0), 1000))
    assert written.words == ("tokens.source=bpe", "tokens.target=characters", "tokens.size=1000")
    assert "abc" not in rules.tokens(case(PROSE, PROSE, said={"tokens": {"size": "abc"}})).why
    assert "16,000 pieces" in rules.tokens(case(PROSE, PROSE, said={"tokens": {"size": 16_000}})).why


def test_what_comes_again_is_gone_through_again() -> None:
    few, many = (Case(replace(case(LETTERS, LETTERS, 12_000).facts, examples=lines)) for lines in (12_000, 100_000))
    work = [rules.last(each) * rules.batch(each) for each in (few, many)]
    assert 2 * work[0] < work[1] < 4 * work[0]  # eight times as many lines
    assert many.minutes > few.minutes
    assert "each pair" in rules.duration(few).why
    assert "each pair" not in rules.duration(many).why


def test_the_score_that_decides_can_be_counted_in_what_is_written() -> None:
    def metric(target: Side) -> list[str]:
        return [word for word in rules.learning(case(PROSE, target), None).words if word.startswith("train.metric")]

    assert metric(PROSE) == ["train.metric=bleu"]
    assert metric(replace(CHINESE, unspaced=0.9)) == ["train.metric=chrf"]
    assert metric(LETTERS) == metric(SYMBOLS) == []
    form = Case(replace(case(PROSE, PROSE).facts, formal=0.5))  # of which BLEU would count what is always the same
    assert not any(word.startswith("train.metric") for word in rules.learning(form, None).words)


def test_outputs_may_be_as_long_as_those_that_were_seen() -> None:
    digits, spoken = replace(LETTERS, characters=5, longest=6), replace(LETTERS, characters=40, longest=58)
    assert "search.length_extra=59" in rules.limits(case(digits, spoken)).words
    assert not rules.limits(case(LETTERS, LETTERS)).words
    story = replace(PROSE, characters=600, words=110, longest=700, wordiest=130)  # whose answers never are as long
    assert "search.length_ratio=0.1" in rules.limits(case(story, LETTERS)).words


@pytest.mark.parametrize(("source", "target", "kind"), [(LETTERS, SYMBOLS, "characters"), (PROSE, LETTERS, "bpe")])
def test_one_vocabulary_holds_one_kind(source: Side, target: Side, kind: str) -> None:
    words = rules.tokens(replace(case(source, target), ground={"shared": True})).words
    assert words[:2] == (f"tokens.source={kind}", f"tokens.target={kind}")
    assert config.resolve("decoder", None, [*words]).tokens.shared


@pytest.mark.parametrize(
    ("source", "target", "said", "kinds"),
    [
        (LETTERS, SYMBOLS, {}, ("characters", "characters")),
        (PROSE, LETTERS, {}, ("bpe", "bpe")),
        (CHINESE, PROSE, {}, ("bpe", "bpe")),
        (SYMBOLS, SYMBOLS, {}, ("words", "words")),
        (PROSE, LETTERS, {"target": "characters"}, ("characters", "characters")),
        (PROSE, LETTERS, {"source": "words"}, ("words", "words")),
        (PROSE, LETTERS, {"source": "bytes", "target": "characters"}, ("bytes", "characters")),
    ],
)
def test_what_is_to_be_copied_is_one_kind(
    source: Side, target: Side, said: config.Tree, kinds: tuple[str, str]
) -> None:
    at_hand = case(source, target, said={"decoder": {"copy": True}, "tokens": said})
    assert at_hand.kinds == kinds
    chosen = [*rules.choices(at_hand)]
    words = [word for each in chosen for word in each.words]
    preset = next(each.preset for each in chosen if each.preset)
    assert config.resolve(preset, None, [*words, "decoder.copy=true"]).copies


def test_copying_can_be_asked_for_where_the_sides_would_differ(write: Write) -> None:
    path = write("x.tsv", "".join(f"wo{i}rd\tW O R{i % 7} D\n" for i in range(60)))
    apart = configured(path, None, None, []).config.tokens
    assert apart.source != apart.target
    for preset in (None, "transformer"):
        made = configured(path, preset, None, ["decoder.copy=true"]).config
        assert made.copies
        assert made.tokens.source == made.tokens.target == "characters"
    for kind in ("spelled", "sentences"):  # no target is written in these, and it is told why nothing can be copied
        with pytest.raises(ConfigError, match=r"decoder\.copy"):
            configured(path, None, None, [f"tokens.source={kind}", "decoder.copy=true"])


@pytest.mark.parametrize(
    ("said", "kinds"),
    [
        ({"size": 77}, ("bpe", "bpe")),
        ({"shared": False}, ("bpe", "bpe")),
        ({"shared": True}, ("bpe", "bpe")),
        ({"target": "characters"}, ("bpe", "characters")),
        ({"source": "words", "shared": True}, ("words", "words")),
        ({"source": "sentences"}, ("sentences", "bpe")),
    ],
)
def test_one_word_about_tokens_leaves_the_others_open(said: dict[str, object], kinds: tuple[str, str]) -> None:
    assert case(PROSE, PROSE, said={"tokens": said}).kinds == kinds


def test_limits_are_those_of_the_tokens_that_there_are() -> None:
    long = replace(PROSE, longest=700, wordiest=110)
    words = rules.limits(case(long, long, said={"tokens": {"source": "words"}})).words
    assert not any("max_source" in word for word in words)
    for kind in ("characters", "bpe"):  # a word may be as many pieces as letters
        assert "data.max_source=701" in rules.limits(case(long, long, said={"tokens": {"source": kind}})).words


def test_texts_that_may_be_too_long_are_told() -> None:
    made_up = replace(PROSE, characters=5000, longest=6300, words=750, wordiest=800, seldom=0.9)
    found = rules.limits(case(made_up, LETTERS))
    assert f"data.max_source={rules.LONGEST}" in found.words  # letter by letter none is longer, and pieces are fewer
    assert not found.why
    longer = rules.limits(case(replace(made_up, longest=20_000, wordiest=3000), LETTERS))
    assert "the longest have some 7," in longer.line
    assert not rules.limits(case(PROSE, PROSE)).why


def test_a_word_that_hardly_came_is_many_pieces() -> None:
    assert case(PROSE, PROSE).lengths[0] < 1.3 * PROSE.words
    assert case(replace(PROSE, seldom=0.9), PROSE).lengths[0] > 1.8 * PROSE.words


def test_one_vocabulary_where_the_letters_are_the_same() -> None:
    assert "tokens.shared=true" in rules.tying(case(PROSE, PROSE)).words
    assert not rules.tying(case(PROSE, PROSE, alike=0.2)).words
    assert not rules.tying(case(LETTERS, LETTERS)).words


def test_more_pairs_have_more_pieces() -> None:
    sizes = [
        int(rules.tokens(case(PROSE, PROSE, pairs)).words[2].partition("=")[2]) for pairs in (500, 5000, 29_000, 10**6)
    ]
    assert sizes == sorted(sizes)
    assert len(set(sizes)) == 4


# ── the model and its time ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("pairs", [1, 10, 500, 5000, 100_000, 5_000_000])
@pytest.mark.parametrize("sides", [(LETTERS, SYMBOLS), (PROSE, PROSE), (CHINESE, PROSE), (SYMBOLS, LETTERS)])
@pytest.mark.parametrize("minutes", [0.1, 10, 600])
def test_every_choice_is_a_config(pairs: int, sides: tuple[Side, Side], minutes: float) -> None:
    at_hand = case(*sides, pairs, copied=0.5, said={"train": {"minutes": minutes}})
    chosen = [*rules.endless(at_hand.said), *rules.choices(at_hand)]
    words = [word for each in chosen for word in each.words]
    made = config.resolve(next(each.preset for each in chosen if each.preset), None, words)
    source, target = at_hand.kinds
    assert made.copies == (source == target)
    assert rules.LEAST_STEPS <= made.train.steps == rules.last(at_hand)


def test_minutes_grow_with_the_data_and_have_an_end() -> None:
    times = [case(LETTERS, LETTERS, pairs).minutes for pairs in (10, 1000, 10_000, 100_000, 10**7)]
    assert times == sorted(times)
    assert times[0] >= 1
    assert times[-1] == rules.MOST_MINUTES
    assert all(math.isfinite(each) for each in times)


def test_a_transformer_needs_data_and_time() -> None:
    def chosen(pairs: int, minutes: float) -> tuple[str, int]:
        found = rules.size(case(PROSE, PROSE, pairs, said={"train": {"minutes": minutes}}))
        return found.preset, found.width

    assert chosen(500, 600) == ("rnn-attention", 256)
    assert chosen(5000, 600) == ("transformer", 128)
    assert chosen(5000, 1) == ("rnn-attention", 256)
    assert chosen(30_000, 1) == ("rnn-attention", 256)
    assert chosen(30_000, 20) == ("transformer", 128)
    assert chosen(30_000, 600) == ("transformer", 256)


def test_what_comes_again_does_not_keep_a_transformer_away() -> None:
    def chosen(pairs: int, lines: int) -> str:
        facts = replace(case(LETTERS, LETTERS, pairs).facts, examples=lines)
        return rules.size(Case(facts)).preset

    assert (chosen(6000, 6000), chosen(6000, 20_000)) == ("transformer", "transformer")


def test_few_sentences_are_for_a_transformer_if_they_are_copied_from() -> None:
    assert rules.size(case(PROSE, PROSE, 1000)).preset == "rnn-attention"
    assert rules.size(case(PROSE, PROSE, 1000, copied=0.5)).preset == "transformer"
    assert rules.size(case(PROSE, PROSE, 1000, said={"decoder": {"copy": True}})).preset == "transformer"
    assert rules.size(case(LETTERS, SYMBOLS, 1000)).preset == "transformer"
    words = {"tokens": {"source": "words", "target": "words"}}
    assert rules.size(case(PROSE, PROSE, 1000, said=words)).preset == "rnn-attention"
    assert rules.size(case(*[replace(CHINESE, unspaced=1.0)] * 2, 1000)).preset == "rnn-attention"


def test_symbols_are_for_a_transformer_too_if_there_is_time() -> None:
    def chosen(pairs: int, minutes: float, **more: object) -> tuple[str, float]:
        at_hand = case(LETTERS, SYMBOLS, pairs, said={"train": {"minutes": minutes}, **more})
        found = rules.size(at_hand)
        return found.preset, rules.dropping(at_hand, found)

    assert chosen(20_000, 60) == ("transformer", 0.3)
    assert chosen(20_000, 5) == ("rnn-attention", 0.3)
    assert chosen(100_000, 2) == ("rnn-attention", 0.1)
    assert chosen(100_000, 20) == ("rnn-attention", 0.3)
    assert chosen(100_000, 30) == ("transformer", 0.1)
    assert chosen(100_000, 60) == ("transformer", 0.2)
    assert chosen(100_000, 60, encoder={"cell": "lstm"}) == ("rnn-attention", 0.3)


def test_a_transformer_learns_by_muon_and_a_loop_by_adamw() -> None:
    def words(said: config.Tree) -> tuple[str, ...]:
        at_hand = case(PROSE, PROSE, 30_000, said=said)
        return rules.learning(at_hand, rules.size(at_hand)).words

    assert {"train.optimizer=muon", "train.learning_rate=0.003"} <= {*words({"train": {"minutes": 45}})}
    assert "train.learning_rate=0.002" in words({"train": {"minutes": 45}, "encoder": {"width": 512}})
    assert not any(word.startswith("train.optimizer") for word in words({"train": {"minutes": 1}}))


def test_a_loop_is_told_where_a_token_stands(dates: str) -> None:
    def places(*words: str) -> tuple[str, str, str]:
        made = configured(dates, None, None, [*words]).config
        return made.encoder.kind, made.encoder.position, getattr(made.decoder, "position", "")

    assert places("encoder.cell=gru") == ("recurrent", rules.PLACES, rules.PLACES)
    assert places("encoder.cell=gru", "encoder.position=none") == ("recurrent", "none", rules.PLACES)
    assert places() == ("attention", rules.TURNED, rules.TURNED)
    assert places("encoder.position=alibi") == ("attention", "alibi", rules.TURNED)


def test_a_run_is_looked_at_some_twenty_times_and_a_transformer_warms_up() -> None:
    def words(pairs: int, minutes: float) -> dict[str, str]:
        at_hand = case(PROSE, PROSE, pairs, said={"train": {"minutes": minutes}})
        return dict(word.split("=") for word in rules.learning(at_hand, rules.size(at_hand)).words)

    long, short = words(30_000, 45), words(1000, 0.2)
    assert 200 <= int(long["train.validate_steps"]) <= 500
    assert long["train.validate_steps"] == long["train.checkpoint_steps"]
    assert 300 <= int(long["train.warmup"]) <= rules.LONGEST_WARMUP
    assert "train.warmup" not in short
    assert 50 <= int(short["train.validate_steps"]) <= 100


@pytest.mark.parametrize(("pairs", "said", "ends"), [
    (10_000, {}, True),
    (10_000, {"minutes": 2}, True),
    (10_000, {"steps": 2000}, False),
    (500, {}, False),  # too few are held out to believe it
])  # fmt: skip
def test_a_run_ends_where_no_mistake_is_left(pairs: int, said: dict[str, object], ends: bool) -> None:
    at_hand = case(LETTERS, SYMBOLS, pairs, said={"train": said})
    assert (f"train.perfect={rules.PERFECT}" in rules.learning(at_hand, rules.LOOP).words) == ends


# ── one config ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def dates(tmp_path: Path) -> str:
    return str(builtin.write("dates", 400, tmp_path / "dates.tsv")[0])


def test_what_is_chosen_is_told_with_what_overrules_it(dates: str) -> None:
    made = configured(dates, None, None, [])
    assert made.config.train.minutes is not None
    for start, flag in (
        ("tokens ", "--tokens"),
        ("preset ", "--preset"),
        (f"{made.config.train.minutes:g} minutes", "--minutes"),
    ):
        line = next(line for line in made.why if line.startswith(f"{CHOSEN}{start}"))
        assert f"{flag} " in line


@pytest.mark.parametrize(
    "word",
    ["tokens.source=bytes", "train.minutes=2.5", "train.steps=77", "train.learning_rate=0.123", "search.beam=2",
     "encoder.width=96", "encoder.dropout=0.07", "decoder.copy=true", "train.label_smoothing=0.03",
     "data.max_source=99", "train.patience=none", "train.average=0"],
)  # fmt: skip
def test_what_is_said_is_never_chosen(dates: str, word: str) -> None:
    made = configured(dates, None, None, [word])
    tree = config.to_tree(made.config)
    for name, value in config.parse_word(word).items():
        ((key, wanted),) = value.items()
        assert tree[name].get(key, "none") == wanted


def test_what_is_told_is_what_will_be(dates: str, write: Write) -> None:
    made = configured(dates, None, None, ["encoder.width=64", "decoder.width=64", "encoder.dropout=0.0"])
    line = next(line for line in made.why if line.startswith(f"{CHOSEN}preset"))
    assert "encoder 4 layers of 64, dropout 0.0; decoder 4 layers of 64, dropout 0.3" in line
    copying = configured(prose(write), None, None, ["decoder.copy=false"])
    assert not any("copies" in line for line in copying.why)


@pytest.mark.parametrize("word", ["encoder.heads=8", "encoder.position=rotary", "decoder.position=alibi"])
def test_a_word_that_only_blocks_of_attention_know_leads_to_them(dates: str, word: str) -> None:
    assert configured(dates, None, None, [word]).config.preset == "transformer"


@pytest.mark.parametrize(("width", "heads"), [(256, 4), (96, 4), (20, 2), (50, 1), (65, 1)])
def test_heads_fit_a_width_that_was_said(dates: str, width: int, heads: int) -> None:
    said = [f"encoder.width={width}", f"decoder.width={width}", "train.minutes=30"]
    made = configured(dates, None, None, said).config
    assert (getattr(made.encoder, "heads", 0), getattr(made.decoder, "heads", 0)) == (heads, heads)


@pytest.mark.parametrize("score", ["dot", "bilinear", "additive", "mean"])
def test_positions_fit_a_score_that_was_said(dates: str, score: str) -> None:
    made = configured(dates, None, None, [f"encoder.score={score}", f"decoder.score={score}"]).config
    expected = rules.TURNED if score == "dot" else rules.PLACES
    assert (made.encoder.position, getattr(made.decoder, "position", "")) == (expected, expected)


@pytest.mark.parametrize("word", ["encoder.position=none", "decoder.score=additive", "decoder.projections=false"])
def test_a_word_for_one_attention_or_none_for_places_leads_to_a_loop(dates: str, word: str) -> None:
    assert configured(dates, None, None, [word]).config.preset == "rnn-attention"


def test_sizes_that_are_said_count_in_what_is_foreseen() -> None:
    def times(**said: object) -> float:
        return rules.times(case(PROSE, PROSE, 30_000, said={"train": {"minutes": 20}, **said}), rules.BLOCKS)

    wide = {"width": 512}
    assert times(encoder=wide, decoder=wide) < times() / 10
    assert times(encoder={"layers": 12}) < times() / 1.5
    assert times(encoder={"width": 64}, decoder={"width": 64}) == times()
    words = [*rules.BLOCKS.words({"encoder": wide, "decoder": {}})]
    assert {"encoder.feedforward=1024", "decoder.feedforward=256"} <= {*words}


def test_large_batches_are_no_faster() -> None:
    def often(tokens: int) -> float:
        said = {"train": {"minutes": 5, "tokens_per_batch": tokens}}
        return rules.times(case(PROSE, PROSE, 30_000, said=said), rules.BLOCKS)

    assert often(16_384) == pytest.approx(often(4096), rel=0.01)
    assert often(512) < 0.6 * often(4096)


def test_steps_or_minutes_bound_a_run(dates: str) -> None:
    assert configured(dates, None, None, ["train.steps=5"]).config.train.minutes is None
    asked, chosen = (configured(dates, None, None, said).config.train for said in (["train.minutes=1"], []))
    assert asked.minutes == 1
    assert rules.LEAST_STEPS < asked.steps == chosen.steps < config.ENDLESS
    both = configured(dates, None, None, ["train.minutes=1", "train.steps=5"]).config.train
    assert (both.minutes, both.steps) == (1, 5)
    named = configured(dates, "rnn", None, ["train.minutes=1"]).config.train
    assert (named.minutes, named.steps) == (1, config.ENDLESS)


def test_a_preset_that_is_named_is_taken_as_it_is(dates: str) -> None:
    for name in ("rnn-attention", "transformer", "decoder"):
        made, plain = configured(dates, name, None, []).config, config.resolve(name)
        assert (made.encoder, made.decoder, made.train, made.search.beam) == (
            plain.encoder, plain.decoder, plain.train, plain.search.beam)  # fmt: skip


def test_a_config_file_is_a_word_too(dates: str, write: Write) -> None:
    made = configured(dates, None, write("c.toml", "[train]\nsteps = 9\nlearning_rate = 0.5\n"), []).config
    assert (made.train.steps, made.train.learning_rate, made.train.minutes) == (9, 0.5, None)
    named = configured(dates, None, write("d.toml", 'preset = "rnn"\n'), []).config
    assert (named.preset, named.encoder) == ("rnn", config.resolve("rnn").encoder)


def test_few_pairs_and_blocks_of_attention_have_their_embeddings_dropped_out_and_it_is_told() -> None:
    def body(pairs: int, source: Side, said: config.Tree | None = None) -> rules.Choice:
        return rules.body(case(source, source, pairs, said={"train": {"minutes": 60}, **(said or {})}))

    loop: config.Tree = {"encoder": {"cell": "gru"}}
    few, many, blocks = body(1000, LETTERS, loop), body(10_000, LETTERS, loop), body(30_000, PROSE)
    assert (few.preset, many.preset, blocks.preset) == ("rnn-attention", "rnn-attention", "transformer")
    assert [each.settles("embedding.dropout") for each in (few, many, blocks)] == [True, False, True]
    assert "embedding.dropout=0.3, embedding.token_dropout=0.1" in few.why
    assert "embedding.dropout" not in body(1000, LETTERS, {**loop, "embedding": {"dropout": 0.1}}).why


def test_an_encoder_of_another_kind_leaves_the_choice_of_a_body_to_who_said_it(dates: str) -> None:
    made = configured(dates, None, None, ["encoder.kind=convolutional", "encoder.layers=2"]).config
    assert (made.encoder.kind, made.decoder.kind) == ("convolutional", "recurrent")


@pytest.mark.parametrize("words", [[], ["decoder.layers=1", "train.steps=3"], ["train.minutes=1"]])
@pytest.mark.parametrize("task", [[], ["task=classify"], ["task=generate", "data.source=1"]])
def test_no_encoder_is_a_decoder_alone(write: Write, words: list[str], task: list[str]) -> None:
    letters = write("letters.tsv", "".join(f"wo{i}rd\tW O R{i % 7} D\n" for i in range(60)))
    for path in (prose(write), letters):
        made = configured(path, None, None, ["encoder.kind=none", *words, *task])
        assert made.config == configured(path, "decoder", None, [*words, *task]).config
        assert any(line.startswith(f"{CHOSEN}preset decoder: ") for line in made.why)


def test_many_pairs_are_seen_as_they_are() -> None:
    said = {"decoder": {"cell": "gru"}}
    few, many = (rules.body(case(LETTERS, LETTERS, pairs, said=said)) for pairs in (10_000, 100_000))
    assert (few.preset, many.preset) == ("rnn-attention", "rnn-attention")
    for name in ("embedding.token_dropout", "encoder.position", "decoder.position"):
        assert (few.settles(name), many.settles(name)) == (True, False)


def test_little_time_is_told_honestly() -> None:
    def told(minutes: float) -> str:
        return rules.short(case(LETTERS, LETTERS, 50_000, said={"train": {"minutes": minutes}}), rules.LOOP).line

    assert told(0.5).startswith(HONEST)
    assert told(0.5).endswith("would be --minutes 5")
    assert told(1e-4).startswith(HONEST)
    assert not told(30)


def test_steps_are_bounded_by_minutes_where_both_are_said() -> None:
    both = case(LETTERS, SYMBOLS, 100_000, said={"train": {"minutes": 2.0, "steps": 20_000}})
    assert rules.size(both).preset == "rnn-attention"
    assert rules.expected(both, rules.LOOP) < 1000
    alone = case(LETTERS, SYMBOLS, 100_000, said={"train": {"steps": 20_000}})
    assert rules.expected(alone, rules.LOOP) == 20_000


@pytest.mark.parametrize("word", ["encoder.width=abc", "encoder.width=none", 'decoder.width=["a"]'])
def test_a_width_that_is_none_is_refused(dates: str, word: str) -> None:
    with pytest.raises(ConfigError, match=r"width"):
        configured(dates, None, None, [word])


@pytest.mark.parametrize(
    ("word", "preset"), [("decoder.embedding=64", "rnn-attention"), ("encoder.score=dot", "transformer")]
)
def test_a_word_that_only_one_body_has_leads_to_it(write: Write, word: str, preset: str) -> None:
    path = prose(write)
    assert configured(path, None, None, [word]).config.preset == preset


def test_limits_of_a_preset_are_those_of_its_own_tokens(write: Write) -> None:
    path = prose(write)
    assert configured(path, "luong2015", None, []).config.data.max_source == 50
    assert configured(path, "luong2015", None, ["tokens.source=characters", "tokens.target=characters"]
                      ).config.data.max_source > 50  # fmt: skip


def test_few_pairs_are_told_honestly(write: Write) -> None:
    made = configured(write("x.tsv", "".join(f"a{i}\tb{i}\n" for i in range(40))), None, None, [])
    assert any(line.startswith(f"{HONEST}40 pairs are few") for line in made.why)


def test_an_error_is_told_with_what_was_chosen_before_it(dates: str) -> None:
    with pytest.raises(ConfigError, match=r"(?s)can not be divided.*chosen: preset"):
        configured(dates, None, None, ["decoder.heads=7"])


def test_other_tasks_have_no_rules(write: Write) -> None:
    rows = "".join(f"x{i}\t{'ab'[i % 2]}\n" for i in range(100))
    made = configured(write("x.tsv", rows), None, None, [])
    assert made.config.task == "classify"
    assert not rules.reasons(made.why.choices)


def test_what_is_guessed_is_kept_apart_from_what_is_chosen(dates: str, write: Write) -> None:
    made = configured(dates, None, None, []).why
    assert [line.split(":")[0] for line in made.guesses] == ["task transduce"]
    assert [*made] == [*made.guesses, *rules.reasons(made.choices)]
    assert sum(each.settles("tokens.source") for each in made.choices) == 1
    few = configured(write("x.tsv", "".join(f"a{i}\tb{i}\n" for i in range(40))), None, None, []).why
    assert [each.line for each in few.choices if each.why and not each.words] == [
        line for line in few if line.startswith(HONEST)
    ]


def prose(write: Write, pairs: int = 60) -> str:
    """Sentences of which a part is copied."""
    rows = [(f"the man number{i} went to the town of{i % 7} and saw it", f"man{i} who went to the town{i % 5} saw that")
            for i in range(pairs)]  # fmt: skip
    return write("prose.tsv", "".join(f"{source}\t{target}\n" for source, target in rows))


@pytest.mark.parametrize(
    "words",
    [
        ["encoder.width=512"], ["decoder.embedding=64"], ["tokens.target_size=500"], ["decoder.context=fixed"],
        ["decoder.context=none"], ["encoder.cell=lstm", "decoder.cell=lstm"], ["train.minutes=none"],
        ["tokens.shared=false"], ["tokens.target=characters"], ["encoder.feedforward=64"], ["tokens.source=sentences"],
        ["train.warmup=3000"],
    ],
)  # fmt: skip
def test_what_is_said_never_clashes_with_what_is_chosen(write: Write, words: list[str]) -> None:
    assert configured(prose(write), None, None, words).config.task == "transduce"


@pytest.mark.parametrize(
    "word", ["train=3", "tokens=3", "encoder=3", "search=3", "train.minutes=abc", "train.minutes=0"]
)
def test_what_is_no_setting_is_told(write: Write, word: str) -> None:
    with pytest.raises(ConfigError, match=word.partition("=")[0].partition(".")[0]):
        configured(prose(write), None, None, [word])


@pytest.mark.parametrize(
    "word", ["tokens.source=letters", "train.schedule=linear", "encoder.kind=rekurrent", "task=translate"]
)
def test_a_mistyped_word_is_told_without_what_was_guessed(write: Write, word: str) -> None:
    with pytest.raises(ConfigError, match=word.partition("=")[0]) as caught:
        configured(prose(write), None, None, [word])
    assert "one of" in str(caught.value)
    assert "guessed" not in str(caught.value)
    assert "chosen" not in str(caught.value)


@pytest.mark.parametrize("preset", config.presets())
def test_every_preset_is_a_config_for_every_kind_of_data(write: Write, preset: str) -> None:
    letters = write("letters.tsv", "".join(f"wo{i}rd\tW O R{i % 7} D\n" for i in range(60)))
    for path in (prose(write), letters):
        if config.preset_says(preset).get("task", "transduce") == "transduce":
            made, plain = configured(path, preset, None, []).config, config.resolve(preset)
            assert made.encoder == plain.encoder
            if "source" in config.preset_says(preset).get("tokens", {}):
                assert (made.tokens, made.data.max_source) == (plain.tokens, plain.data.max_source)
