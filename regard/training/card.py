"""A finished run in, its model card out: what it is, from what data, how good, made by which versions."""

from regard import config
from regard.data.tokens import SPECIALS
from regard.score import Metric
from regard.score.calibration import FEWEST
from regard.tasks.choose import deciding
from regard.tasks.facts import MEANINGS, number
from regard.tasks.task import Evaluation
from regard.trained import Trained
from regard.training.home import Start, versions
from regard.training.loop import Outcome
from regard.training.prepare import Prepared

HEADS = {  # what stands on a body that reads
    "fill": "from its state at each place, the token that stands there",
    "classify": "from one vector of all its states, a label",
    "tag": "from its state at each token, a label",
    "embed": "from all its states, one vector",
    "extract": "from its states, the first and the last token of the answer",
}


def card(data: Prepared, start: Start, found: Evaluation, outcome: Outcome, seconds: float, trained: Trained) -> str:
    """The README.md of a model folder."""
    c = data.config
    beam = f", decoded with beam {c.search.beam}" if searches(c) else ""
    return "\n".join([
        f"# A model of the kind `{c.preset}`",
        "",
        about(c),
        "",
        f"Use it with `{commands(c.task)[0]}`. This folder alone is enough.",
        "",
        "## Scores on the held-out examples",
        "",
        f"{len(found.outputs)} examples{beam}; {choice(data, outcome)}. 95 % intervals.",
        "",
        *scores(found),
        "",
        *confusions(found),
        "## Confidence",
        "",
        *sureness(trained, found),
        "",
        "## How it was made",
        "",
        *[f"- {line}" for line in history(data, start, outcome, seconds, trained.model.size)],
        "",
    ])  # fmt: skip


def about(c: config.Config) -> str:
    """What reads and what writes, where that is not all that the preset has."""
    preset = config.preset_says(c.preset) if c.preset in config.presets() else {}
    had = {side: preset.get(side, {}).get("kind", "recurrent") != "none" for side in ("encoder", "decoder")}
    if c.task in config.READING and c.encoder.kind == "none":
        return f"A decoder alone ({side(c.decoder)}), which reads and writes nothing; {HEADS[c.task]}."
    if c.task in config.READING and had["decoder"]:
        return f"The encoder of the preset `{c.preset}` ({side(c.encoder)}), without its decoder; {HEADS[c.task]}."
    if c.task == "generate" and had["encoder"]:
        return f"The decoder of the preset `{c.preset}` ({side(c.decoder)}), without its encoder, on text that goes on."
    return c.about


def side(part: config.Section) -> str:
    """One network in a few words."""
    layers = getattr(part, "layers", 1)
    kind, width = getattr(part, "kind", ""), getattr(part, "width", "")
    return f"{kind}, {layers} layer{'s' * (layers > 1)} of width {width}"


def searches(c: config.Config) -> bool:
    """Whether outputs were searched for to be scored."""
    return c.task in ("transduce", "caption")


def commands(task: str) -> tuple[str, ...]:
    """How a model of this task is used, `regard` and FOLDER to be replaced."""
    score = "regard score FOLDER test.tsv"
    match task:
        case "embed":
            first = ("regard embed FOLDER < lines.txt > vectors.npy", 'regard search FOLDER corpus.txt "a query"')
            return *first, score
        case "caption":
            return "regard run FOLDER picture.png", score
        case "generate":
            return 'regard run FOLDER "a beginning" --sample', "regard score FOLDER test.txt"
        case "fill":
            return 'regard run FOLDER "a text with a [mask] in it"', "regard score FOLDER test.txt"
    return "regard run FOLDER < in.txt > out.txt", score


def scores(found: Evaluation) -> list[str]:
    """Metrics with their signatures, other numbers with what they are; and why a metric is missing."""
    rows = [f"| {m.name} | {figure(m)} | `{escaped(m.signature)}` |" for m in found.telling]
    facts = [f"| {name.replace('_', ' ')} | {number(name, value)} | {MEANINGS.get(name, '')} |"
             for name, value in found.facts.items()]  # fmt: skip
    left = [line for name, why in found.mute.items() for line in ("", f"{name} is left out: {why}.")]
    return ["| score | value | signature, or what it is |", "|---|---|---|", *rows, *facts, *left]


def confusions(found: Evaluation) -> list[str]:
    """Which labels were taken for which."""
    if found.confusion is None:
        return []
    return ["## Confusions", "", *(f"    {line}" for line in found.confusion.render().split("\n")), ""]


def choice(data: Prepared, outcome: Outcome) -> str:
    """How the weights were chosen, and what that means for the scores."""
    if not outcome.chosen:
        return "there was no validation, so these are the last weights, not the best"
    judged = min(len(data.valid.items), data.config.train.validate_examples)
    by = deciding(data.config, data.task)
    return f"the best weights were chosen on {judged} examples by {by}, so a fresh test file is the better judge"


def sureness(trained: Trained, found: Evaluation) -> list[str]:
    """What the confidence of an output is worth."""
    c = trained.calibration
    if not found.answers:
        return ["The confidence of an output is its raw probability: this task does not know one right output."]
    if c is None:
        return [f"The confidence of an output is its raw probability: {len(found.answers)} held-out examples are too "
                f"few to learn from ({FEWEST} are needed)."]  # fmt: skip
    how = " with the search of `config.toml`" if searches(trained.config) else ""
    return [
        f"The confidence of an output is the chance that all of it is right, learnt from the {c.examples} examples "
        f"above ({c.right} right){how}. The figures on the right were measured on examples "
        "that the rule had not seen; 0 is best.",
        "",
        "| | raw probability | confidence |", "|---|---|---|",
        f"| Brier score | {c.before.brier:.4f} | {c.after.brier:.4f} |",
        f"| expected calibration error | {c.before.error:.4f} | {c.after.error:.4f} |",
    ]  # fmt: skip


def escaped(text: str) -> str:
    """A bar would end a cell of the table."""
    return text.replace("|", "\\|")


def history(data: Prepared, start: Start, outcome: Outcome, seconds: float, parameters: int) -> list[str]:
    c = data.config
    return [
        f"command: `{start.command}`",
        f"task {c.task}; {parameters:,} parameters; tokens: {tokens(data)}",
        f"data: {len(data.train.items)} training and {len(data.valid.items)} validation examples, sha256 "
        f"`{data.data_hash}`",
        *lineage(data, start, parameters),
        f"seed {c.train.seed}; {outcome.step} steps in {seconds:.0f} s ({outcome.why}); weights of step "
        f"{outcome.best_step}{', the mean of the last checkpoints' if outcome.averaged else ''}",
        f"computed in {start.precision} on {start.device}; threads: {start.threads}; processes: {start.world}",
        "versions: " + ", ".join(f"{name} {number}" for name, number in versions().items()),
        *data.notes,
    ]


def tokens(data: Prepared) -> str:
    """What a token is, on the sides that there are."""
    c, source, target = data.config, data.vocabulary.source, data.vocabulary.target
    if c.task in config.LABELLED:
        return f"{source.kind} ({source.size}) → {target.size - len(SPECIALS)} labels"
    written = f"{target.kind} ({target.size})"
    return written if c.task == "caption" or source is target else f"{source.kind} ({source.size}) → {written}"


def lineage(data: Prepared, start: Start, parameters: int) -> list[str]:
    """The model that the run started from, if there was one."""
    if (was := start.origin) is None:
        return []
    told = f"data sha256 `{was.data_hash}`" if was.data_hash else "its folder does not say on what data"
    frozen = ", which did not change" if data.config.train.freeze else ""
    return [
        f"started from `{was.path}`, a {was.task} model ({told}): {was.kept:,} of {parameters:,} parameters{frozen}"
    ]


def short_card(data: Prepared, start: Start, outcome: Outcome) -> str:
    """The README.md of a folder whose run waits to be resumed."""
    return "\n".join([
        f"# A model of the kind `{data.config.preset}`, not finished",
        "",
        f"{outcome.why} at step {outcome.step}, {data.config.train.length} being planned; not scored. `regard resume "
        f"FOLDER` goes on from there; until then `regard run FOLDER` uses the best weights so far, of step "
        f"{outcome.best_step}.",
        "",
        f"- command: `{start.command}`",
        f"- data: sha256 `{start.data_hash}`",
        "",
    ])  # fmt: skip


def figure(m: Metric) -> str:
    interval = "" if m.low is None or m.high is None else f" ({m.low:.2f} – {m.high:.2f})"
    return f"{m.value:.2f}{interval}"
