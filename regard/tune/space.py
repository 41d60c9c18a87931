"""A config and what was said in, what a search may vary out; and values of these in, the config of a trial out.

Nothing that somebody has said is varied, and nothing that this config does not have. Sizes are told by how they differ
from the first trial (twice as wide, a layer more), so that they mean the same for another preset, which has a config of
its own to begin with.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from regard import config
from regard.config import Config, Tree
from regard.errors import ConfigError

SMOOTHED = tuple(task for task in config.TASKS if task not in ("embed", "extract"))  # a loss that can be smoothed
RATES = 4.0  # a learning rate is at most so many times higher or lower
DROPOUT = 0.5  # at most
SCALED = ("width", "feedforward", "embedding")  # what grows with a network

Value = float | int | str | bool
Values = dict[str, Value]


@dataclass(frozen=True)
class Setting:
    """One thing that is varied: what it is in the first trial, and its choices, or else its bounds."""

    name: str
    first: Value
    choices: tuple[Value, ...] = ()
    low: float = 0.0
    high: float = 0.0
    log: bool = False


@dataclass(frozen=True)
class Space:
    """All that is varied around the config of the first trial."""

    first: Config
    said: Tree
    settings: tuple[Setting, ...]
    check: Callable[[Config], None]  # refuses what the run can not be, its settings all being right
    others: Mapping[str, Config] = field(default_factory=dict)  # where the first trial has another preset, by its name

    @property
    def start(self) -> Values:
        """The values of the first trial."""
        return {setting.name: setting.first for setting in self.settings}

    def config(self, values: Mapping[str, Value]) -> Config:
        """The config of a trial; a ConfigError if there is none."""
        other = {name: value for name, value in values.items() if value != self.start[name]}
        if not other:
            return self.first
        ground = self.others[str(other.pop("preset"))] if "preset" in other else self.first
        if "learning rate" in other:
            other["learning rate"] = self.rate(ground, float(other["learning rate"]))
        tree = config.to_tree(ground)
        for name, value in other.items():
            tree = changed(tree, name, value, self.said)
        made = config.check_tree(tree, "trial")
        self.check(made)
        return made

    def rate(self, ground: Config, value: float) -> float:
        """As many times that of another preset as it is times that of the first trial."""
        return float(f"{value * ground.train.learning_rate / self.first.train.learning_rate:.6g}")

    def possible(self, values: Mapping[str, Value]) -> bool:
        try:
            self.config(values)
        except ConfigError:
            return False
        return True

    def told(self, values: Mapping[str, Value]) -> str:
        """What differs from the first trial, for a person: `learning rate 0.0031, width 256`."""
        made = self.config(values)
        differs = [name for name, value in values.items() if value != self.start[name]]
        return ", ".join(f"{name} {' and '.join(dict.fromkeys(settings(made, name).values()))}" for name in differs)

    def words(self, values: Mapping[str, Value]) -> dict[str, str]:
        """All that is varied, as a trial has it, by the names that --set takes."""
        made = self.config(values)
        return {word: value for name in values for word, value in settings(made, name).items()}


def space(
    first: Config, said: Tree, others: Mapping[str, Config], check: Callable[[Config], None] = lambda c: None
) -> Space:
    """What may be varied around a config: all that nobody has said, that it has, and that leads to another config.

    `others` are configs of other presets, if the preset may be another one.
    """
    bare = Space(first, said, tuple(candidates(first, said, others)), check, others)
    kept = []
    for setting in bare.settings:
        choices = tuple(value for value in setting.choices if bare.possible({**bare.start, setting.name: value}))
        if not setting.choices or len(choices) > 1:
            kept.append(Setting(setting.name, setting.first, choices, setting.low, setting.high, setting.log))
    return Space(first, said, tuple(kept), check, others)


def candidates(c: Config, said: Tree, others: Mapping[str, Config]) -> Iterator[Setting]:
    """What could be varied, the most telling first."""
    t, train = c.train, section(said, "train")
    if "learning_rate" not in train:
        rate = t.learning_rate
        low, high = (float(f"{bound:.2g}") for bound in (rate / RATES, rate * RATES))  # as proposals are rounded
        yield Setting("learning rate", rate, low=low, high=high, log=True)
    if others:
        yield Setting("preset", c.preset, unique(c.preset, *others))
    if sides(c, said, "dropout"):
        first = getattr(getattr(c, sides(c, said, "dropout")[0]), "dropout", 0.0)
        yield Setting("dropout", first, low=0.0, high=max(first, DROPOUT))
    if sides(c, said, "width") == sides(c, {}, "width"):  # both or none: they may have to fit
        yield Setting("width", 1.0, (1.0, 0.5, 2.0))
    if sides(c, said, "layers"):
        yield Setting("layers", 0, (0, -1, 1))
    if "tokens_per_batch" not in train:
        batch = t.tokens_per_batch
        yield Setting("tokens per batch", batch, unique(batch, batch // 2, batch * 2))
    if "label_smoothing" not in train and c.task in SMOOTHED and not c.head.crf:
        yield Setting("label smoothing", t.label_smoothing, unique(t.label_smoothing, 0.0, 0.1))
    if isinstance(c.decoder, config.Copying) and "copy" not in section(said, "decoder"):
        yield Setting("copy", c.copies, (c.copies, not c.copies))


def sides(c: Config, said: Tree, name: str) -> list[str]:
    """The networks that have a setting of which nobody has said anything."""
    return [side for side in ("encoder", "decoder")
            if hasattr(getattr(c, side), name) and name not in section(said, side)]  # fmt: skip


def section(said: Tree, name: str) -> dict[str, Any]:
    found = said.get(name, {})
    return found if isinstance(found, dict) else {}


def unique(*values: Value) -> tuple[Value, ...]:
    return tuple(dict.fromkeys(values))


# ── one trial ────────────────────────────────────────────────────────────────────────────────────────────────────────


def changed(tree: Tree, name: str, value: Any, said: Tree) -> Tree:
    """One setting changed, on each side where nobody has said it."""
    match name:
        case "learning rate" | "tokens per batch" | "label smoothing":
            return {**tree, "train": {**tree["train"], name.replace(" ", "_"): value}}
        case "copy":
            return {**tree, "decoder": {**tree["decoder"], "copy": value}}
        case "width":
            return each_side(tree, said, "width", lambda side: scaled(side, value))
        case "layers":
            return each_side(tree, said, "layers", lambda side: {**side, "layers": side["layers"] + value})
    embedding = tree["embedding"]
    if embedding.get("dropout") and "dropout" not in section(said, "embedding"):  # goes along with that of the sides
        tree = {**tree, "embedding": {**embedding, "dropout": value}}
    return each_side(tree, said, "dropout", lambda side: {**side, "dropout": value})


def each_side(tree: Tree, said: Tree, name: str, change: Callable[[Tree], Tree]) -> Tree:
    there = [side for side in ("encoder", "decoder") if name in tree[side] and name not in section(said, side)]
    return {**tree, **{side: change(tree[side]) for side in there}}


def scaled(side: Tree, factor: float) -> Tree:
    return {**side, **{name: int(side[name] * factor) for name in SCALED if name in side}}


def settings(c: Config, name: str) -> dict[str, str]:
    """What one thing that is varied is in a config, by its whole name; of both sides, if both have it."""
    match name:
        case "preset":
            return {"preset": c.preset}
        case "copy":
            return {"decoder.copy": str(c.copies).lower()}
        case "learning rate" | "tokens per batch" | "label smoothing":
            word = name.replace(" ", "_")
            return {f"train.{word}": f"{getattr(c.train, word):g}"}
    return {f"{side}.{name}": f"{getattr(getattr(c, side), name):g}" for side in sides(c, {}, name)}
