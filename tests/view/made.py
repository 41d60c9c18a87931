"""A task and a text in, a record made up for the page out: the right form, weights from a seed, no model behind it."""

import base64
import io
import re
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Json = dict[str, Any]
WRITING = ("transduce", "caption", "generate")
STAYING = ("tag", "fill", "extract")  # an erased token leaves its place
END = {"text": "<end>", "id": 3}


@dataclass(frozen=True)
class Shape:
    """How a made-up model is built: which maps it has, from what side to what side, and how many heads."""

    maps: tuple[tuple[str, str, str, int], ...]
    task: str = "transduce"
    preset: str = "transformer"
    letters: bool = True


CROSS = tuple((f"decoder.{layer}.cross", "target", "source", 4) for layer in range(2))
SELF = tuple((f"encoder.{layer}.self", "source", "source", 4) for layer in range(2))
TURN = tuple((f"decoder.{layer}.self", "target", "written", 4) for layer in range(2))

SHAPES = {
    "dates": Shape((("decoder.0.cross", "target", "source", 1),), preset="rnn-attention"),
    "dates-transformer": Shape(SELF + TURN + CROSS),
    "wide": Shape(tuple((f"decoder.{layer}.cross", "target", "source", 8) for layer in range(4))),
    "dates-vector": Shape((), preset="rnn"),
    "dates-row": Shape((("decoder.0.self", "row", "row", 4), ("decoder.1.self", "row", "row", 4)), preset="decoder"),
    "topics": Shape((*SELF, ("head", "target", "source", 1)), "classify", "attention-encoder", letters=False),
    "names": Shape(SELF, "tag", "encoder", letters=False),
    "holes": Shape(SELF, "fill", "encoder", letters=False),
    "answers": Shape(SELF, "extract", "encoder", letters=False),
    "tale": Shape((("decoder.0.self", "row", "row", 4), ("decoder.1.self", "row", "row", 4)), "generate", "decoder"),
    "pictures": Shape((("decoder.0.cross", "target", "source", 1),), "caption", "caption", letters=False),
    "near": Shape(SELF, "embed", "encoder", letters=False),
}
MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
          "November", "December"]  # fmt: skip


def tokens(text: str, letters: bool) -> list[Json]:
    """Letters, or words with what stands after them left alone; offsets in code points."""
    pattern = r"[^\t]" if letters else r"<[a-z]+>|\w{1,5}|[^\w\s]"
    return [
        {"text": found[0], "start": found.start(), "end": found.end(), "id": 4 + zlib.crc32(found[0].encode()) % 900}
        for found in re.finditer(pattern, text)
    ]


def written(text: str) -> str:
    """The date in a text as it is written in figures; anything else turned round."""
    year, day = re.search(r"\d{4}", text), re.search(r"\b(\d{1,2})(?!\d)", text)
    month = next((number for number, name in enumerate(MONTHS, 1) if name[:3].lower() in text.lower()), None)
    if not (year or day or month):
        return text[::-1].strip()
    return f"{year[0] if year else '0000'}-{month or 0:02d}-{int(day[1]) if day else 0:02d}"


def attention(rows: int, columns: int, random: np.random.Generator, square: bool) -> NDArray[np.float64]:
    """Rows that sum to one, mostly near a line across the map."""
    line = np.arange(rows)[:, None] * max(1, columns - 1) / max(1, rows - 1)
    sharp, shift = random.uniform(0.1, 1.2), random.normal(0, 1.5)
    raw = -sharp * np.abs(np.arange(columns)[None] - line - shift) + random.normal(0, 0.7, (rows, columns))
    if square:
        raw = np.where(np.tril(np.ones((rows, columns), bool)), raw, -1e9)
    weights = np.exp(raw - raw.max(1, keepdims=True))
    return np.asarray(weights / weights.sum(1, keepdims=True))


def alternatives(target: list[Json], random: np.random.Generator) -> tuple[list[list[Json]], list[float]]:
    rows, chosen = [], []
    for token in target:
        sure = float(random.beta(6, 1))
        rest = random.dirichlet(np.ones(5)) * (1 - sure)
        others = [
            {"text": chr(97 + (token["id"] + i) % 26), "id": 901 + i, "probability": float(share)}
            for i, share in enumerate(sorted(rest, reverse=True))
        ]
        best = {"text": token["text"], "id": token["id"], "probability": sure}
        rows.append(sorted([best, *others], key=lambda one: -one["probability"]))
        chosen.append(sure)
    return rows, chosen


def beam(target: list[Json], probabilities: list[float], random: np.random.Generator, width: int = 3) -> list[Json]:
    """The way of the output with others that are tried and given up beside it."""
    nodes: list[Json] = []
    alive = [-1]
    total = 0.0
    for step, (token, probability) in enumerate(zip(target, probabilities, strict=True)):
        total += float(np.log(probability))
        begun = len(nodes)
        nodes.append(
            {
                "parent": alive[0],
                "token": token["text"],
                "id": token["id"],
                "step": step,
                "ended": token["text"] == "<end>",
                "log": float(np.log(probability)),
                "sum": total,
                "kept": True,
                "best": True,
            }
        )
        for rank in range(1, width + 2):
            log = float(-random.gamma(2, 1) - 1)
            parent = alive[rank % len(alive)]
            nodes.append(
                {
                    "parent": parent,
                    "token": chr(97 + (token["id"] + rank) % 26),
                    "id": 900 + rank,
                    "step": step,
                    "ended": False,
                    "log": log,
                    "sum": total + log,
                    "kept": rank < width,
                    "best": False,
                }
            )
        alive = list(range(begun, begun + width))
    return nodes


def picture() -> Json:
    """A disc on a ground, 48 × 48, read as 6 × 6 places."""
    y, x = np.mgrid[:48, :48]
    pixels = np.stack([40 + 2 * x, 90 + 2 * y, 160 - x], -1).astype(np.uint8)
    pixels[(x - 30) ** 2 + (y - 18) ** 2 < 90] = (230, 180, 60)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    data = "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
    return {"data": data, "width": 48, "height": 48, "rows": 6, "columns": 6}


def answer(shape: Shape, text: str, source: list[Json]) -> tuple[str, list[Json], list[Any] | None, list[Any]]:
    """Output, its tokens, where they stand, and the chances of classes."""
    words = [i for i, token in enumerate(source) if re.match(r"\w", token["text"])]
    match shape.task:
        case "classify":
            label = {"text": "weather", "start": 0, "end": 7, "id": 5}
            return "weather", [label], None, [["weather", 0.81], ["music", 0.12], ["books", 0.05], ["other", 0.02]]
        case "tag":
            labels = ["B-place" if source[i]["text"][0].isupper() else "O" for i in words]
            return " ".join(labels), placed(labels, " "), [[i, i] for i in words], []
        case "fill":
            holes = [i for i, token in enumerate(source) if token["text"] == "<mask>"]
            return "river" * len(holes), placed(["river"] * len(holes), ""), [[i, i] for i in holes], []
        case "extract":
            after = [i for i in words if source[i]["start"] > text.find("\t")] or words
            first, last = after[len(after) // 2], after[min(len(after) - 1, len(after) // 2 + 1)]
            piece = text[source[first]["start"] : source[last]["end"]]
            return piece, placed([source[first]["text"], source[last]["text"]], " "), [[first, first], [last, last]], []
        case "embed":
            return "", [], None, []
        case "caption":
            output = "a yellow disc on a blue ground"
        case "generate":
            output = " there was a small house"
        case _:
            output = written(text)
    spelled = tokens(output, shape.letters)
    return output, [*spelled, {**END, "start": len(output), "end": len(output)}], None, []


def placed(words: list[str], joint: str) -> list[Json]:
    starts = np.cumsum([0, *[len(word) + len(joint) for word in words]])
    return [
        {"text": word, "start": int(start), "end": int(start) + len(word), "id": 5 + i}
        for i, (word, start) in enumerate(zip(words, starts, strict=False))
    ]


def made(name: str, text: str, change: Json | None = None, packed: bool = False, derive: bool = True) -> Json:
    """The record of `text` through the made-up model `name`; the same words give the same record."""
    shape = SHAPES[name]
    random = np.random.default_rng(zlib.crc32(f"{name} {text} {change}".encode()))
    photo = picture() if shape.task == "caption" else None
    source = places() if photo else tokens(text, shape.letters)
    gone = set((change or {}).get("erase", []))
    left = "".join("·" if any(source[i]["start"] <= at < source[i]["end"] for i in gone) else letter
                   for at, letter in enumerate(text))  # fmt: skip
    output, target, stands, chances = answer(shape, left, source)
    source = source if photo or shape.task in STAYING else [one for i, one in enumerate(source) if i not in gone]
    sign = [] if shape.task == "generate" else [{"text": "<start>", "start": 0, "end": 0, "id": 1}]
    written = [*sign, *target[:-1]] if shape.task in WRITING else []
    lines = {"source": source, "target": target, "written": written, "row": [*source, *written]}
    sizes = {side: len(line) for side, line in lines.items()}
    others, chosen = alternatives(target, random)
    if stands and shape.task == "extract":  # what could be begun or ended with is named by its place in the source
        others = [[{**one, "id": (at[0] + i) % len(source)} for i, one in enumerate(place)]
                  for place, at in zip(others, stands, strict=True)]  # fmt: skip
    structure = (
        "read" if shape.task not in WRITING else "row" if "row" in {side for _, side, _, _ in shape.maps} else "pair"
    )
    return {
        "kind": "record", "format": 1, "structure": structure, "text": text, "picture": photo, "source": source,
        "model": {"name": name, "task": shape.task, "preset": shape.preset, "parameters": 123456},
        "output": output, "target": target, "written": written, "at": stands, "chances": chances,
        "first": sizes["row"] - len(target) if structure == "row" else 0,
        "probabilities": chosen, "alternatives": others,
        "confidence": float(np.prod(chosen)) if chosen else 0.0, "score": -0.1,
        "answers": [{"text": output, "score": -0.1, "confidence": 0.9}], "change": change,
        "maps": [drawn(map, sizes, random, packed) for map in shape.maps],
        "beam": beam(target, chosen, random) if shape.task in WRITING else None,
        "seconds": {"search": 0.01, "look": 0.004},
        "derived": derived(shape, sizes, random, packed) if derive and target else None,
        "carried": [{"start": found.start(), "end": found.end(), "weight": 0.4 / 2**place}
                    for place, found in enumerate(re.finditer(r"\S+", text))] if shape.task == "embed" else [],
    }  # fmt: skip


def places() -> list[Json]:
    """The places of a picture, row by row."""
    return [{"text": f"{i // 6},{i % 6}", "start": 0, "end": 0, "id": i} for i in range(36)]


def drawn(map: tuple[str, str, str, int], sizes: dict[str, int], random: np.random.Generator, packed: bool) -> Json:
    name, queries, keys, heads = map
    back = queries != "source" and keys != "source"  # only what is already there is looked at
    weights = np.stack([attention(sizes[queries], sizes[keys], random, back) for _ in range(heads)])
    return {"name": name, "queries": queries, "keys": keys, "heads": heads, "weights": packing(weights, packed)}


def packing(numbers: NDArray[np.float64], packed: bool) -> Any:
    if not packed:
        return numbers.tolist()
    return {"shape": list(numbers.shape), "float32": base64.b64encode(numbers.astype("<f4").tobytes()).decode()}


def derived(shape: Shape, sizes: dict[str, int], random: np.random.Generator, packed: bool) -> Json:
    target, source = sizes["target"], sizes["source"]
    heads = [(name, count) for name, _, _, count in shape.maps]
    return {
        "erasure": packing(random.gamma(0.5, 1, (target, source)), packed),
        "gradient": packing(random.dirichlet(np.ones(max(1, source)), target), packed),
        "rollout": packing(attention(target, source, random, False), packed) if heads else None,
        "entropy": [{"name": name, "heads": random.uniform(0, 3, count).tolist()} for name, count in heads],
        "importance": [{"name": name, "heads": random.uniform(0, 0.4, count).tolist()} for name, count in heads],
        "agreement": {"erasure": 0.12, "gradient": 0.3} if heads else {"erasure": None, "gradient": None},
    }


CARD = """# dates

Reads a date, writes it **in figures**.

## Use

- `regard run dates`
- trained on made-up dates

| metric | value |
|---|---|
| exact | 97.5 `nrefs:1\\|case:mixed` |

```
regard demo
```

    true label  given:  1  2
      1  bad         34  ·
      2 good          · 19
"""


def failed() -> Json:
    """One cause that stands out, and one that does not."""
    shares = {"inside": {"count": 35, "value": 51.4, "low": 35.6, "high": 67.0},
              "rest": {"count": 1150, "value": 81.7, "low": 73.7, "high": 87.7}}  # fmt: skip
    clear = {"kind": "long source", "said": "sources longer than 18 characters, the longest 23 %", **shares,
             "explains": 0.28, "stands_out": True, "examples": [["<b>9 May</b>", "2018-05-09", "2018-05-19"]],
             "cure": "add long examples"}  # fmt: skip
    dim = {**clear, "kind": "short source", "stands_out": False, "explains": 0.0}
    return {"unit": "examples", "rule": "outputs that are not exactly the target", "judged": 1185, "failed": 55,
            "causes": [clear, dim], "left_out": "", "said": "55 of 1,185 examples fail; 28 % of that goes with long "
            "ones"}  # fmt: skip


def checked() -> Json:
    rules = [{"name": name, "scores": [["exact", value], ["chrf", 20.0]]}
             for name, value in (("copy the input", 2.0), ("nearest neighbour", 4.25))]  # fmt: skip
    finding = {"kind": "mojibake", "level": "trouble", "count": 9, "of": 2850, "lines": [1, 2, 3, 4, 5],
               "said": "with letters that were read in the wrong encoding", "example": '"Ã©" for "é"',
               "cure": "read the original as UTF-8"}  # fmt: skip
    return {"examples": 2850, "ceiling": 0.98, "findings": [finding],
            "baselines": {"rules": rules, "held": 150, "of": 300, "known": 2850, "searched": 2000}}  # fmt: skip


def report() -> Json:
    random = np.random.default_rng(7)
    examples = [
        {
            "source": f"{i} May 2018",
            "target": f"2018-05-{i:02d}",
            "output": f"2018-05-{i:02d}",
            "confidence": 0.99 - i / 100,
            "right": True,
        }
        for i in range(1, 6)
    ]
    worst = [{**one, "output": "2018-03-" + one["target"][-2:], "confidence": 0.4, "right": False} for one in examples]
    return {
        "kind": "report",
        "format": 1,
        "model": {"name": "dates", "task": "transduce", "preset": "rnn-attention", "parameters": 123456},
        "made": "regard 0.1.0, torch 2.13.0, 2026-11-16",
        "failures": failed(),
        "check": checked(),
        "scores": [
            {"name": "exact", "value": 97.5, "low": 96.2, "high": 98.6, "percent": True, "signature": ""},
            {
                "name": "chrF",
                "value": 99.1,
                "low": 98.6,
                "high": 99.5,
                "percent": True,
                "signature": "chrF2|nrefs:1|case:mixed",
            },
        ],
        "facts": [["perplexity", 1.21], ["tokens a second", 5210.0]],
        "curves": {
            "metric": "exact",
            "points": [
                {"step": 100 * i, "loss": 2.0 / i, "valid_loss": 2.2 / i + 0.05, "valid_exact": 100 - 90 / i}
                for i in range(1, 21)
            ],
        },
        "examples": {"best": examples, "worst": worst},
        "by_length": {
            "metric": "exact",
            "bins": [
                {
                    "from": 8 * i + 1,
                    "to": 8 * i + 8,
                    "count": 40 - 5 * i,
                    "value": 99.0 - 3 * i,
                    "low": 95.0 - 5 * i,
                    "high": 100.0 - i,
                }
                for i in range(5)
            ],
        },
        "exposure": {
            "forced": 99.0,
            "free": 97.0,
            "left": 0.03,
            "returned": 0.4,
            "by_position": [
                {"position": i, "forced": 99.9 - 0.1 * i, "free": 99.9 - 0.4 * i, "count": 200} for i in range(1, 11)
            ],
        },
        "confusion": {"labels": ["weather", "music", "books"], "counts": [[40, 2, 1], [0, 38, 5], [3, 0, 44]]},
        "calibration": [
            {
                "from": i / 10,
                "to": (i + 1) / 10,
                "count": 10 + i,
                "sure": i / 10 + 0.05,
                "right": min(1.0, i / 10 + 0.05 + float(random.normal(0, 0.05))),
            }
            for i in range(3, 10)
        ],
        "data": [["training examples", "9,000"], ["longest source", "42"]],
        "card": CARD,
        "records": [made("dates-transformer", f"{i} {MONTHS[i % 12]} 20{i + 10}") for i in range(1, 21)],
    }


def lesson() -> Json:
    kinds = [
        (
            "rnn",
            "Two recurrent networks joined by one vector",
            "dates-vector",
            ("recurrent", "recurrent", False, "none", [1, 1], 1, True),
        ),
        (
            "rnn-context",
            "The vector is read again at each step",
            "dates-vector",
            ("recurrent", "recurrent with context", False, "none", [1, 1], 1, True),
        ),
        (
            "rnn-attention",
            "Attention: every step is looked back at",
            "dates",
            ("recurrent", "recurrent", True, "additive", [1, 1], 1, False),
        ),
        ("conv", "Windows instead of loops", "dates", ("convolution", "convolution", False, "dot", [3, 3], 1, False)),
        (
            "transformer",
            "Nothing but attention",
            "dates-transformer",
            ("attention", "attention", False, "dot", [2, 2], 4, False),
        ),
        ("decoder", "One stack for all", "dates-row", ("none", "attention", False, "dot", [0, 2], 4, False)),
    ]
    pages = []
    for name, title, model, config in kinds:
        keys = ("encoder", "decoder", "bidirectional", "attention", "layers", "heads", "bottleneck")
        curve = {
            "title": "right answers by source length",
            "x": "source tokens",
            "y": "exact, %",
            "command": "python -m bench.ladder",
            "series": [
                {"name": one, "points": [[8 * i, 100 - (4 + 5 * (one == "rnn")) * i] for i in range(1, 6)]}
                for one in ("rnn", name + " ")
            ],
        }
        sentences = [
            "The first network reads the text letter by letter and keeps one vector.",
            "The second network begins from this vector and writes.",
            "All that is known of the source must pass through it.",
        ]
        pages.append(
            {
                "name": name,
                "title": title,
                "sentences": sentences,
                "diagram": dict(zip(keys, config, strict=True)),
                "record": {**made(model, "Saturday 9th of May, 2018")},
                "curve": curve,
            }
        )
    return {"kind": "lesson", "example": "Saturday 9th of May, 2018", "command": "regard demo --all", "pages": pages}
