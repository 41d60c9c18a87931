"""A finished run in, its model card out: what it is, from what data, how good, made by which versions."""

from regard.score import Metric
from regard.score.calibration import FEWEST
from regard.tasks.choose import deciding
from regard.tasks.task import Evaluation
from regard.trained import Trained
from regard.training.home import Start, versions
from regard.training.loop import Outcome
from regard.training.prepare import Prepared


def card(data: Prepared, start: Start, found: Evaluation, outcome: Outcome, seconds: float, trained: Trained) -> str:
    """The README.md of a model folder."""
    c = data.config
    rows = [f"| {m.name} | {figure(m)} | `{escaped(m.signature)}` |" for m in found.metrics.values()]
    beam = "" if c.decoder.kind == "none" else f", decoded with beam {c.search.beam}"
    facts = [f"| {name.replace('_', ' ')} | {value:.4f} | |" for name, value in found.facts.items()]
    return "\n".join([
        f"# A model of the kind `{c.preset}`",
        "",
        c.about,
        "",
        "Run it with `regard run FOLDER < in > out`. This folder alone is enough.",
        "",
        "## Scores on the held-out examples",
        "",
        f"{len(found.outputs)} examples{beam}; {choice(data, outcome)}. 95 % intervals.",
        "",
        "| score | value | signature |", "|---|---|---|", *rows, *facts,
        "",
        "## Confidence",
        "",
        *sureness(trained, found),
        "",
        "## How it was made",
        "",
        *[f"- {line}" for line in history(data, start, outcome, seconds, trained.model.size)],
        "",
    ])  # fmt: skip


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
    return [
        f"The confidence of an output is the chance that all of it is right, learnt from the {c.examples} examples "
        f"above ({c.right} right) with the search of `config.toml`. The figures on the right were measured on examples "
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
        f"task {c.task}; {parameters:,} parameters; tokens: {c.tokens.source} ({data.vocabulary.source.size}) → "
        f"{c.tokens.target} ({data.vocabulary.target.size})",
        f"data: {len(data.train.items)} training and {len(data.valid.items)} validation examples, sha256 "
        f"`{data.data_hash}`",
        *lineage(data, start, parameters),
        f"seed {c.train.seed}; {outcome.step} steps in {seconds:.0f} s ({outcome.why}); weights of step "
        f"{outcome.best_step}{', the mean of the last checkpoints' if outcome.averaged else ''}",
        f"computed in {start.precision} on {start.device}; threads: {start.threads}; processes: {start.world}",
        "versions: " + ", ".join(f"{name} {number}" for name, number in versions().items()),
        *data.notes,
    ]


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
        f"{outcome.why} at step {outcome.step} of {data.config.train.steps}, not scored. `regard resume FOLDER` goes "
        f"on from there; until then `regard run FOLDER` uses the best weights so far, of step {outcome.best_step}.",
        "",
        f"- command: `{start.command}`",
        f"- data: sha256 `{start.data_hash}`",
        "",
    ])  # fmt: skip


def figure(m: Metric) -> str:
    interval = "" if m.low is None or m.high is None else f" ({m.low:.2f} – {m.high:.2f})"
    return f"{m.value:.2f}{interval}"
