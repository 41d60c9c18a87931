"""A config and what was said in, what a search may vary out; and values of these in, the config of a trial out.

Nothing that somebody has said is varied, and nothing that this config does not have. Sizes are told by how they differ
from the first trial (twice as wide, a layer more), so that they mean the same for another preset.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from regard import config
from regard.config import Config, Tree
from regard.errors import ConfigError

PRESETS = ("rnn-attention", "transformer")  # to turn text into text; which one is better depends on the data
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

    @property
    def start(self) -> Values:
        """The values of the first trial."""
        return {setting.name: setting.first for setting in self.settings}

    def config(self, values: Mapping[str, Value]) -> Config:
        """The config of a trial; a ConfigError if there is none."""
        other = {name: value for name, value in values.items() if value != self.start[name]}
        if not other:
            return self.first
        tree = config.to_tree(self.first)
        if "preset" in other:
            tree = with_preset(tree, str(other["preset"]), self.said)
        for name, value in other.items():
            if name != "preset":
                tree = changed(tree, name, value, self.said)
        made = config.check_tree(tree, "trial")
        self.check(made)
        return made

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


def space(first: Config, said: Tree, named: bool, check: Callable[[Config], None] = lambda c: None) -> Space:
    """What may be varied around a config: all that nobody has said, that it has, and that leads to another config.

    `named` = somebody has named a preset; it is not changed then.
    """
    bare = Space(first, said, tuple(candidates(first, said, named)), check)
    kept = []
    for setting in bare.settings:
        choices = tuple(value for value in setting.choices if bare.possible({**bare.start, setting.name: value}))
        if not setting.choices or len(choices) > 1:
            kept.append(Setting(setting.name, setting.first, choices, setting.low, setting.high, setting.log))
    return Space(first, said, tuple(kept), check)


def candidates(c: Config, said: Tree, named: bool) -> Iterator[Setting]:
    """What could be varied, the most telling first."""
    t, train = c.train, section(said, "train")
    if "learning_rate" not in train:
        rate = t.learning_rate
        low, high = (float(f"{bound:.2g}") for bound in (rate / RATES, rate * RATES))  # as proposals are rounded
        yield Setting("learning rate", rate, low=low, high=high, log=True)
    kinds = [side for side in ("encoder", "decoder") if "kind" in section(said, side)]
    if c.task == "transduce" and not named and not kinds:
        yield Setting("preset", c.preset, unique(c.preset, *PRESETS))
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


def with_preset(tree: Tree, name: str, said: Tree) -> Tree:
    """The networks of another preset, with all that does not belong to networks, and what was said of them."""
    preset = config.preset_says(name)
    made = {**tree, "preset": name, "about": preset.get("about", "")}
    for side in ("encoder", "decoder"):
        kept = {key: value for key, value in tree[side].items() if key in ("dropout", "copy")}
        made[side] = {**preset[side], **kept, **section(said, side)}
    return config.to_tree(config.check_tree(made, "trial"))  # with all that a preset leaves to the defaults


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
