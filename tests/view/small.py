"""A task and a preset in, a model out that is small and was never trained; and a question for each task."""

from regard import config
from regard.data.read import Example
from regard.data.vocabulary import learn
from regard.models.build import build
from regard.trained import Trained

READING = {
    "classify": ([Example(("ab cd",), "x", 1), Example(("dc",), "y", 2)], "ab dc"),
    "tag": ([Example(("ab cd",), "x y", 1), Example(("dc",), "y", 2)], "ab dc"),
    "embed": ([Example(("ab cd",), "ab", 1)], "ab dc"),
    "fill": ([Example(("ab cd",), None, 1)], "ab[mask]d"),
    "extract": ([Example(("ab cd", "ab"), "cd", 1)], "ab cd\tdd"),
    "generate": ([Example(("ab cd",), None, 1)], "ab "),
}
SMALL = {"width": 16, "embedding": 16, "feedforward": 32, "heads": 2, "layers": 2, "kernel": 3, "dropout": 0.3}


def made(task: str, preset: str, *words: str) -> Trained:
    """A task with a preset, small and untrained."""
    examples = READING[task][0]
    asked = [f"task={task}", *(["generate.block=16"] if task == "generate" else []), *words]
    if task == "extract":
        asked += ["data.source=1,2", "data.target=3"]
    c = config.resolve(preset, None, asked)
    small = [f"{name}.{key}={value}" for name, side in (("encoder", c.encoder), ("decoder", c.decoder))
             for key, value in SMALL.items() if getattr(side, key, None) is not None
             and not (key == "heads" and getattr(side, key) == 1)]  # fmt: skip
    c = config.resolve(preset, None, [*asked, *small])
    vocabulary = learn(examples, c, [False] * len(examples[0].source))
    return Trained(c, vocabulary, build(c, vocabulary.source.size, vocabulary.target.size).eval())
