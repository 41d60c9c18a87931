"""A file in, a trained model (and its folder) out: reads, builds, loops, scores, saves; and resumes what was begun."""

import warnings
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from rich.text import Text

from regard import config
from regard import folder as folders
from regard.data.plain import json_text
from regard.data.read import escape
from regard.data.vocabulary import Vocabulary
from regard.errors import ConfigError, FolderError, Interrupted, RegardError, UsageError
from regard.models.build import build, refuse_giants
from regard.models.model import Model
from regard.models.threads import threads
from regard.report import FILE as REPORT
from regard.report import render, report
from regard.rules import Why
from regard.tasks.choose import deciding
from regard.tasks.task import Evaluation
from regard.trained import Trained
from regard.training.card import card, short_card
from regard.training.checkpoint import Checkpoint, Checkpoints, Standing, read
from regard.training.device import device, native_bf16, precision
from regard.training.events import refuse_eventless
from regard.training.home import (
    BODY,
    FRESH,
    TUNED,
    Start,
    begun,
    changed_files,
    claim,
    finished,
    identity,
    occupied,
    other_versions,
    outline,
    read_start,
    refuse_changes,
    refuse_others,
    stillborn,
    tidy,
    versions,
)
from regard.training.keep import Keeper
from regard.training.loop import Crew, Outcome, last_scoring, loop
from regard.training.machine import tuned
from regard.training.pace import LAST, Pace, Plan
from regard.training.prepare import Known, Prepared, changed, missing, prepare, reopen
from regard.training.progress import Report
from regard.training.stop import Abandoned, Stop, stopping
from regard.training.store import read_known
from regard.training.team import Team, attempt, gathered
from regard.training.transfer import Body, frozen, kept_weights, origin, put, read_kept
from regard.training.update import out_of_memory
from regard.view.terminal import console

WARNING = "warning: "  # how a note begins that is more than a note
REPORTING = 3.0  # seconds at least for card, curves, report and weights; or as many as the start of the command took
MUCH = 20_000_000  # bytes of data that take longer than a person waits without a word


@dataclass(frozen=True)
class Call:
    """How a run is asked for."""

    force: bool = False  # another run in the folder is replaced
    quiet: bool = False  # nothing is said but warnings
    command: str = "regard.train"
    spent: float = 0.0  # seconds that count as taken already
    known: tuple[str, ...] = ()  # notes that the person has been told


@dataclass(frozen=True)
class Given:
    """What a run has besides its config and its data."""

    why: Why = field(default_factory=Why)  # of the config; what may surprise is said at once, all is on the card
    body: Body | None = None  # a trained model: its weights are started from, its tokens kept
    tokens: Vocabulary | None = None  # of another run; none = they are learnt
    files: Mapping[str, bytes] = field(default_factory=dict)  # lie in the folder from the start and belong to the run


CALL, NOTHING = Call(), Given()


@dataclass(frozen=True)
class Scene:
    """Where a run takes place, with whom, and how it was asked for."""

    folder: Path | None
    team: Team
    stop: Stop
    call: Call
    told: tuple[str, ...] = ()  # notes that were said before the data were read


@dataclass(frozen=True)
class Ready:
    """A run that can go, from its first step or from where it stopped."""

    data: Prepared
    start: Start
    kept: folders.Weights  # of another model, from which this one starts; empty where it starts from none


def train(
    c: config.Config,
    path: str,
    valid: str | None = None,
    out: str | Path | None = None,
    call: Call = CALL,
    given: Given = NOTHING,
) -> tuple[Trained, Evaluation | None]:
    """Trains on a file as the config says; with `out`, leaves a folder there that can be resumed and, at last, run.

    Of several processes only the first has scores to give.
    """
    device(c.train)
    deciding(c)  # what can not end well is refused before the data are read
    if c.train.freeze and given.body is None:
        raise ConfigError("train.freeze: there is nothing to keep as it is without --from MODEL")
    folder = None if out is None else Path(out)
    refuse_eventless(c.train, folder)
    with gathered() as team, stopping(team.many, call.spent) as stop, ExitStack() as stack:
        scene = Scene(folder, team, stop, call, surprises(c, given.why))
        if folder is None and team.many:
            raise UsageError("several processes meet in a folder: name one with -o")
        if folder is not None and team.first:
            stack.enter_context(occupied(folder))
        if team.told(attempt() > 0 and goes_on(folder, call.command)):
            return go(opened(scene), scene)
        if team.first:
            store = Path(stack.enter_context(TemporaryDirectory())) if folder is None else folder / FRESH
            refuse_others(folder, call.force)
            say(scene)
            known = given.tokens if given.body is None else given.body.vocabulary.source
            data = prepared(c, path, valid, store, scene, known)
            data = replace(data, notes=[*given.why, *data.notes])
            warn(scene, data.notes)
            ready = begin(data, (path, valid), scene, given)
        team.wait()  # until the first has written what all read
        return go(ready if team.first else opened(scene), scene)


def resume(out: str | Path, quiet: bool = False, spent: float = 0.0) -> tuple[Trained, Evaluation | None]:
    """Goes on where the run in this folder stopped, and ends as it would have ended. Needs nothing but the folder."""
    folder = Path(out)
    read_start(folder)
    with (
        gathered() as team,
        stopping(team.many, spent) as stop,
        occupied(folder) if team.first else nullcontext(),
    ):
        scene = Scene(folder, team, stop, Call(quiet=quiet))
        return go(opened(scene), scene)


# ── before the loop ──────────────────────────────────────────────────────────────────────────────────────────────────


def prepared(c: config.Config, path: str, valid: str | None, store: Path, scene: Scene, known: Known) -> Prepared:
    """The data as numbers; a signal ends this at once, nothing being trained that could be lost."""
    stop = scene.stop
    try:
        with reading(path, scene.call.quiet), stop.abandoning():
            return prepare(c, path, valid, store, known)
    except Abandoned:
        assert stop.heard is not None
        raise Interrupted(f"{stop.interruption} before the first step; nothing is trained yet", stop.heard) from None


def surprises(c: config.Config, why: Why) -> tuple[str, ...]:
    """Guesses that explain what may go wrong now; pairs of texts are what everybody expects."""
    return why.guesses if c.task != "transduce" or len(why.guesses) > 1 else ()


def say(scene: Scene) -> None:
    """What is known before the data are read."""
    if not scene.call.quiet:
        show(note for note in scene.told if note not in scene.call.known)


def warn(scene: Scene, notes: Iterable[str]) -> None:
    """Warnings are for those too who want to hear nothing else."""
    if scene.call.quiet:
        show(note for note in notes if note.startswith(WARNING) and note not in scene.call.known)


def show(lines: Iterable[str]) -> None:
    for line in lines:
        console().print(escape(line), markup=False, highlight=False, soft_wrap=True)


def reading(path: str, quiet: bool) -> AbstractContextManager[object]:
    """While data are read: a terminal shows it, and elsewhere it is said of a file that takes a while."""
    stderr, line = console(quiet), f"reading {escape(path)}"
    if stderr.is_terminal and not quiet:
        return stderr.status(Text(line))
    sizes = [Path(part).stat().st_size for part in path.split(",") if Path(part).is_file()]
    if sum(sizes) >= MUCH:
        stderr.print(f"{line}, {sum(sizes) / 1e6:,.0f} MB", markup=False, soft_wrap=True)
    return nullcontext()


def begin(data: Prepared, paths: tuple[str, str | None], scene: Scene, given: Given) -> Ready:
    """Writes down, where there is a folder, all that the run could be resumed from."""
    c, body = data.config, given.body
    shapes = refuse_giants(c, data.vocabulary.source.size, data.vocabulary.target.size)
    kept = {} if body is None else kept_weights(body, c, data.vocabulary, folders.shapes_of(shapes))
    files = {"config.toml": folders.config_bytes(c), "tokenizer.json": folders.vocabulary_bytes(data.vocabulary)}
    files |= {**({BODY: folders.weights_bytes(kept)} if kept else {}), **given.files}
    where = device(c.train)
    with threads(shapes, c.train.threads, c.train.tokens_per_batch) as count:
        start = Start(
            command=scene.call.command, data=paths[0], valid=paths[1], data_hash=data.data_hash,
            notes=tuple(data.notes),
            files={name: folders.listing(content) for name, content in files.items()},
            outline=outline(folders.shapes_of(shapes)), versions=versions(), device=named_device(c),
            precision=precision(c.train, where, shapes.size), threads=count, world=scene.team.share.world,
            origin=None if body is None else origin(body, kept),
        )  # fmt: skip
    if scene.folder is None:
        return Ready(data, start, kept)
    claim(scene.folder, start, files)
    return Ready(reopened(c, data.vocabulary, scene.folder, start), start, kept)


def named_device(c: config.Config) -> str:
    """The one GPU that was asked for; else the kind alone, of which each process takes its own."""
    return c.train.device if ":" in c.train.device else device(c.train).type


def goes_on(folder: Path | None, command: str) -> bool:
    """Whether an unfinished run of this very command stands in the folder, and can go on."""
    return folder is not None and begun(folder) and not finished(folder) and read_start(folder).command == command


def opened(scene: Scene) -> Ready:
    """The run in a folder, if all that it was made from is as it was."""
    folder = scene.folder
    assert folder is not None
    start = read_start(folder)
    if stillborn(folder):
        raise FolderError(f"{folder}: the run died before its first step; begin it again: regard train … -o {folder}")
    found = changed_files(folder, start)
    if scene.team.first:
        found += changed(folder / "tokens")
    refuse_changes(folder, found)
    c, vocabulary = folders.read_config(folder), folders.read_vocabulary(folder)
    refuse_eventless(c.train, folder)
    shapes = folders.shapes_of(refuse_giants(c, vocabulary.source.size, vocabulary.target.size))
    if outline(shapes) != start.outline:
        refuse_changes(folder, ["this version of regard builds a model of another shape from config.toml"])
    if scene.team.first:
        warn_of_differences(start, scene, c.task)
    return Ready(reopened(c, vocabulary, folder, start), start, read_kept(folder, shapes))


def reopened(c: config.Config, vocabulary: Vocabulary, folder: Path, start: Start) -> Prepared:
    return replace(reopen(c, vocabulary, folder / "tokens"), notes=list(start.notes), data_hash=start.data_hash)


def warn_of_differences(start: Start, scene: Scene, task: str) -> None:
    """What is no reason to refuse, and may change the last bits of the result."""
    assert scene.folder is not None
    lines = [*other_versions(start), *missing(scene.folder / "tokens")]
    if start.world != scene.team.share.world:
        numbers = ("the numbers are not: the task embed tells a text apart from those of its own process alone"
                   if task == "embed" else "the numbers equal but for rounding")  # fmt: skip
        lines.append(f"started with {start.world} process(es), now {scene.team.share.world}: the samples are the same, "
                     f"{numbers}")  # fmt: skip
    if start.precision == "bf16" and not native_bf16(torch.device(start.device)):
        lines.append("started in bf16, which this machine does not compute natively: it will be slow")
    for line in lines:
        warnings.warn(f"{scene.folder}: {line}", stacklevel=2)


# ── the loop and what follows ────────────────────────────────────────────────────────────────────────────────────────


def go(ready: Ready, scene: Scene) -> tuple[Trained, Evaluation | None]:
    """The loop, and at its end the scores and the folder."""
    c, vocabulary = ready.data.config, ready.data.vocabulary
    model = build(c, vocabulary.source.size, vocabulary.target.size, copies=vocabulary.copies())
    put(model, ready.kept, c.train.freeze)
    with tuned(), threads(model, ready.start.threads), torch.random.fork_rng(devices=[]):
        crew, checkpoint = crew_of(ready, model, scene)
        try:
            tell(ready, crew, model, checkpoint, (*scene.told, *scene.call.known))
            outcome = loop(ready.data, model, crew, checkpoint)
            scene.team.give(model)
            trained = Trained(c, vocabulary, model.to("cpu").eval())
            return trained, finish(ready, trained, outcome, crew, scene)
        except (RegardError, MemoryError, RuntimeError) as error:
            with suppress(RegardError):  # one error is enough; what the thread is writing may still come to its end
                crew.checkpoints.wait()
            if isinstance(error, RegardError) or not out_of_memory(error):
                raise
            raise RegardError("out of memory; lower train.tokens_per_batch, search.beam or the size of the model\n"
                              "what was saved is kept: regard resume FOLDER goes on from there") from None  # fmt: skip
        finally:
            crew.report.close()


def crew_of(ready: Ready, model: Model, scene: Scene) -> tuple[Crew, Checkpoint | None]:
    """All that works beside the loop, standing where the newest checkpoint says, if there is one."""
    t, team, stop = ready.data.config.train, scene.team, scene.stop
    writing = scene.folder if team.first else None
    run = identity(scene.folder) if scene.folder else ""
    checkpoints = Checkpoints(writing, t)
    found = checkpoints.newest(run, folders.shapes_of(model), frozen(model))
    step = team.told(found.standing.step if found else 0)
    if step and not team.first and scene.folder is not None:
        found = read(scene.folder / "checkpoints" / f"step-{step:08}", run, folders.shapes_of(model), frozen(model))
    standing = found.standing if found else Standing()
    stop.minutes = t.minutes if team.first else None
    stop.writing = 0.0 if scene.folder is None else max(REPORTING, stop.clock.spent)
    stop.clock.before, stop.ending = standing.seconds, standing.ending
    plan = plan_of(ready.data)
    pace = Pace(plan, stop.clock, standing.step, standing.ending / (LAST + plan.scoring) or None, standing.last)
    stop.guess = pace.ending
    report = Report(t, writing, scene.call.quiet or not team.first, stop.clock, standing.log, pace)
    keep = Keeper(deciding(ready.data.config, ready.data.task), t.average, found.kept if found else None)
    where = device(t.model_copy(update={"device": ready.start.device}), team.local)
    if where.type == "cuda":
        torch.cuda.set_device(where)
    return Crew(report, keep, stop, checkpoints, team, where, ready.start.precision, run), found


def tell(ready: Ready, crew: Crew, model: Model, checkpoint: Checkpoint | None, told: tuple[str, ...] = ()) -> None:
    """The first line waits until the first steps have told how long it will take."""
    line = announcement(ready, model.size, checkpoint, crew.team.share.world)
    crew.report.begin(line, () if checkpoint else [note for note in ready.data.notes if note not in told])


def announcement(ready: Ready, parameters: int, checkpoint: Checkpoint | None, world: int) -> str:
    """What will happen, all but how long it will take."""
    data, start, t = ready.data, ready.start, ready.data.config.train
    again = f"goes on from step {checkpoint.standing.step:,}: " if checkpoint else ""
    held = len(data.valid.items)
    judged = f"{held:,}" if held <= t.validate_examples else f"{t.validate_examples:,} of {held:,}"
    enough = [f"{t.patience} validations bring nothing better"] if t.patience else []
    enough += ["validations find no mistake any more"] if t.perfect else []
    ending = f" (or until {' or '.join(enough)})" if enough else ""
    threads = f"{start.threads} thread{'s' if start.threads > 1 else ''}"
    crowd = f" in each of {world} processes" if world > 1 else ""
    return (f"{again}training {data.config.preset or 'a model'} ({parameters:,} parameters{taken(start, parameters)}) "
            f"on {len(data.train.items):,} examples for {t.length}{ending}, validating on {judged} others every "
            f"{t.validate_steps:,}, in {start.precision} on {start.device} with {threads}{crowd}")  # fmt: skip


def taken(start: Start, parameters: int) -> str:
    """How many of the parameters come from another model, if any do."""
    if start.origin is None:
        return ""
    return f"; from a {start.origin.task} model {start.origin.kept:,} kept, {parameters - start.origin.kept:,} new"


def plan_of(data: Prepared) -> Plan:
    """What lies before a run. Until one is timed, a validation is taken to last as long as training on its examples."""
    t = data.config.train
    few = data.valid.items[: t.validate_examples]
    tokens = sum(max(len(item.source), len(item.target)) for item in few)
    return Plan(t.steps, t.validate_steps, t.minutes, tokens / (t.tokens_per_batch * t.accumulate), last_scoring(data))


def finish(ready: Ready, trained: Trained, outcome: Outcome, crew: Crew, scene: Scene) -> Evaluation | None:
    """Scores and saves; if a signal has come or comes before that is done, leaves what can be resumed."""
    found = None
    if outcome.signal is None and scene.team.first:
        crew.report.scoring(outcome.why, outcome.best_step, len(ready.data.valid.items))
        with suppress(Abandoned), scene.stop.abandoning():
            found = ready.data.task.evaluate(
                trained.model, ready.data.valid.items, ready.data.valid.examples, trained.wish()
            )
    if scene.team.first and found is None:
        leave(ready, trained, outcome, scene)
    if outcome.signal is not None:
        scene.team.wait()  # none leaves before all is saved: the launcher would end the others
    if found is None and (number := scene.stop.signal or scene.stop.heard):
        kept = ("nothing is saved: no folder was named" if scene.folder is None
                else f"regard resume {scene.folder} goes on from there")  # fmt: skip
        raise Interrupted(f"{scene.stop.interruption} at step {outcome.step}; {kept}", number)
    if found is not None and found.answers:
        trained.calibrate(found.answers, [example.target or "" for example in ready.data.valid.examples])
    if found is not None and scene.folder is not None:
        text = card(ready.data, ready.start, found, outcome, scene.stop.clock.seconds(), trained)
        others = {
            "README.md": text.encode(),
            "curves.svg": crew.report.curves(crew.keep.metric),
            **reported(ready, trained, found, crew, text),
            **written(scene.folder, ready.start),
        }
        trained.save(scene.folder, others)
        tidy(scene.folder)
    return found


def reported(ready: Ready, trained: Trained, found: Evaluation, crew: Crew, card: str) -> dict[str, bytes]:
    """The report of the run, as values and as a page. It is named by the preset: a folder may be renamed tomorrow."""
    trained.name = trained.config.preset or trained.name
    valid, facts = ready.data.valid, [("training examples", f"{len(ready.data.train.items):,}")]
    facts += [("note", note) for note in ready.data.notes]
    log = crew.report.metrics.entries
    known = read_known(ready.data.store) if ready.data.store else []
    values = report(trained, found, valid.examples, valid.items, log, crew.keep.metric, card, facts, known)
    return {REPORT: (json_text(values) + "\n").encode(),
            "report.html": render(trained, values, valid.items).encode()}  # fmt: skip


def leave(ready: Ready, trained: Trained, outcome: Outcome, scene: Scene) -> None:
    """The best weights so far as a model that can be run, while the run waits to be resumed."""
    if scene.folder is None or not outcome.chosen:
        return
    others = {"README.md": short_card(ready.data, ready.start, outcome).encode(),
              "run.json": (scene.folder / "run.json").read_bytes()}  # fmt: skip
    folders.save(scene.folder, trained.config, trained.vocabulary, trained.model, others, finished=False)


def written(folder: Path, start: Start) -> dict[str, bytes]:
    """What the run has written by itself, and what lay beside it from the start, so that the manifest lists it."""
    beside = [name for name in start.files if name == TUNED]
    return {name: (folder / name).read_bytes() for name in ("metrics.jsonl", "times.jsonl", "run.json", *beside)}
