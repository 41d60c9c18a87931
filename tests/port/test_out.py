"""What other engines make of our models: the same tokens greedily, the same probabilities, and clear refusals."""

import ast
import json
import math
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from regard import config
from regard.data.tokens import END, PAD, SPECIALS, START, Kind, Tokenizer
from regard.data.vocabulary import Vocabulary
from regard.errors import UsageError
from regard.models.build import build
from regard.port import ctranslate2 as to_ctranslate2
from regard.port import hf
from regard.port.fit import never
from regard.port.out import out, page
from regard.tasks.task import Wish
from regard.tasks.transduce import Transduce
from regard.trained import Trained

TEXTS = [
    f"the {a} {b} sees {c} of them" for a in ("old", "red", "shy") for b in ("cat", "dög") for c in (1, 7, 93, 1204)
]
SMALL = ["encoder.width=32", "encoder.feedforward=48", "encoder.heads=4", "encoder.layers=1",
         "decoder.width=32", "decoder.feedforward=64", "decoder.heads=2", "decoder.layers=2"]  # fmt: skip
TIED = ["embedding.tie_source=true", "embedding.tie_output=true"]
AFTER = ["encoder.norm_first=false", "decoder.norm_first=false"]
BOTH = {
    "before": (TIED, True),
    "after": ([*TIED, *AFTER], True),
    "before, two vocabularies": ([], False),
    "after, two vocabularies": (AFTER, False),
    "learned": (["encoder.position=learned", "decoder.position=none", "embedding.scale=false"], True),
    "gelu": ([*AFTER, "encoder.activation=gelu", "decoder.activation=gelu", "decoder.position=learned"], True),
}
ONLY_CTRANSLATE2 = {
    "two widths": (["decoder.width=48", "encoder.norm_first=false", "decoder.activation=silu"], False),
    "rms, gated": (["encoder.norm=rms", "decoder.norm=rms", "decoder.gated=true"], True),
    "rotary": (["encoder.position=rotary", "decoder.position=rotary"], True),
}
CASES = {**BOTH, **ONLY_CTRANSLATE2}
LONGEST = 24


def made(words: list[str], shared: bool, kind: Kind = "bpe") -> Trained:
    """A small model with random weights, strong enough that texts differ, that ends now and then."""
    tokens = [f"tokens.source={kind}", f"tokens.target={kind}", f"tokens.shared={str(shared).lower()}"]
    c = config.resolve("transformer", None, [*tokens, *SMALL, *words])
    source = Tokenizer.learn(TEXTS, kind, 300)
    target = source if shared else Tokenizer.learn([text[::-1] for text in TEXTS], kind, 280)
    torch.manual_seed(1)
    model = build(c, source.size, target.size).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim == 1:
                weight.add_(0.3 * torch.randn_like(weight))
            elif "layers" in name:
                weight.mul_(4.0)
        model.output.bias[END] += 3.0 if c.embedding.tie_output else 0.0
    return Trained(c, Vocabulary(source, target), model)


Written = list[tuple[int, ...]]


def written(trained: Trained, beam: int = 1) -> Written:
    """Without a rule of length, so that all engines agree on what is better and differ only in when they stop."""
    wish = Wish(beam=beam, max_length=LONGEST, length_penalty=0.0)
    return [answer.tokens for answer in trained.run(TEXTS, wish=wish)]


def mostly(ours: Written, its: Written) -> bool:
    """Every engine keeps its beam full in its own way, so beams may part now and then.

    What was cut at the longest length is left out: there only ours counts the end that was not written.
    """
    ended = [(one, other) for one, other in zip(ours, its, strict=True) if max(len(one), len(other)) < LONGEST]
    return sum(one == other for one, other in ended) >= 0.75 * len(ended)


def log_probabilities(trained: Trained, targets: Written) -> list[float]:
    """What our own model says of other people's outputs."""
    assert isinstance(trained.task, Transduce)
    items = [replace(trained.item(text), target=target) for text, target in zip(TEXTS, targets, strict=True)]
    found = trained.task.likelihood(trained.model, items, Wish(length_penalty=0.0))
    return [answer.score for answer in found]


@pytest.mark.parametrize(("words", "shared"), CASES.values(), ids=CASES)
def test_the_random_models_are_worth_comparing(words: list[str], shared: bool) -> None:
    assert len(set(written(made(words, shared)))) > 2


def test_some_beams_end_by_themselves() -> None:
    for words, shared in (BOTH["before"], BOTH["after"]):
        assert sum(len(text) < LONGEST for text in written(made(words, shared), 4)) > 8


# ── CTranslate2 ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("words", "shared"), CASES.values(), ids=CASES)
def test_ctranslate2_writes_the_same(words: list[str], shared: bool, tmp_path: Path) -> None:
    library = pytest.importorskip("ctranslate2")
    trained = made(words, shared)
    to_ctranslate2.write(trained, tmp_path)
    translator = library.Translator(str(tmp_path), compute_type="float32", intra_threads=1)
    source, target = to_ctranslate2.names(trained.vocabulary.source), to_ctranslate2.names(trained.vocabulary.target)
    asked = [[source[id] for id in trained.item(text).source[:-1]] for text in TEXTS]
    forbidden = [[target[id]] for id in never(trained)]

    def translate(beam: int) -> Written:
        found = translator.translate_batch(asked, beam_size=beam, length_penalty=0.0, suppress_sequences=forbidden,
                                           min_decoding_length=0, max_decoding_length=LONGEST,
                                           patience=4)  # fmt: skip
        return [tuple(target.index(name) for name in one.hypotheses[0]) for one in found]

    assert translate(1) == written(trained)
    assert mostly(written(trained, 4), translate(4))
    given = translate(4)
    rated = translator.score_batch(asked, [[target[id] for id in tokens] for tokens in given])
    exact = log_probabilities(trained, given)
    assert all(math.isclose(sum(one.log_probs), ours, abs_tol=1e-3) for one, ours in zip(rated, exact, strict=True))


@pytest.mark.parametrize("kind", ["characters", "bytes", "words", "bpe", "unigram"])
def test_names_of_tokens_differ(kind: Kind) -> None:
    tokenizer = Tokenizer.learn(["a <pad> b a<5> Ġ", "ü <tag:V>"], kind, 300, tags=["V", "N"])
    found = to_ctranslate2.names(tokenizer)
    assert len(set(found)) == len(found) == tokenizer.size
    assert tuple(found[: len(SPECIALS)]) == SPECIALS


# ── Hugging Face ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("words", "shared"), BOTH.values(), ids=BOTH)
def test_hugging_face_writes_the_same(words: list[str], shared: bool, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    trained = made(words, shared)
    hf.write(trained, tmp_path)
    model, told = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(told.values()), told
    sources = [torch.tensor(trained.item(text).source) for text in TEXTS]
    source_BS = torch.nn.utils.rnn.pad_sequence(sources, batch_first=True, padding_value=PAD)

    def generate(beam: int) -> Written:
        with torch.inference_mode():
            found = model.generate(input_ids=source_BS, attention_mask=(source_BS != PAD).long(), num_beams=beam,
                                   max_new_tokens=LONGEST + 1, length_penalty=0.0)  # fmt: skip
        return [tuple(id for id in row[1:] if id not in (PAD, END)) for row in found.tolist()]

    assert generate(1) == written(trained)
    given = generate(4)
    assert mostly(written(trained, 4), given)
    exact = log_probabilities(trained, given)
    for source, tokens, ours in zip(sources, given, exact, strict=True):
        with torch.inference_mode():
            logits = model(input_ids=source[None], decoder_input_ids=torch.tensor([[START, *tokens]])).logits
        log = logits.log_softmax(-1)[0, range(len(tokens) + 1), [*tokens, END]].sum()
        assert math.isclose(float(log), ours, abs_tol=1e-3)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_hugging_face_cuts_the_same_pieces(kind: Kind) -> None:
    import tokenizers

    ours = Tokenizer.learn(TEXTS, kind, 300)
    its = tokenizers.Tokenizer.from_str(hf.tokenizer(ours.pieces))
    for text in [*TEXTS, "<pad> is text, </s> too", "", "  two  blanks ", "日本 ü\n\t."]:
        assert tuple(its.encode(text).ids) == (*ours.encode(text).ids, END)
        assert its.decode(list(ours.encode(text).ids)) == text
    assert [its.id_to_token(id) for id in range(len(SPECIALS))] == list(SPECIALS)


def test_a_tokenizer_is_written_only_where_it_tells_the_truth(tmp_path: Path) -> None:
    assert set(hf.tokenizer_files(made(TIED, True))) == {"tokenizer.json", "tokenizer_config.json"}
    assert hf.tokenizer_files(made([], False)) == {}
    assert hf.tokenizer_files(made(TIED, True, "characters")) == {}


def test_files_of_a_tied_model_name_one_table(tmp_path: Path) -> None:
    trained = made(TIED, True)
    hf.write(trained, tmp_path)
    told = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    assert told["model_type"] == "pegasus"
    assert told["tie_word_embeddings"] is True
    halves = hf.stacks(trained.config, hf.HF)
    names = hf.weights(trained, halves)
    assert torch.equal(names["model.shared.weight"], trained.model.output.weight)
    assert "lm_head.weight" not in names
    generation = json.loads((tmp_path / "generation_config.json").read_text(encoding="utf-8"))
    assert generation["suppress_tokens"] == never(trained)


# ── the folder ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("engine", ["hf", "ctranslate2"])
@pytest.mark.parametrize("kind", ["bpe", "characters"])
def test_the_page_in_the_folder_tells_the_truth(engine: str, kind: Kind, tmp_path: Path) -> None:
    pytest.importorskip({"hf": "transformers"}.get(engine, engine))
    trained = made(TIED, True, kind)
    trained.save(tmp_path / "model")
    out(engine, tmp_path / "model", tmp_path / "ported")
    page = (tmp_path / "ported" / "README.md").read_text(encoding="utf-8")
    code = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[0].replace("a text", TEXTS[0])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answer = trained.run([TEXTS[0]], wish=Wish(max_length=trained.config.data.max_target))[0].text
    assert done.stdout.strip() in (answer.strip(), str([answer]))
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize("kind", ["bpe", "characters"])
def test_the_page_of_a_folder_with_any_name(kind: Kind, tmp_path: Path) -> None:
    place, model = tmp_path / 'w"x{y}' / "out\nwards\\", tmp_path / "m'`\udcff\""
    text = page("hf", made(TIED, True, kind), model, place)
    code = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[0]
    named = [node.value for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Constant)]
    assert str(place) in named
    assert (str(model) in named) == (kind == "characters")
    assert text.startswith("# out\\nwards\\, for Hugging Face")
    text.encode()


@pytest.mark.parametrize(
    ("words", "engine", "complaint"),
    [
        (["encoder.score=additive"], "hf", "encoder.score=additive, expected scaled"),
        (["decoder.norm=rms"], "hf", "decoder.norm=rms, expected layer"),
        (["decoder.gated=true"], "hf", "decoder.gated=true, expected false"),
        (["decoder.position=rotary"], "hf", "decoder.position=rotary, expected sinusoidal or learned or none"),
        (["encoder.norm_first=false"], "hf", "encoder.norm_first=false and decoder.norm_first=true"),
        (["decoder.copy=true"], "hf", "decoder.copy=true: Hugging Face"),
        (["decoder.copy=true"], "ctranslate2", "decoder.copy=true: CTranslate2 has no head that copies"),
        (["decoder.position=alibi"], "ctranslate2", "decoder.position=alibi, expected"),
        (["decoder.projections=false"], "ctranslate2", "decoder.projections=false, expected true"),
    ],
)
def test_what_an_engine_has_not_is_refused_by_name(
    words: list[str], engine: str, complaint: str, tmp_path: Path
) -> None:
    made(words, True).save(tmp_path / "model")
    with pytest.raises(UsageError, match=re.escape(complaint)):
        out(engine, tmp_path / "model", tmp_path / "ported")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_other_models_engines_and_folders_are_refused(tmp_path: Path) -> None:
    source = Tokenizer.learn(TEXTS, "bpe", 300)
    c = config.resolve("rnn-attention", None, ["encoder.width=8", "decoder.width=8"])
    recurrent = Trained(c, Vocabulary(source, source), build(c, source.size, source.size))
    recurrent.save(tmp_path / "model")
    with pytest.raises(UsageError, match="kind=recurrent"):
        out("hf", tmp_path / "model", tmp_path / "ported")
    with pytest.raises(UsageError, match="did you mean ctranslate2"):
        out("ctranslate", tmp_path / "model", tmp_path / "ported")
    with pytest.raises(UsageError, match="is there already"):
        out("hf", tmp_path / "model", tmp_path / "model")
