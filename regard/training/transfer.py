"""The folder of a trained model in, what a new run keeps of it out: the config of its body, its tokens, its weights.

The body is what reads: the source's embeddings and the encoder, or all of a decoder that stands alone. The head and the
output layer are made anew, unless the new task predicts the same tokens or labels as the old one by the same head.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import safetensors

from regard import config
from regard import folder as folders
from regard.config import Config, Tree
from regard.data.vocabulary import Vocabulary
from regard.errors import ConfigError, FolderError, UsageError
from regard.folder import Shapes, Weights
from regard.models.model import Model
from regard.training.home import BODY, Origin, read_start

READS = ("source_embedding.", "encoder.")
WRITES = ("target_embedding.", "decoder.")
SAME_TOKENS = ("output.", "head.")
LEAST = {"transduce": 4, "generate": 3}  # places: a token and the end of each side; a block of two and one more
FREE = ("dropout", "word_dropout", "tie_source", "tie_output", "copy")  # what the weights of a body do not know of
WORDS = {"transduce": "next token", "generate": "next token", "caption": "next token", "fill": "hidden token"}


@dataclass(frozen=True)
class Body:
    """A trained model that a new run starts from."""

    path: str  # as it was given
    config: Config
    vocabulary: Vocabulary
    weights: Weights
    data_hash: str | None  # of what it was trained on; none = its folder does not say

    @property
    def hash(self) -> str:
        """Of its weights and tokens: another body has another, wherever it lies."""
        return hashlib.sha256(
            folders.weights_bytes(self.weights) + folders.vocabulary_bytes(self.vocabulary)
        ).hexdigest()

    @property
    def reads_alone(self) -> bool:
        """Whether its decoder is all there is, and reads the source too."""
        return self.config.encoder.kind == "none"

    @property
    def numbered(self) -> bool:
        """Whether its decoder is all there is, and has a learned vector for each of its places."""
        return self.reads_alone and getattr(self.config.decoder, "position", "") == "learned"

    @property
    def writes(self) -> bool:
        return self.config.decoder.kind != "none"

    def resolve(self, preset: str | None, file: str | Path | None, words: list[str]) -> Config:
        """As `config.resolve`, with this body in place of a preset."""
        return resolve(self, preset, file, words)


def read_body(path: str | Path) -> Body:
    """A model folder, checked as whoever loads it checks it."""
    saved = folders.load(Path(path))
    return Body(str(path), saved.config, saved.vocabulary, dict(saved.model.named_parameters()), data_hash(Path(path)))


def data_hash(folder: Path) -> str | None:
    """Of what the model in this folder was trained on, if it was saved by a run."""
    try:
        return read_start(folder).data_hash
    except FolderError:
        return None


# ── the config ───────────────────────────────────────────────────────────────────────────────────────────────────────


def resolve(body: Body, preset: str | None = None, file: str | Path | None = None, words: list[str] | None = None,
            ) -> Config:  # fmt: skip
    """The config of a body for a new task, with a file and words laid over it; nothing may change the body itself.

    What belonged to the old run and its data (train, search, data) is not taken over.
    """
    from_file = config.read_toml(Path(file)) if file else {}
    task = str(config.asked_task(from_file, words or []) or body.config.task)
    tree = fitted(body, task, preset or from_file.get("preset"))
    tree = config.lay(tree, {key: value for key, value in from_file.items() if key != "preset"})
    for word in words or []:
        tree = config.lay(tree, config.parse_word(word))
    if task not in config.READING and tree["decoder"].get("kind") == "none":
        raise ConfigError(f"decoder.kind: the task {task} writes a target, and the model in {body.path} has no "
                          "decoder; name one: --preset transformer, or --set decoder.kind=attention")  # fmt: skip
    c = config.check_tree(tree, str(file) if file else "config")
    refuse_another_body(c, body)
    return c


def fitted(body: Body, task: str, preset: str | None) -> Tree:
    """The sides, embeddings and tokens of the body for this task; of a preset a decoder where one is to be added."""
    refuse_misfit(body, task)
    whole = config.to_tree(body.config)
    kept = {name: whole[name] for name in ("about", "preset", "task", "tokens", "encoder", "decoder", "embedding")}
    tokens = {**whole["tokens"], "shared": True} if body.reads_alone else whole["tokens"]
    tree = config.for_task(kept, task) | {"tokens": tokens, "data": lengths(body, task)}
    if task == "generate" and body.numbered:
        again = body.config.task == "generate"
        tree["generate"] = whole["generate"] if again else {"block": body.config.places - 1, "carry": 1}
    if preset is None:
        known = body.config.preset in config.presets()
        return tree | train_of(body.config.preset) if known else tree
    if body.writes or task in config.READING:
        raise UsageError(f"--preset {preset}: the body is that of the model in {body.path}; with --from a preset only "
                         "adds a decoder, where the task writes and the model has none")  # fmt: skip
    added = config.parse_toml(config.preset_text(preset), f"preset {preset}")
    return tree | {"preset": preset, "about": added.get("about", ""), "decoder": added["decoder"]} | train_of(preset)


def train_of(preset: str) -> Tree:
    """How models of a preset are trained when nobody says otherwise."""
    tree = config.parse_toml(config.preset_text(preset), f"preset {preset}")
    return {"train": tree["train"]} if "train" in tree else {}


def lengths(body: Body, task: str) -> Tree:
    """Limits of the data: where positions are learned there are vectors for no more places than the body had."""
    usual = {"max_source": config.LONG} if body.config.tokens.source == "spelled" else {}
    sides = [body.config.encoder, body.config.decoder]
    if not any(getattr(side, "position", "") == "learned" for side in sides):
        return usual
    if body.numbered and task != body.config.task:
        return divided(body.config.places, task)
    names = ("max_source",) if task in config.READING else ("max_source", "max_target")
    return {name: getattr(body.config.data, name) for name in names}


def divided(places: int, task: str) -> Tree:
    """Limits of the data that fill the places of a decoder alone: half of them for the target, if one is written."""
    if task == "generate":  # its blocks fill them
        return {}
    if task in config.READING:
        return {"max_source": places - 1}
    written = places // 2
    return {"max_source": places - written - 1, "max_target": written - 1}


def refuse_misfit(body: Body, task: str) -> None:
    """Tasks that have no use for what the body is."""
    if (body.config.encoder.kind == "image") != (task == "caption"):
        reads = "pictures" if body.config.encoder.kind == "image" else "text"
        raise UsageError(f"--from {body.path}: this model reads {reads}, which is of no use to the task {task}")
    if task == "generate" and not body.reads_alone:
        raise UsageError(f"--from {body.path}: the body of this model is an encoder, and the task generate has no "
                         "source to encode; expected a model that is a decoder alone")  # fmt: skip
    if task == "fill" and body.reads_alone:
        raise UsageError(f"--from {body.path}: this model reads from left to right, and the task fill looks at both "
                         "sides of a hidden token; expected a model with an encoder")  # fmt: skip
    least = LEAST.get(task, 0)
    if body.numbered and body.config.places < least:
        raise UsageError(f"--from {body.path}: this model has learned positions for {body.config.places} places, and "
                         f"the task {task} needs at least {least}")  # fmt: skip


def refuse_another_body(c: Config, body: Body) -> None:
    """What would change the kept weights, or what a token is, is refused with what the body has."""
    old = body.config
    pairs = [each for side in sides(c, body) for each in settings(side, getattr(c, side), getattr(old, side))]
    pairs += [(f"tokens.{name}", getattr(c.tokens, name), getattr(old.tokens, name)) for name in ("source", "size")]
    pairs += settings("embedding", c.embedding, old.embedding)
    if not body.reads_alone and c.task not in config.LABELLED:
        pairs += [("tokens.shared", c.tokens.shared, old.tokens.shared)]
    if body.numbered:
        refuse_other_places(c, body)
    elif "learned" in [getattr(getattr(old, side), "position", "") for side in sides(c, body)]:
        pairs += [(f"data.{name}", getattr(c.data, name), getattr(old.data, name)) for name in lengths(body, c.task)]
    for name, found, had in pairs:
        if found != had:
            raise ConfigError(f"{name}: found {shown(found)}, but the model in {body.path} was made with {shown(had)}; "
                              f"{reason(name)}")  # fmt: skip


def refuse_other_places(c: Config, body: Body) -> None:
    """However the places of a decoder alone are divided, they are as many as it has vectors for."""
    if c.places == body.config.places:
        return
    written = {"generate": "generate.block"}.get(c.task, "data.max_source and data.max_target")
    name = "data.max_source" if c.task in config.READING else written
    raise ConfigError(f"{name}: found room for {c.places} places, but the model in {body.path} has learned positions "
                      f"for {body.config.places}; the task {c.task} needs as many")  # fmt: skip


def settings(where: str, new: config.Section, old: config.Section) -> list[tuple[str, object, object]]:
    """The settings of one side, as they are now and as the body has them."""
    names = sorted((name for name in type(old).model_fields if name not in FREE), key=lambda name: name != "kind")
    return [(f"{where}.{name}", getattr(new, name, None), getattr(old, name)) for name in names]


def shown(value: object) -> object:
    return "none" if value is None else value


def reason(name: str) -> str:
    """Why the body can not do without what it was made with."""
    if name.startswith("tokens."):
        return "its weights know its own tokens alone"
    if name.startswith("data."):
        return "it has learned positions for so many places"
    return "its weights would mean nothing"


def sides(c: Config, body: Body) -> list[str]:
    """The networks that are kept: the one that reads, and a decoder where the new task writes too."""
    if body.reads_alone:
        return ["encoder", "decoder"]
    return ["encoder", "decoder"] if body.writes and c.task not in config.READING else ["encoder"]


# ── the weights ──────────────────────────────────────────────────────────────────────────────────────────────────────


def kept_weights(body: Body, c: Config, vocabulary: Vocabulary, shapes: Shapes) -> Weights:
    """The weights of the body by the names that the new model has for them; each must have the expected shape."""
    found = {name: body.weights[name] for name in shapes
             if name.startswith(kept_names(body, c, vocabulary)) and name in body.weights}  # fmt: skip
    for name, weight in found.items():
        if tuple(weight.shape) != shapes[name]:
            raise ConfigError(f"{name}: the model in {body.path} has the shape {list(weight.shape)}, and the new one "
                              f"needs {list(shapes[name])}")  # fmt: skip
    if c.train.freeze and len(found) == len(shapes):
        raise ConfigError("train.freeze: every weight comes from the model that this run starts from; none would learn")
    return found


def kept_names(body: Body, c: Config, vocabulary: Vocabulary) -> tuple[str, ...]:
    """How the names of weights begin that mean the same in both models."""
    same_tokens = vocabulary.target.as_dict() == body.vocabulary.target.as_dict()
    names: tuple[str, ...] = READS
    if "decoder" in sides(c, body):
        names += WRITES if same_tokens or body.reads_alone else WRITES[1:]
    return names + SAME_TOKENS if same_tokens and predicted(c) == predicted(body.config) else names


def predicted(c: Config) -> tuple[object, ...]:
    """What the head and the output layer were made for, but for the tokens or labels."""
    return WORDS.get(c.task, c.task), c.head.pool, c.head.crf, c.head.width


def origin(body: Body, kept: Weights) -> Origin:
    return Origin(body.path, body.config.task, body.data_hash, sum(weight.numel() for weight in kept.values()))


def read_kept(folder: Path, shapes: Shapes) -> Weights:
    """The first weights of the run in this folder; none where it started from no other model."""
    path = folder / BODY
    if not path.is_file():
        return {}
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            names = set(file.keys())
    except safetensors.SafetensorError as error:
        raise FolderError(f"{path}: not a safetensors file: {error}") from None
    return folders.read_weights(path, {name: shape for name, shape in shapes.items() if name in names})


def put(model: Model, kept: Weights, freeze: bool) -> None:
    """The kept weights into a fresh model; frozen, they learn no more."""
    with_names = dict(model.named_parameters())
    for name, weight in kept.items():
        with_names[name].data.copy_(weight)
        with_names[name].requires_grad_(not freeze)


def frozen(model: Model) -> frozenset[str]:
    return frozenset(name for name, weight in model.named_parameters() if not weight.requires_grad)
