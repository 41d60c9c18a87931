"""A model folder in, a folder for another engine out, with a page in it that says how it is used."""

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from regard.config import nearest
from regard.data.read import escape
from regard.errors import RegardError, UsageError
from regard.folder import write_file
from regard.port import ctranslate2, hf
from regard.port.fit import never
from regard.trained import Trained

HF_WITH_TOKENS = """\
import torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

model = AutoModelForSeq2SeqLM.from_pretrained({folder!r})
tokenizer = AutoTokenizer.from_pretrained({folder!r})
batch = tokenizer(["a text"], return_tensors="pt", padding=True)
with torch.inference_mode():
    written = model.generate(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"])
print(tokenizer.batch_decode(written, skip_special_tokens=True))
"""
HF_WITH_REGARD = """\
import regard
import torch
from transformers import AutoModelForSeq2SeqLM

model = AutoModelForSeq2SeqLM.from_pretrained({folder!r})
ours = regard.load({model!r})  # for the tokens, which a tokenizer of transformers can not express
source = torch.tensor([ours.item("a text").source])
with torch.inference_mode():
    written = model.generate(input_ids=source, attention_mask=torch.ones_like(source))
print(ours.vocabulary.target.decode(written[0].tolist()))
"""
CTRANSLATE2 = """\
import ctranslate2
import regard
from regard.port.ctranslate2 import names

ours = regard.load({model!r})  # for the tokens
source, target = names(ours.vocabulary.source), names(ours.vocabulary.target)
never = [[target[id]] for id in {never}]
translator = ctranslate2.Translator({folder!r}, compute_type="float32")  # or int8
tokens = [source[id] for id in ours.item("a text").source[:-1]]  # it puts the end after them by itself
found = translator.translate_batch([tokens], beam_size={beam}, length_penalty={penalty}, suppress_sequences=never,
                                   min_decoding_length=0, max_decoding_length={longest})
print(ours.vocabulary.target.decode([target.index(name) for name in found[0].hypotheses[0]]))
"""
PAGE = """\
# {name}, for {engine}

Written by `regard port out {word}` from the model `{model}`: the same weights in fp32, under that engine's names.

```python
{code}```

Greedy, it writes what regard writes, but for what rounding may turn where two tokens are as good as equal. Every engine
has a beam search of its own, with other rules of when to stop, so a beam may find another text. The longest output is
{longest} tokens here; regard also keeps it within {ratio:g} × the length of the source + {extra}.
"""


@dataclass(frozen=True)
class Way:
    """One engine: its name, what writes its folder, and a few lines of code that use it."""

    name: str
    write: Callable[[Trained, Path], None]
    code: Callable[[Trained], str]


WAYS = {
    "hf": Way(hf.HF.name, hf.write, lambda trained: HF_WITH_TOKENS if hf.has_tokenizer(trained) else HF_WITH_REGARD),
    "ctranslate2": Way(ctranslate2.CTRANSLATE2.name, ctranslate2.write, lambda _: CTRANSLATE2),
}


def out(engine: str, model: str | Path, folder: str | Path) -> None:
    """Writes `folder`, which must not be there yet, from the model folder `model`."""
    if engine not in WAYS:
        raise UsageError(f"unknown engine {engine!r}{nearest(engine, WAYS)}; expected {' or '.join(WAYS)}")
    place = Path(folder)
    if place.exists() and not (place.is_dir() and not any(place.iterdir())):
        raise UsageError(f"{place}: is there already; name a folder that is not")
    trained = Trained.load(model)
    beside = new_folder(place)
    try:
        WAYS[engine].write(trained, beside)
        write_file(beside / "README.md", page(engine, trained, model, place).encode())
        os.replace(beside, place)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise


def new_folder(place: Path) -> Path:
    """A folder beside its place, so that what is found at the place is always whole."""
    try:
        place.resolve().parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.resolve().parent))
        beside.chmod(0o755)
    except OSError as error:
        raise RegardError(f"{place}: can not be made: {error.strerror}") from None
    return beside


def page(engine: str, trained: Trained, model: str | Path, place: Path) -> str:
    """README.md of the folder."""
    way, c = WAYS[engine], trained.config
    code = way.code(trained).format(
        folder=str(place),
        model=str(model),
        never=never(trained),
        beam=c.search.beam,
        penalty=c.search.length_penalty,
        longest=c.data.max_target,
    )
    return PAGE.format(
        name=escape(place.name),
        engine=way.name,
        word=engine,
        model=escape(str(model)),
        code=code,
        longest=c.data.max_target,
        ratio=c.search.length_ratio,
        extra=c.search.length_extra,
    )
