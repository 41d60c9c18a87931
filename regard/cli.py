"""Words of a command line in, results on stdout and everything else on stderr out: one short function for each verb.

Whatever is slow to import is imported inside the verb that needs it, so that help and errors come at once.
"""

import json
import os
import re
import shlex
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from copy import copy
from io import BufferedReader, BytesIO, TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, cast

import typer
from typer.core import TyperGroup, TyperOption

from regard.errors import Interrupted, MissingError, RegardError, UsageError

if TYPE_CHECKING:
    from regard.data.read import Columns
    from regard.rules import Configured
    from regard.tasks.task import Evaluation, Wish
    from regard.trained import Trained
    from regard.training.transfer import Body
    from regard.view.change import Change

app = typer.Typer(
    name="regard",
    help="A two-column file in, a sequence model out that you can look into.",
    epilog="Try: regard demo",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

BUILTIN = "addition, captions, copy, dates, intents, paraphrases, questions, reverse, slots, sort or story."

DEBUGGING = ContextVar("debugging", default=False)  # whether an error shows its traceback

Set = Annotated[list[str] | None, typer.Option("--set", metavar="a.b=c", help="One setting, such as encoder.layers=4.")]
Preset = Annotated[str | None, typer.Option(help="A preset; `regard presets` lists them.")]
ConfigFile = Annotated[str | None, typer.Option("--config", help="A TOML file with settings.")]
Json = Annotated[bool, typer.Option("--json", help="Results as JSON.")]
Seed = Annotated[int | None, typer.Option(help="Root of all random draws.")]
Source = Annotated[str | None, typer.Option(help="Source columns by name or position: lemma,tags")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but results, warnings and errors.")]
Align = Annotated[bool, typer.Option("--align/--no-align", help="In JSON: what each token looked at; takes time.")]
Breaks = Annotated[bool, typer.Option("--breaks", help="generate: line breaks as they are, else they are \\n.")]
Format = Annotated[str, typer.Option(help="lines, tsv, csv, jsonl, conll. Default: by --input-column and line 1.")]
Images = Annotated[str | None, typer.Option(metavar="FILE.npz", help="Pictures; the source column has their rows.")]
Kinds = Annotated[
    str | None,
    typer.Option(help="characters, jamo, bytes, words, spelled, sentences, bpe or unigram; or SOURCE,TARGET"),
]
Valid = Annotated[str | None, typer.Argument(help="Validation file; without one, some examples are held out.")]
InputColumn = Annotated[str, typer.Option("--input-column", help="Read these columns by name or position: lemma,tags")]
LengthPenalty = Annotated[
    float | None, typer.Option("--length-penalty", min=0.0, max=10.0, help="0 = short, 1 = by token.")
]
MinConfidence = Annotated[
    float, typer.Option("--min-confidence", min=0.0, max=1.0, help="Leave what is less sure empty, for a person.")
]
MinLength = Annotated[int, typer.Option("--min-length", min=0, help="Tokens at least.")]
OutputColumn = Annotated[str, typer.Option("--output-column", help="Name of the column or key that is added.")]
Precision = Annotated[str, typer.Option(help="fp32, or int8: sooner, and a little less exact.")]
StartFrom = Annotated[
    str | None, typer.Option("--from", metavar="MODEL", help="Keep the body and the tokens of this model.")
]
TaskName = Annotated[
    str | None, typer.Option(help="transduce, generate, fill, classify, tag, embed, extract or caption.")
]
Target = Annotated[str | None, typer.Option(help="Target column by name or position.")]
TopP = Annotated[float, typer.Option("--top-p", min=0.0, max=1.0, help="Draw from the likeliest that reach p.")]
Matching = Annotated[
    str, typer.Option(metavar="REGEX", help="Every output matches this as a whole; the syntax of Python's re.")
]
ChoicesFile = Annotated[str | None, typer.Option(metavar="FILE", help="Every output is one of the lines of this file.")]
Require = Annotated[
    list[str] | None,
    typer.Option(metavar="TEXT", help="Every output holds this; may be given again. Best with --beam 5 or more."),
]


@contextmanager
def quietly() -> Iterator[None]:
    """Ctrl-C ends a filter as it ends any other: without a word."""
    try:
        yield
    except KeyboardInterrupt:
        sys.exit(130)


def debugging(asked: bool) -> None:
    """--debug was met where it is a flag."""
    if asked:
        DEBUGGING.set(True)


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    debug: Annotated[bool, typer.Option("--debug", callback=debugging, help="Show tracebacks of errors.")] = False,
) -> None:
    if version:
        from regard import __version__

        print(f"regard {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())


# ── data ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@app.command()
def task(
    name: Annotated[str, typer.Argument(help=BUILTIN)],
    count: Annotated[int, typer.Option("-n", min=1, help="How many examples.")] = 1000,
    out: Annotated[
        str | None, typer.Option("-o", help="File: .tsv, .csv, .jsonl, each also .gz. Default: NAME.tsv")
    ] = None,
    part: Annotated[str, typer.Option(help="train, valid or test: they share no source.")] = "train",
    seed: Annotated[int, typer.Option(help="Root of all random draws.")] = 0,
    locales: Annotated[str, typer.Option(help="dates: languages, such as de,fr, or all.")] = "en",
) -> None:
    """Write a built-in task as a file.

    \b
    regard task dates -n 10000 -o dates.tsv
    regard task dates -n 1000 --part test -o dates-test.tsv
    regard task story -n 2000 -o story.txt
    """
    from regard.data import builtin

    for path in builtin.write(name, count, Path(out or f"{name}.tsv"), seed, part, locales):
        note(f"wrote {path}")


@app.command()
def check(
    file: Annotated[str, typer.Argument(help="A file, a folder of pictures, or two parallel files: a.en,a.de")],
    other: Annotated[str | None, typer.Argument(help="A second file, to see what the two share.")] = None,
    task: TaskName = None,
    source: Source = None,
    target: Target = None,
    images: Images = None,
    minutes: Annotated[float | None, typer.Option(help="What train would choose for so many.")] = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Leave bad lines out instead of stopping.")] = False,
    as_json: Json = False,
) -> None:
    """The data doctor: what train would choose, and why; what is wrong with the file, and the cure.

    Encodings, near duplicates, conflicts, suspicious pairs, overlap, and what can be had without learning.

    \b
    regard check dates.tsv
    regard check dates.tsv --minutes 5
    regard check dates.tsv dates-test.tsv --json
    """
    from regard.data.check import check as examine
    from regard.data.check import with_guess
    from regard.data.doctor.sheet import render
    from regard.data.guess import guess, refuse_pictures
    from regard.data.read import Columns, read
    from regard.rules import advice

    if minutes is not None and minutes <= 0:
        raise UsageError(f"--minutes {minutes:g}: expected more than 0")
    asked = Columns(tuple(source.split(",")) if source else (), target or "")
    found = guess(file, asked, known_task(task), images or "")
    refuse_pictures(file, found, task or "")
    table, second = (read(path, found.asked(asked), skip_bad) if path else None for path in (file, other))
    assert table is not None
    advised = advice(found, table.examples, minutes)
    report = with_guess(examine(table, second, found.task), found, table, images or "", bool(task), advised)
    print(as_line(report.as_dict()) if as_json else render(report))


@app.command()
def presets(
    name: Annotated[str | None, typer.Argument(help="Print this preset's file.")] = None,
    as_json: Json = False,
) -> None:
    """List the presets, or print one.

    \b
    regard presets
    regard presets transformer
    """
    from regard import config

    if name is not None:
        print(config.preset_text(name), end="")
        return
    lineage = {each: re.search(r"System (\d+)", config.preset_text(each)) for each in config.presets()}
    ordered = sorted(lineage, key=lambda each: (int(found[1]) if (found := lineage[each]) else 99, each))
    about = {each: config.parse_toml(config.preset_text(each), each).get("about", "") for each in ordered}
    if as_json:
        print(as_line(about))
        return
    for each, line in about.items():
        print(f"{each:18} {line}")


# ── models ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@app.command()
def train(
    file: Annotated[str, typer.Argument(help="A file, a folder of pictures, or two parallel files: a.en,a.de")],
    valid: Valid = None,
    out: Annotated[str, typer.Option("-o", help="Folder for the model.")] = "model",
    preset: Preset = None,
    task: TaskName = None,
    source: Source = None,
    target: Target = None,
    tags: Annotated[str | None, typer.Option(help="Source columns whose words are tags, each one token.")] = None,
    tokens: Kinds = None,
    start_from: StartFrom = None,
    freeze: Annotated[bool, typer.Option("--freeze", help="What comes from that model does not change.")] = False,
    steps: Annotated[int | None, typer.Option(help="Updates at most.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Minutes at most.")] = None,
    seed: Seed = None,
    precision: Annotated[str | None, typer.Option(help="auto, fp32 or bf16.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu or cuda.")] = None,
    settings: Set = None,
    config_file: ConfigFile = None,
    images: Images = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Leave bad lines out instead of stopping.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace another run in the folder.")] = False,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Events for TensorBoard too.")] = False,
    tune: Annotated[bool, typer.Option("--tune", help="Spend the minutes on a search for better settings.")] = False,
    quiet: Quiet = False,
) -> None:
    """Train a model on a file, or on a folder of pictures.

    What is not said is guessed from the data, and told: the task, its columns, its tokens.

    \b
    regard train dates.tsv -o model
    regard train dates.tsv -o model --preset transformer --set encoder.layers=4 --minutes 5
    regard train names.tsv -o model --set decoder.copy=true   # outputs repeat parts of inputs
    regard train forms.tsv -o model --source lemma,tags --target form --tags tags
    regard train reviews.tsv -o model --from body --task classify
    regard train dates.tsv -o model --tune --minutes 30       # short trials, then one run with the best settings
    """
    words = flag_words(
        {
            "task": task,
            "data.target": target,
            "data.images": images,
            "data.skip_bad": skip_bad or None,
            "train.steps": steps,
            "train.minutes": minutes,
            "train.seed": seed,
            "train.precision": precision,
            "train.device": device,
            "train.tensorboard": tensorboard or None,
            "train.freeze": freeze or None,
        },
        {"data.source": source, "data.tags": tags},
    )
    words += [*(token_words(tokens) if tokens is not None else []), *(settings or [])]
    said = (file, preset, config_file, words, start_from)
    made, found = (searched if tune else trained)(said, valid, out, force, quiet)
    tell_saved(out, made, found, quiet)


@app.command()
def resume(
    model: Annotated[str, typer.Argument(help="The folder of a run that was interrupted.")], quiet: Quiet = False
) -> None:
    """Go on with a run where it stopped.

    The result is the one that the run would have had, to the bit on the same machine and versions.

    \b
    regard resume model
    """
    from regard.training.home import finished, tidy

    if finished(Path(model)):
        tidy(Path(model))
        note(f"{model}: its training has finished; there is nothing to resume")
        return
    from regard.training.run import resume as resume_training
    from regard.training.stop import process_seconds

    trained, found = resume_training(model, quiet, process_seconds())
    tell_saved(model, trained.config.task, found, quiet)


@app.command()
@quietly()
def run(
    context: typer.Context,
    model: Annotated[str, typer.Argument(help="A model folder.")],
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[INPUT]...", help="Texts, a tab between columns, or pictures, instead of standard input."
        ),
    ] = None,
    beam: Annotated[int | None, typer.Option(min=1, max=1000, help="Width of the beam; 1 = greedy.")] = None,
    n_best: Annotated[int, typer.Option("--n-best", min=1, max=1000, help="Outputs a line; the beam is as wide.")] = 1,
    batch: Annotated[int, typer.Option(min=1, help="Lines decoded side by side; changes no output.")] = 64,
    sample: Annotated[bool, typer.Option("--sample", help="Draw at random instead of searching.")] = False,
    temperature: Annotated[float, typer.Option(min=0.01, max=10000, help="Of the draw.")] = 1.0,
    top_k: Annotated[int, typer.Option("--top-k", min=0, help="Draw from the k likeliest; 0 = all.")] = 0,
    top_p: TopP = 1.0,
    seed: Annotated[int, typer.Option(help="Of the draw.")] = 0,
    prefix: Annotated[str, typer.Option(help="Every output begins with this.")] = "",
    ban: Annotated[list[str] | None, typer.Option(help="No output holds this text.")] = None,
    pattern: Matching = "",
    choices: ChoicesFile = None,
    require: Require = None,
    no_repeat: Annotated[int, typer.Option("--no-repeat", min=0, help="No n-gram of this length twice.")] = 0,
    min_length: MinLength = 0,
    max_length: Annotated[int | None, typer.Option("--max-length", min=1, help="Tokens at most.")] = None,
    length_penalty: LengthPenalty = None,
    breaks: Breaks = False,
    as_json: Json = False,
    align: Align = True,
    min_confidence: MinConfidence = 0.0,
    input_column: InputColumn = "",
    output_column: OutputColumn = "output",
    format: Format = "",
    images: Images = None,
    precision: Precision = "fp32",
) -> None:
    """A filter: one line out for each line in.

    \b
    echo "Saturday 9th of May, 2018" | regard run model
    regard run model "Saturday 9th of May, 2018"
    regard run model --beam 5 --n-best 3 --json < in.txt > out.jsonl
    printf 'walk\\tV;PST\\n' | regard run model-of-two-columns  (a tab parts source columns)
    regard run model --input-column date --min-confidence 0.9 < in.tsv > out.tsv
    regard run book-model --sample --max-length 500 --breaks < prompts.txt
    regard run model --pattern '\\d{4}-(0[1-9]|1[0-2])-\\d\\d' < in.txt
    """
    refuse_contradictions(context)
    from regard.trained import Trained

    loaded = Trained.load(model, precision)
    loaded = loaded if images is None else loaded.with_images(images)
    pass_lines(loaded, wished(loaded, context.params), context)


@app.command()
def score(
    model: Annotated[str, typer.Argument(help="A model folder.")],
    file: Annotated[str, typer.Argument(help="A file with the columns the model was trained on.")],
    beam: Annotated[int | None, typer.Option(min=1, max=1000, help="Width of the beam; 1 = greedy.")] = None,
    source: Source = None,
    target: Target = None,
    images: Images = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Leave bad lines out instead of stopping.")] = False,
    precision: Precision = "fp32",
    other: Annotated[
        str | None, typer.Option("--against", metavar="MODEL", help="Another model: a paired test.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Metrics with 95 % intervals on a file; against a second model, a paired test.

    \b
    regard score model dates-test.tsv
    regard score model dates-test.tsv --beam 5 --json
    regard score model dates-test.tsv --against other-model
    """
    from regard.trained import Trained

    paths = [model] if other is None else [model, other]
    loaded = [Trained.load(path, precision) for path in paths]
    loaded = loaded if images is None else [each.with_images(images) for each in loaded]
    columns = asked_columns(loaded[0], source, target) if source or target else None
    if other is None:
        found = loaded[0].score(file, beam, skip_bad, columns)
        print(as_line(evaluation_dict(found)) if as_json else evaluation_text(found))
        return
    from regard.lab.compare.against import against, render

    first, second = loaded
    names = (first.name, second.name) if first.name != second.name else (model, other)
    test = against(first, second, file, beam, skip_bad, columns, names)
    print(as_line(test.as_dict()) if as_json else render(test))


@app.command()
@quietly()
def embed(
    model: Annotated[str, typer.Argument(help="A model folder; of any task that reads text.")],
    out: Annotated[str | None, typer.Option("-o", help="File for the vectors. Default: standard output.")] = None,
    batch: Annotated[int, typer.Option(min=1, help="Lines read side by side; changes no vector.")] = 64,
    precision: Precision = "fp32",
) -> None:
    """Vectors of lines, as a NumPy file.

    A row of length 1 for each line, float32; zeros for an empty one. A model of the task embed gives what it was
    trained to give, any other the mean of the states of what reads its source: an encoder, or a decoder alone.

    \b
    regard embed model < lines.txt > vectors.npy
    regard embed model -o vectors.npy < lines.txt
    """
    if out is None and (sys.stdout is None or sys.stdout.isatty()):
        raise UsageError("vectors are no text for a terminal; say > vectors.npy, or -o vectors.npy")
    from regard.filter import write_vectors
    from regard.trained import Trained

    loaded, stream = Trained.load(model, precision), standard_input("regard embed MODEL < FILE")
    if out is None:
        write_vectors(loaded, stream, sys.stdout.buffer, batch, note)
        return
    waiting = Path(f"{out}.new")
    with open(waiting, "wb") as file:
        count = write_vectors(loaded, stream, file, batch, note)
    waiting.replace(out)
    note(f"wrote {out}: {count} × {loaded.vector_width}")


@app.command()
@quietly()
def search(
    model: Annotated[str, typer.Argument(help="A model folder; of any task that reads text.")],
    corpus: Annotated[str, typer.Argument(help="A file with one text a line.")],
    query: Annotated[str | None, typer.Argument(help="What to look for; without it, each line of input.")] = None,
    count: Annotated[int, typer.Option("-k", min=1, help="Lines that are shown.")] = 5,
    batch: Annotated[int, typer.Option(min=1, help="Lines read side by side; changes no result.")] = 64,
    precision: Precision = "fp32",
    as_json: Json = False,
) -> None:
    """The lines of a file that mean about the same.

    The nearest first, with the cosine of its vector and the query's; for queries from standard input, the query before
    them. Best with a model of the task embed.

    \b
    regard search model corpus.txt "9 May 2018"
    regard search model corpus.txt -k 3 --json < queries.txt
    """
    if query is not None and not query.strip():
        raise UsageError("there is nothing to search for in an empty text")
    from regard.data.lines import Line, bundles
    from regard.filter import Searcher
    from regard.trained import Trained

    stream = None if query is not None else standard_input("regard search MODEL CORPUS < FILE")
    searcher = Searcher(Trained.load(model, precision), corpus, batch)
    asked = iter([[Line(1, query or "", 0)]]) if stream is None else bundles(stream, batch, note)
    searcher.run(asked, count, note, sys.stdout, as_json, named=stream is not None)


# ── insight ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@app.command()
@quietly()
def look(
    model: Annotated[str, typer.Argument(help="A model folder.")],
    text: Annotated[str, typer.Argument(help="A source, tabs between its columns; or the path of a picture.")],
    out: Annotated[str | None, typer.Option("-o", help="A file .html, .svg, .png or .json; else the terminal.")] = None,
    beam: Annotated[int | None, typer.Option(min=1, max=1000, help="Width of the beam; 1 = greedy.")] = None,
    erase: Annotated[list[str] | None, typer.Option(help="A token of the source, or its number from 0.")] = None,
    off: Annotated[list[str] | None, typer.Option(metavar="MAP:HEAD", help="A head: decoder.0.cross:1")] = None,
    begin: Annotated[str, typer.Option(help="What the output begins with.")] = "",
    derive: Annotated[
        bool, typer.Option("--derive", help="Erasure, gradients, heads switched off: more passes.")
    ] = False,
    precision: Precision = "fp32",
) -> None:
    """What it looked at.

    \b
    regard look model "Saturday 9th of May, 2018"
    regard look model "Saturday 9th of May, 2018" -o look.html
    regard look model "Saturday 9th of May, 2018" --erase 3 --off decoder.0.cross:0
    regard look model picture.png -o look.svg
    """
    from regard.trained import Trained
    from regard.view import terminal

    loaded = Trained.load(model, precision)
    record = loaded.look(text, beam, change=changed(loaded, text, erase or [], off or [], begin), derive=derive)
    if out is None:
        typer.echo(terminal.looked(record))
        return
    record.save(out)
    note(f"{out}: {record.text} → {record.said}")


@app.command()
def report(
    model: Annotated[str, typer.Argument(help="A model folder.")],
    file: Annotated[str | None, typer.Argument(help="Examples to report on; else those held out in training.")] = None,
    out: Annotated[
        str | None, typer.Option("-o", help="An HTML file; else report.html in the folder, or here.")
    ] = None,
) -> None:
    """One page about a model: scores, curves, best and worst, accuracy by length, attention of twenty examples.

    It is written at the end of every training; with a file, made anew of what is in it.

    \b
    regard report model
    regard report model test.tsv -o test.html
    """
    from regard.report import write_report

    said: list[str] = []
    note(f"{write_report(model, file, out, said.append)}: open it in a browser")
    for line in filter(None, said):
        note(line)


@app.command()
def anatomy(
    preset: Annotated[str, typer.Argument(help="A preset.")],
    length: Annotated[int, typer.Option(min=2, max=4096, help="Tokens of source and target.")] = 64,
    vocabulary: Annotated[
        int | None, typer.Option(min=8, help="Tokens on each side. Default: as the preset says.")
    ] = None,
    settings: Set = None,
    config_file: ConfigFile = None,
    as_json: Json = False,
) -> None:
    """What a preset costs, counted on the built model.

    Parameters, operations, the longest chain of dependent operations, and path lengths, each beside its formula.

    \b
    regard anatomy transformer --length 64
    regard anatomy rnn-attention --set encoder.layers=2
    """
    from regard import config
    from regard.lab.anatomy import anatomy as dissect
    from regard.lab.anatomy import as_dict, render

    found = dissect(config.resolve(preset, config_file, settings), length, vocabulary)
    print(as_line(as_dict(found)) if as_json else render(found))


@app.command()
@quietly()
def compare(
    file: Annotated[str, typer.Argument(help="A file, a folder of pictures, or two parallel files: a.en,a.de")],
    test: Annotated[str | None, typer.Argument(help="Examples to be judged on; else those that are held out.")] = None,
    presets: Annotated[str, typer.Option(help="Two or more, such as rnn,rnn-attention,transformer.")] = "",
    out: Annotated[str, typer.Option("-o", help="Folder for the runs and the page.")] = "compare",
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Runs of each preset.")] = 3,
    minutes: Annotated[
        float | None, typer.Option(help="Minutes at most for each run. Default: 10, where no steps are named.")
    ] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Updates at most for each run.")] = None,
    valid: Annotated[str | None, typer.Option(help="Validation file; without one, some examples are held out.")] = None,
    task: TaskName = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the first run of each preset; the next have the next.")] = 0,
    settings: Set = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Presets side by side on one file, honestly.

    Same split, same tokens, same budget. A table here; compare.html, compare.json and by-length.svg in the folder;
    every run is a model in it, PRESET-SEED. What has finished there is not trained again, and what was interrupted goes
    on.

    \b
    regard compare dates.tsv dates-test.tsv --presets rnn,rnn-attention,transformer -o ladder
    regard compare dates.tsv --presets rnn,transformer --seeds 1 --steps 500
    """
    known_task(task)
    if not presets.strip(" ,"):
        raise UsageError("--presets: expected two or more, such as rnn,transformer; regard presets lists them")
    from regard.lab.compare.make import HTML, make
    from regard.lab.compare.plan import Asked
    from regard.lab.compare.show import render

    names = tuple(name.strip() for name in presets.split(",") if name.strip())
    asked = Asked(file, names, test, valid, seeds, seed, minutes, steps, task, tuple(settings or ()))
    found = make(asked, Path(out), quiet, "regard " + shlex.join(sys.argv[1:]))
    print(as_line(found.as_dict()) if as_json else render(found))
    note(f"{Path(out) / HTML}: open it in a browser; each folder beside it is a model, as {names[0]}-{seed}")


@app.command()
def laws(
    model: Annotated[str, typer.Argument(help="A model folder.")],
    seed: Annotated[int, typer.Option(help="Of the random sources.")] = 0,
    as_json: Json = False,
) -> None:
    """Is this model sound? One line for each law.

    \b
    regard laws model
    """
    from regard.lab.laws import laws as judge
    from regard.lab.laws import render
    from regard.trained import Trained

    found = judge(Trained.load(model), seed=seed)
    if as_json:
        print(as_line([{"name": law.name, "difference": law.difference, "holds": law.holds} for law in found]))
    else:
        print(render(found))
    if not all(law.holds for law in found):
        raise typer.Exit(1)


@app.command()
def demo(
    out: Annotated[str, typer.Option("-o", help="Folder for the data, the model and the picture.")] = "demo",
    preset: Annotated[str | None, typer.Option(help="A preset that turns text into text.")] = None,
    every: Annotated[
        bool, typer.Option("--all", help="All ten systems, small: the lesson, in ten to twenty minutes.")
    ] = False,
    seed: Seed = None,
    settings: Set = None,
) -> None:
    """Train, score and look: about a minute.

    With --all, ten small models, one for each system, and lesson.html, a page for each with what was measured.

    \b
    regard demo
    regard demo --preset transformer -o demo-transformer
    regard demo --all -o lesson
    """
    words = flag_words({"train.seed": seed}, {}) + (settings or [])
    if not every:
        from regard.lab.demo import demo as tell

        tell(Path(out), preset or "rnn-attention", words)
        return
    if preset is not None:
        raise UsageError(f"--all trains all ten systems; leave out --preset {preset}")
    from regard.lab.lesson.make import make

    make(Path(out), words)
    note(f"{Path(out) / 'lesson.html'} is the lesson; each folder beside it is a model: regard serve {out}/rnn")


# ── serving ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@app.command()
def serve(
    models: Annotated[
        list[str] | None,
        typer.Argument(metavar="[MODEL]...", help="Model folders; the first answers by default. None: the lesson."),
    ] = None,
    host: Annotated[str, typer.Option(help="Address; any but 127.0.0.1 needs --token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 = one that is free.")] = 8000,
    token: Annotated[str, typer.Option(envvar="REGARD_TOKEN", help="Whoever asks must show this.")] = "",
    allow_host: Annotated[list[str] | None, typer.Option("--allow-host", help="Another name of this machine.")] = None,
    queue: Annotated[int, typer.Option(min=1, max=10_000, help="Requests to a model that may wait.")] = 64,
) -> None:
    """Models behind an HTTP API and a page.

    On this machine only, unless --host and --token say otherwise. A folder that changes is loaded anew.

    \b
    regard serve model
    regard serve dates names --port 8080
    regard serve                                  the lesson alone
    """
    try:
        from regard.serve.run import Address
        from regard.serve.run import serve as answer
    except ModuleNotFoundError as error:
        if error.name not in ("fastapi", "hypercorn", "starlette"):
            raise
        raise RegardError("serve needs FastAPI and hypercorn: pip install 'regard[serve]'") from None
    answer([Path(each) for each in models or ()], Address(host, port, token, tuple(allow_host or ()), queue), note)


# ── other engines ────────────────────────────────────────────────────────────────────────────────────────────────────


@app.command()
def port(
    way: Annotated[str, typer.Argument(metavar="out", help="out: our models for other engines.")],
    engine: Annotated[str, typer.Argument(help="hf (Hugging Face transformers) or ctranslate2.")],
    model: Annotated[str, typer.Argument(help="A model folder.")],
    folder: Annotated[str, typer.Argument(help="The folder that is written; it must not be there yet.")],
) -> None:
    """Write a Transformer for another engine.

    Encoder and decoder must be of the kind attention; settings that the engine does not have are refused by name.

    \b
    regard port out hf model model-hf
    regard port out ctranslate2 model model-ctranslate2
    """
    if way != "out":
        raise UsageError(f"port {way}: expected out, as in: regard port out {engine} {model} {folder}")
    from regard.port.out import out

    out(engine, model, folder)
    note(f"wrote {folder}; {Path(folder) / 'README.md'} tells how it is used")


# ── small parts ──────────────────────────────────────────────────────────────────────────────────────────────────────


def flag_words(single: dict[str, Any], several: dict[str, str | None]) -> list[str]:
    """Flags that were given, as the same `a.b=c` words that --set takes."""
    words = [f"{name}={json.dumps(value)}" for name, value in single.items() if value is not None]
    return words + [f"{name}={json.dumps(value.split(','))}" for name, value in several.items() if value]


def known_task(name: str | None) -> str:
    """The name of a task, or none."""
    from regard import config

    if name is not None and name not in config.TASKS:
        raise UsageError(f"--task {name}{config.nearest(name, config.TASKS)}: expected {', '.join(config.TASKS)}")
    return name or ""


def asked_columns(loaded: "Trained", source: str | None, target: str | None) -> "Columns":
    """The columns that a model was trained on, but for those that are named."""
    from dataclasses import replace

    usual = loaded.task.columns()
    return replace(usual, source=tuple(source.split(",")) if source else usual.source, target=target or usual.target)


def configured(
    path: str, preset: str | None, file: str | None, words: list[str], start_from: str | None
) -> "tuple[Configured, Body | None]":
    """One config out of all that was said and guessed, and the model that the run starts from, if one was named."""
    from regard.rules import configured as configure

    if start_from is None:
        return configure(path, preset, file, words), None
    from regard.training.transfer import read_body

    body = read_body(start_from)
    return configure(path, preset, file, words, body.resolve), body


Said = tuple[str, str | None, str | None, list[str], str | None]  # the arguments of `configured`
Scored = tuple[str, "Evaluation | None"]  # a task, and scores


def trained(said: Said, valid: str | None, out: str, force: bool, quiet: bool) -> Scored:
    """One run with what was said, guessed and chosen."""
    made, body = configured(*said)
    from regard.training.run import Call, Given
    from regard.training.run import train as run_training
    from regard.training.stop import process_seconds

    call = Call(force, quiet, "regard " + shlex.join(sys.argv[1:]), process_seconds())
    _, found = run_training(made.config, said[0], valid, out, call, Given(made.why, body))
    return made.config.task, found


def searched(said: Said, valid: str | None, out: str, force: bool, quiet: bool) -> Scored:
    """Short runs with other settings each, then one with the best of them."""
    from regard.training.stop import process_seconds
    from regard.training.transfer import read_body
    from regard.tune.search import Asked, tuned

    file, preset, config_file, words, start_from = said
    body = None if start_from is None else read_body(start_from)
    command = "regard " + shlex.join(sys.argv[1:])
    asked = Asked(file, valid, preset, config_file, tuple(words), body, out, force, quiet, command)
    model, found = tuned(asked, process_seconds())
    return model.config.task, found


def token_words(tokens: str) -> list[str]:
    """`bpe` for both sides, or `words,bpe`; jamo, spelled words and sentences are for reading alone."""
    source, _, target = tokens.partition(",")
    target = target or ("" if source in ("jamo", "spelled", "sentences") else source)
    return [f"tokens.source={source}", *([f"tokens.target={target}"] if target else [])]


def note(line: str) -> None:
    """A line for the person, with nothing in it that could steer a terminal."""
    from regard.data.read import escape

    for each in line.split("\n"):
        print(escape(each), file=sys.stderr)


def changed(loaded: "Trained", text: str, erase: list[str], off: list[str], begin: str) -> "Change | None":
    """The flags of `look` that intervene."""
    from regard.view.change import Change

    if not (erase or off or begin):
        return None
    tokens = [token.text for token in loaded.in_view(text, loaded.item(text), loaded.wish())[1]]
    heads = []
    for word in off:
        name, _, head = word.rpartition(":")
        if not name or not head.isdecimal():
            raise UsageError(f"--off {word}: expected the name of a map and the number of a head: decoder.0.cross:1")
        heads.append((name, int(head)))
    return Change(tuple(token_number(word, tokens) for word in erase), tuple(heads),
                  loaded.vocabulary.target.encode(begin).ids)  # fmt: skip


def token_number(word: str, tokens: list[str]) -> int:
    """A token by its number, or by how it is shown if it stands there once."""
    if word.isdecimal() and tokens.count(word) != 1:
        return int(word)
    if tokens.count(word) != 1:
        shown = " ".join(f"{place}:{token}" for place, token in enumerate(tokens))
        raise UsageError(
            f"--erase {word}: stands there {tokens.count(word)} times, expected once, or a number: {shown}"
        )
    return tokens.index(word)


def wished(loaded: "Trained", given: dict[str, Any]) -> "Wish":
    """The flags of `run` about searching, as one wish."""
    from regard.data.read import read_lines
    from regard.search.write import Sampling
    from regard.tasks.task import Wish

    usual, drawn = loaded.config.search, [given[name] for name in ("seed", "temperature", "top_k", "top_p")]
    return Wish(
        beam=max(given["beam"] or usual.beam, given["n_best"]),
        n_best=given["n_best"],
        batch=given["batch"],
        length_penalty=usual.length_penalty if given["length_penalty"] is None else given["length_penalty"],
        sampling=Sampling(*drawn) if given["sample"] else None,
        min_length=given["min_length"],
        max_length=given["max_length"],
        no_repeat=given["no_repeat"],
        banned=tuple(given["ban"] or ()),
        prefix=given["prefix"],
        align=given["as_json"] and given["align"],
        pattern=given["pattern"],
        choices=read_lines(given["choices"]) if given["choices"] is not None else (),
        required=tuple(given["require"] or ()),
    )


def pass_lines(loaded: "Trained", wish: "Wish", context: typer.Context) -> None:
    """Standard input through the model, as the other flags of `run` say; who watches a terminal sees how far it is."""
    from regard.data.lines import Layout
    from regard.filter import Ask, Filter, nobody

    given = context.params
    refuse_search(loaded, typed(context))
    columns = tuple(given["input_column"].split(",")) if given["input_column"] else ()
    layout = Layout(given["format"], columns, given["output_column"], wish.n_best, line_break(loaded, given))
    usage = "regard run MODEL < FILE"
    stream = given_lines(loaded, given["inputs"]) if given["inputs"] else standard_input(usage)
    if sys.stdout is None:
        raise UsageError("there is no standard output to write to; say regard run MODEL > FILE")
    if given["min_confidence"] and loaded.calibration is None:
        note("warning: this model has not learnt how sure it is; confidence is the raw probability of an output")
    shown = None
    if sys.stderr is not None and sys.stderr.isatty():
        from regard.view.passage import passage

        shown = passage()
    ask = Ask(wish, layout, given["as_json"], given["min_confidence"])
    with shown or nullcontext(), warnings.catch_warnings():
        warnings.simplefilter("always")  # the default remembers every line that it warned of
        Filter(loaded, ask, note, shown.watch if shown else nobody).run(stream, sys.stdout)


def standard_input(usage: str) -> BufferedReader:
    if sys.stdin is None:
        raise UsageError(f"there is no standard input to read; say {usage}")
    return cast(BufferedReader, sys.stdin.buffer)


def given_lines(loaded: "Trained", inputs: list[str]) -> BytesIO:
    """Inputs of the command line as the lines of a stream; a path is what the person sees from where they stand."""
    torn = next((text for text in inputs if "\n" in text), None)
    if torn is not None:
        raise UsageError(f"the input {torn!r:.60} has a line end in it, expected one line; send it through a file")
    pictured = loaded.config.task == "caption"
    lines = [os.path.abspath(text) if pictured and os.path.exists(text.split("#")[0]) else text for text in inputs]
    return BytesIO("".join(f"{text}\n" for text in lines).encode(errors="surrogateescape"))


def typed(context: typer.Context) -> set[str]:
    """The parameters that were given on the command line, be it with the value that they have anyway."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"}


def refuse_contradictions(context: typer.Context) -> None:
    """Flags of `run` that do not fit together, or do nothing as they stand."""
    given, words = context.params, typed(context)
    if given["sample"] and (given["beam"] or given["n_best"] > 1):
        raise UsageError("--sample draws one output for each line; --beam and --n-best belong to searching")
    if not given["sample"] and words & {"temperature", "top_k", "top_p", "seed"}:
        raise UsageError("--temperature, --top-k, --top-p and --seed say how to draw; they need --sample")
    if given["sample"] and given["min_confidence"]:
        raise UsageError("--min-confidence: what is drawn at random has no confidence; leave out --sample")
    if given["max_length"] is not None and given["max_length"] < given["min_length"]:
        raise UsageError(f"--min-length {given['min_length']} is more than --max-length {given['max_length']}")
    if empty := [name for name in ("pattern", "require", "ban") if name in words and not all(listed(given[name]))]:
        raise UsageError(f"--{empty[0]}: found an empty text, which asks for nothing; leave the option out")
    if given["breaks"] and (given["as_json"] or given["input_column"] or given["format"] not in ("", "lines")):
        raise UsageError("--breaks is for a person who reads; JSON and tables have one line for each line")
    if "align" in words and not given["as_json"]:
        raise UsageError("--align and --no-align are about the alignment in a JSON record; they need --json")
    if "output_column" in words and not given["input_column"] and given["format"] in ("", "lines"):
        raise UsageError("--output-column names what is added to a table or to objects; it needs --input-column, "
                         "or --format tsv, csv or jsonl")  # fmt: skip


def line_break(loaded: "Trained", given: dict[str, Any]) -> str:
    """How a line break in an output is written: one line in is one line out, unless --breaks says otherwise."""
    if not loaded.task.any_length:
        if given["breaks"]:
            raise UsageError(f"--breaks: outputs of the task {loaded.config.task} have no line breaks")
        return " "
    return "\n" if given["breaks"] else "\\n"


def listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def refuse_search(loaded: "Trained", words: set[str]) -> None:
    """Flags of a search for a model that does none; a Wish always has them, so the task can not tell."""
    from regard.tasks.reading import APPLIES, Reads

    if isinstance(loaded.task, Reads) and words & {"beam", "length_penalty"}:
        raise UsageError(f"{loaded.task.why}: {APPLIES} apply to the task {loaded.config.task}")


def as_line(values: Any) -> str:
    """What --json prints: null for a number that is not finite, and nothing that could steer a terminal."""
    from regard.data.read import json_line

    return json_line(values)


def evaluation_dict(found: "Evaluation") -> dict[str, Any]:
    metrics = {name: {"value": m.value, "low": m.low, "high": m.high, "signature": m.signature}
               for name, m in found.metrics.items() if name not in found.mute}  # fmt: skip
    table = {"confusion": found.confusion.as_dict()} if found.confusion else {}
    mute = {"left_out": found.mute} if found.mute else {}
    return {"metrics": metrics, **found.facts, "examples": len(found.outputs), **mute, **table}


def evaluation_text(found: "Evaluation") -> str:
    """A table of scores for a person."""
    from regard.tasks.facts import MEANINGS, number

    lines = [f"{len(found.outputs)} examples"]
    for m in found.telling:
        interval = "" if m.low is None else f"  ({m.low:.2f} – {m.high:.2f})"
        lines.append(f"{m.name:24}{m.value:10.2f}{interval}   {m.signature}")
    lines += [f"{name:24}{'–':>10}   left out: {why}" for name, why in found.mute.items()]
    lines += [f"{name.replace('_', ' '):24}{number(name, value):>10}   {MEANINGS.get(name, '')}".rstrip()
              for name, value in found.facts.items()]  # fmt: skip
    lines += ["", found.confusion.render()] if found.confusion else []
    return "\n".join(lines)


def tell_saved(out: str, task: str, found: "Evaluation | None", quiet: bool) -> None:
    """Scores, where the model is, what to type next. Of several processes only the first has scores, and the word."""
    if found is None:
        return
    print(evaluation_text(found), flush=True)
    if quiet:
        return
    from regard.report import told_failures
    from regard.training.card import commands
    from regard.view.terminal import command

    folder = shlex.quote(out)
    if line := told_failures(Path(out)):
        note(line)
    note(f"the model is in {out}: README.md is its card; open report.html in a browser to see how it went")
    for place, line in enumerate([*commands(task), "regard serve FOLDER", "regard laws FOLDER"]):
        typed = line.replace("FOLDER", folder).replace("regard", command(), 1)
        note(f"{'      ' if place else 'next: '}{typed}")
    if (Path(out) / "tensorboard").is_dir():
        note(f"      tensorboard --logdir {folder}/tensorboard")


def show_warning(message: Warning | str, *_: Any) -> None:
    note(f"warning: {message}")


def fail(error: RegardError) -> NoReturn:
    what = "" if isinstance(error, Interrupted) else "error: "  # whoever pressed Ctrl-C has made no error
    note(what + "\n".join(str(error).split("\n")[:3]))
    sys.exit(error.exit_code)


def leave(code: str | int | None) -> NoReturn:
    """Ends the process when all is written; when nobody reads any more, without a word."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        hush()
    sys.exit(code)


def hush() -> NoReturn:
    """The reader is gone: what Python would still flush at exit goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(0)


def verbs() -> TyperGroup:
    """The command, with --debug allowed after each verb too, wherever it is not the value of another option."""
    group = cast(TyperGroup, typer.main.get_command(app))
    debug = copy(next(each for each in group.params if isinstance(each, TyperOption) and each.name == "debug"))
    debug.expose_value, debug.hidden = False, True
    for verb in group.commands.values():
        verb.params.append(debug)
    return group


def speak_utf8() -> None:
    """Results are UTF-8 whatever the locale; words for a person are what their terminal reads, the rest spelled out."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    if isinstance(sys.stderr, TextIOWrapper):
        sys.stderr.reconfigure(errors="backslashreplace")


def main() -> None:
    """The command: errors as a few lines, exit codes as promised, a closed pipe without a word."""
    warnings.showwarning = show_warning  # type: ignore[assignment]
    DEBUGGING.set(False)
    speak_utf8()
    try:
        verbs()(sys.argv[1:])
    except SystemExit as ending:
        # Typer leaves with 1 when a pipe is closed.
        hush() if isinstance(ending.__context__, BrokenPipeError) else leave(ending.code)
    except Exception as error:
        if DEBUGGING.get():
            raise
        fail(as_error(error))


def as_error(error: Exception) -> RegardError:
    """What the system refuses, in the words of the project; what nobody foresaw as the defect that it is."""
    if isinstance(error, RegardError):
        return error
    if isinstance(error, MemoryError):
        return RegardError(f"out of memory{f': {error}' if str(error) else ''}; a smaller --batch or --beam needs less")
    if not isinstance(error, OSError):
        first = (str(error).splitlines() or [""])[0]
        return RegardError(f"a defect of regard: {type(error).__name__}: {first}\n--debug shows where it happened")
    where = f"{error.filename}: " if error.filename is not None else ""
    if isinstance(error, FileNotFoundError):
        return MissingError(f"{where}no such file")
    return RegardError(f"{where}{error.strerror or error}")


__all__ = ["UsageError", "app", "main"]
