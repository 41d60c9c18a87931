"""Some rows of a file in, what may be meant by it out: the task, its columns, its tokens, and why.

Nothing here is an error: what can not be read is left to the reader, which says what is wrong with it. What is given
by a flag, a setting or a config file is never guessed.

    caption    a folder of pictures, or a column with paths of pictures, be they there or not
    generate   a text without columns, or a single column
    tag        as many target words as source words, of few kinds; or a token and its label on each line
    classify   few different targets, each of many examples
    transduce  anything else
"""

import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from regard import config
from regard.data.columns import (
    EACH,
    PART,
    SEEN,
    WORDS,
    are_classes,
    are_numbers,
    holds_tags,
    is_echoed,
    is_tagged,
    without_text,
    words,
)
from regard.data.header import ASIDE_NAMES, HEADER_NAMES, LABEL_NAMES, SOURCE_NAMES, TARGET_NAMES, cleaned
from regard.data.images import is_there, looks_like_image
from regard.data.read import (
    CHOOSE,
    NEARLY_ALL,
    Columns,
    Sample,
    escape,
    files_of,
    folder_of,
    listed,
    position,
    quote,
    sample,
    taken_header,
)
from regard.errors import ConfigError, DataError, RegardError

MOST_LABELS = 100  # kinds of labels …
LONGEST_LABEL = 60  # … their characters …
FEWEST_ROWS = 20  # … of so many different examples at least, EACH for a label on average …
SEEN_SHARE = 0.8  # … and of so many of them the label has been SEEN often
RARE = 0.05  # of the words of texts with holes may come a single time; where more do, words are cut into pieces
LONGEST = 8192  # tokens of a spelled text; a longer one is left out
PARTED = (" ||| ", " OUT: ", " -> ", " => ", "  ", " = ", "=")  # what else stands between source and target …
FEWEST_LINES = 10  # … in so many lines at least

NAME = re.compile(r"[^\W\d][\w.-]{0,29}")  # of a column

Row = tuple[str, ...]


@dataclass(frozen=True)
class Guess:
    """What a file seems to be for; what is empty is left to the reader and to the preset."""

    task: str
    source: tuple[str, ...] = ()
    target: str = ""
    tags: tuple[str, ...] = ()  # source columns that hold tags
    tokens: str = ""
    why: tuple[str, ...] = ()  # a line for the task and one for the columns, with the flags that overrule them
    why_tokens: str = ""
    longest: int = 0  # tokens of a source, where the usual limit would leave texts out
    pictured: bool = False  # whether the source holds pictures, which only captions are learnt from
    parted: str = ""  # how a file that seems to be running text holds pairs after all, and what makes columns of them

    def asked(self, columns: Columns) -> Columns:
        """What `read` is to be asked for, where these columns were asked for before."""
        target = None if self.task in ("generate", "fill") else columns.target or self.target
        return Columns(columns.source or self.source, target, tagged=self.task == "tag")


def guess(path: str, columns: Columns = CHOOSE, task: str = "", images: str = "") -> Guess:
    """From some rows of a file: the task, unless it is given, and the columns and tokens for it."""
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        why = "a pipe is read once, so nothing is chosen from what it brings; a file would be looked at first"
        return Guess(task or "transduce", why=() if task else (line("transduce", why),))
    try:
        if not all(map(os.path.exists, files_of(path))):
            return Guess(task or "transduce")
        found = sample(path, replace(columns, tagged=task in ("", "tag")))
    except (RegardError, OSError):
        return Guess(task or "transduce")
    return guess_table(found, folder_of(path), columns, task, images)


def guess_table(found: Sample, folder: str, columns: Columns, task: str, images: str) -> Guess:
    if task in ("generate", "fill"):
        tokens, why_tokens = tokens_to_fill(found, columns) if task == "fill" else ("", "")
        return Guess(task, tokens=tokens, why_tokens=why_tokens, pictured=reads_pictures(found, folder, columns))
    found, header = with_header(found, folder)
    if found.labelled is not None:
        return guess_sentences(found, columns, task)
    asked = bool(columns.source or columns.target)
    if not task and not asked and len(found.names) == 1 and found.rows and not found.hint:
        what = "the file is running text" if found.kind == "text" else "there is one column"
        why_tokens = line_of_tokens("characters", what)
        cure = parted([row[0] for row in found.rows])
        doubt = (f"warning: this looks like pairs, and is refused as text: {cure}",) if cure else ()
        return Guess("generate", tokens="characters", why=(line("generate", what), *doubt), why_tokens=why_tokens,
                     parted=cure)  # fmt: skip
    chosen = choose(found, folder, columns, task, images)
    if chosen is None or not found.rows:
        return Guess(task or "transduce")
    view = View(found, folder, chosen, images)
    name, reason = (task, "") if task else task_of(view)
    header = taken_header(found.names, (*chosen.source, chosen.target)) if found.taken else header
    doubts = lost_pictures(view, name) if task else [*one_class(view), *maybe_header(found, chosen)]
    why = ([line(name, reason)] if reason else []) + [each for each in (header, chosen.why, *doubts) if each]
    source, target = (chosen.source, chosen.target) if header or chosen.why else ((), "")
    if name != "classify":
        tags = chosen.tags if name == "transduce" else ()
        return Guess(name, source, target, tags, why=tuple(why), pictured=view.is_pictured)
    tokens, most = ("spelled", view.most_tokens) if view.words_a_text >= WORDS else ("characters", 0)
    why_tokens = line_of_tokens(tokens, f"{view.words_a_text:.1f} words a text")
    return Guess(name, source, target, (), tokens, tuple(why), why_tokens, most, view.is_pictured)


def guess_sentences(found: Sample, columns: Columns, task: str) -> Guess:
    """Tokens and their labels, one of each on a line; the reader takes the same columns by itself."""
    assert found.labelled is not None
    told = "a token and its label on each line, blank lines between sentences"
    flags = "--source {} --target {}".format(*found.labelled)
    more = f"columns {flags}, of {len(found.names)}: a token and its label; these flags overrule it"
    why = ([] if task else [line("tag", told)]) + ([more] if len(found.names) > 2 and not columns.source else [])
    return Guess("tag", why=tuple(why))


def line(task: str, reason: str) -> str:
    if task == "caption":  # nothing else reads pictures
        return f"task caption: {reason}"
    other = {"transduce": "classify", "generate": "fill"}.get(task, "transduce")
    return f"task {task}: {reason}; --task {other} overrules it"


def line_of_tokens(tokens: str, reason: str) -> str:
    return f"tokens {tokens}: {reason}; --tokens overrules it"


def parted(lines: Sequence[str]) -> str:
    """What makes two columns of lines that have none, but one mark in nearly each, or are a JSON array of objects."""
    start = "".join(lines[:2]).replace(" ", "")
    if start.startswith("[{"):
        return "it is a JSON array; `jq -c '.[]'` makes a .jsonl of it, one object a line"
    for mark in PARTED if len(lines) >= FEWEST_LINES else ():
        once = sum(len([*filter(None, line.strip().split(mark))]) == 2 for line in lines)
        if once >= NEARLY_ALL * len(lines):
            return f"nearly every line holds {quote(mark)} once; a tab in its place makes a .tsv of it, two columns"
    return ""


# ── pictures and their header ────────────────────────────────────────────────────────────────────────────────────────


def reads_pictures(found: Sample, folder: str, columns: Columns) -> bool:
    """Whether what a task without a target would read are pictures."""
    return found.kind == "folder" or any(is_pictured(texts, folder, "") for texts in read_alone(found, columns))


def read_alone(found: Sample, columns: Columns) -> list[list[str]]:
    """What a task without a target reads: the texts of the columns that are asked for, or of the first."""
    named = [label(found.names, name) for name in columns.source] or [*found.names[:1]]
    return [[row[found.names.index(name)] for row in found.rows] for name in named if name]


def with_header(found: Sample, folder: str) -> tuple[Sample, str]:
    """The rows without a first one that names the column of pictures, under whatever name; and that this is so."""
    if found.headed or found.kind not in ("tsv", "csv") or len(found.rows) < 2:
        return found, ""
    first, rest = found.rows[0], found.rows[1:]
    names = tuple(name.strip() for name in first)
    if len(set(names)) < len(names) or not all(names) or any(map(str.isdecimal, names)):
        return found, ""
    for place, name in enumerate(names):
        if not looks_like_image(name) and names_pictures([row[place] for row in rest], ""):
            why = f"the first line is a header ({listed([*names])}): below {escape(name)} stand pictures"
            return replace(found, names=names, headed=True, rows=rest), why
    return found, ""


# ── holes ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def tokens_to_fill(found: Sample, columns: Columns) -> tuple[str, str]:
    """A hole is one token. In texts of several words it is a word, or a piece of one where many words are rare."""
    texts = [[*words(text)] for column in read_alone(found, columns) for text in column]
    often = Counter(word for text in texts for word in text)
    mean = sum(map(len, texts)) / max(len(texts), 1)
    if mean < WORDS:
        return "", ""
    rare = sum(count == 1 for count in often.values()) / often.total()
    tokens = "words" if rare <= RARE else "bpe"
    told = "hardly a word comes once" if tokens == "words" else f"{100 * rare:.0f} % of the words come once"
    return tokens, line_of_tokens(tokens, f"{mean:.1f} words a text, and {told}; a hole is one token")


# ── columns ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Chosen:
    """Columns by their names, and why these; no reason where the reader takes the same by itself."""

    source: tuple[str, ...]
    target: str
    why: str = ""
    tags: tuple[str, ...] = ()  # columns of the source that hold tags


def choose(found: Sample, folder: str, columns: Columns, task: str, images: str) -> Chosen | None:
    """The columns that are asked for, and for those that are not the likeliest; none where nothing makes sense."""
    asked = [label(found.names, name) for name in (*columns.source, *([columns.target] if columns.target else []))]
    if any(name is None for name in asked):
        return None
    source = tuple(label(found.names, name) or name for name in columns.source)
    target = (label(found.names, columns.target) or "") if columns.target else ""
    free = [name for name in found.names if name not in (*source, target) and name.lower() not in ASIDE_NAMES]
    if not target and not free:
        return None
    aside = {} if asked else set_aside(found, free, images)
    free = [name for name in free if name not in aside]
    tags = tag_columns(found, source, target, free)
    worded = [name for name in free if name not in tags] or free
    target, reason = (target, "") if target else likely_target(found, source, worded, task, free[-1])
    if not source:
        others = [name for name in free if name != target]
        if target in named_targets(found, free):  # labels beside a text that is to be written tell of the same row
            others = [name for name in others if name.lower() not in LABEL_NAMES] or others
        source, more = likely_source(found, others, target, folder, images)
        reason = reason or more
    if not source:
        return None
    if len(found.names) == 2 and (source, target) == ((found.names[0],), found.names[1]):
        return Chosen(source, target)
    tags = [name for name in tags if name in source] if len(source) > 1 else []
    return Chosen(source, target, line_of_columns(found, source, target, tags, reason, aside), tuple(tags))


def line_of_columns(
    found: Sample, source: Sequence[str], target: str, tags: list[str], reason: str, aside: dict[str, str]
) -> str:
    """Why these columns, and the flags that overrule it; nothing where they were asked for and hold no tags."""
    named = f"--source {escape(','.join(source))} --target {escape(target)}" if reason else ""
    tagged = f"--tags {escape(','.join(tags))}" if tags else ""
    left = [f"column {escape(name)} {why} and is set aside" for name, why in aside.items()]
    reasons = ", ".join(filter(None, (*left, reason, f"{listed(tags)} holds tags" if tags else "")))
    flags = " ".join(filter(None, (named, tagged)))
    return f"columns {flags}, of {listed([*found.names])}: {reasons}; these flags overrule it" if flags else ""


def set_aside(found: Sample, free: list[str], images: str) -> dict[str, str]:
    """The columns that carry no text, each with why; their names keep them, and what stands in a target with a name."""
    if len(free) < 3 or not found.rows:
        return {}
    table = {name: cells_of(found, name) for name in free}
    kept = [name for name in free if found.headed and name.lower() in HEADER_NAMES]
    kept += [name for name in free if names_pictures(table[name], images)]
    named = named_targets(found, free)
    if any(name.lower() in LABEL_NAMES for name in named):  # of which a number may tell
        kept += [name for name in free if are_numbers(table[name])]
    elif named:
        kept += [name for name in free if is_echoed(table[name], [table[target] for target in named])]
    return {name: why for name, why in without_text(table).items() if name not in kept}


def tag_columns(found: Sample, source: Sequence[str], target: str, free: list[str]) -> list[str]:
    """Of three columns or more, those that hold tags of the others."""
    known = [*source, *([target] if target else [])]
    table = {name: cells_of(found, name) for name in found.names if name in (*known, *free)}
    if len(table) < 3 or not found.rows:
        return []
    last = "" if target else free[-1]
    wanted = [name for name in (*source, *free) if name not in named_targets(found, free)]
    return [name for name in wanted if holds_tags(name, table, name == last)]


def cells_of(found: Sample, name: str) -> list[str]:
    place = found.names.index(name)
    return [row[place] for row in found.rows]


def label(names: Sequence[str], asked: str) -> str | None:
    """A column by its name or position."""
    if asked in names:
        return asked
    return names[position(asked) - 1] if 1 <= position(asked) <= len(names) else None


def named_targets(found: Sample, free: list[str]) -> list[str]:
    """The columns with names for targets; not those for labels, where texts to be written are named too."""
    named = [name for name in free if found.headed and name.lower() in TARGET_NAMES]
    return [name for name in named if name.lower() not in LABEL_NAMES] or named


def named_sources(found: Sample, free: list[str]) -> list[str]:
    return [name for name in free if found.headed and name.lower() in SOURCE_NAMES]


def likely_target(found: Sample, source: Sequence[str], free: list[str], task: str, last: str) -> tuple[str, str]:
    """The column with a name for targets, the one with tags of the first, or the last without a name for sources."""
    named, sources = named_targets(found, free), named_sources(found, free)
    if len(named) == 1:
        return named[0], "the name tells the target"
    others = [name for name in free if name not in sources and not names_pictures(cells_of(found, name), "")]
    if not source and last in sources and others:
        return (named or others)[-1], "the names of the others tell sources"
    if task in ("", "tag") and not source and len(free) > 2 and is_tagged(pairs(found, free[0], free[1])):
        return free[1], f"column {escape(free[1])} holds as many tags as column {escape(free[0])} has words"
    if free[-1] != last:
        return free[-1], "the last without tags is the target"
    return last, "the last is the target" if last == found.names[-1] else "the last that is left is the target"


def likely_source(found: Sample, free: list[str], target: str, folder: str, images: str) -> tuple[tuple[str, ...], str]:
    """The column with pictures, the one with words that are tagged, or all that are left."""
    told = {name: cells_of(found, name) for name in free}
    named = [name for name in free if names_pictures(told[name], images)]
    there = [name for name in named if is_pictured(told[name], folder, images)]
    for name in [*there, *named]:
        return (name,), f"column {escape(name)} holds pictures"
    for name in free if len(free) > 1 else []:
        if is_tagged(pairs(found, name, target)):
            return (name,), f"column {escape(target)} holds as many tags as column {escape(name)} has words"
    return tuple(free), "the others are the source"


def pairs(found: Sample, source: str, target: str) -> list[tuple[str, str]]:
    return [*zip(cells_of(found, source), cells_of(found, target), strict=True)]


# ── tasks ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class View:
    """The chosen columns of some rows."""

    def __init__(self, found: Sample, folder: str, chosen: Chosen, images: str) -> None:
        places = [found.names.index(name) for name in chosen.source]
        last = found.names.index(chosen.target)
        self.folder, self.images, self.chosen, self.kind = folder, images, chosen, found.kind
        self.whole = found.whole
        self.rows: list[tuple[Row, str]] = [(tuple(row[place] for place in places), row[last]) for row in found.rows]

    @property
    def is_pictured(self) -> bool:
        if len(self.chosen.source) > 1:
            return False
        return is_pictured([source[0] for source, _ in self.rows], self.folder, self.images)

    @property
    def names_pictures(self) -> bool:
        return len(self.chosen.source) == 1 and names_pictures([source[0] for source, _ in self.rows], self.images)

    @property
    def words_a_text(self) -> float:
        return sum(len(words(text)) for source, _ in self.rows for text in source) / max(len(self.rows), 1)

    @property
    def most_tokens(self) -> int:
        """Tokens of the longest source, spelled, in whole thousands."""
        longest = max(sum(len(text) + len(words(text)) + 1 for text in source) for source, _ in self.rows)
        return min(LONGEST, -(-longest // config.LONG) * config.LONG)


def task_of(view: View) -> tuple[str, str]:
    """The first task whose rule fits, and what was seen."""
    if len(view.chosen.source) == 1:
        if view.is_pictured:
            return "caption", "a folder of pictures" if view.kind == "folder" else "the source holds pictures"
        if view.names_pictures:
            return (
                "caption",
                "the source holds paths of pictures, none of which is there; --task transduce overrules it",
            )
        if is_tagged([(source[0], target) for source, target in view.rows]):
            kinds = len({tag for _, target in view.rows for tag in words(target)})
            return "tag", f"as many target words as source words, {kinds} kinds of them"
    examples = list(dict.fromkeys(view.rows))
    kinds = len({target for _, target in examples})
    looked = "" if view.whole else "the "
    counted = f"{kinds:,} different target{'s' * (kinds > 1)} in {looked}{len(examples):,} different examples"
    counted += "" if view.whole else " that were looked at"
    if not is_labelled(examples):
        return "transduce", counted
    numbers = [target for _, target in examples]
    if are_numbers(numbers) and not are_classes(numbers):
        return "transduce", f"{counted}, but they are numbers of many kinds: written, no labels"
    if is_copied(examples):
        return "transduce", f"{counted}, but they stand in their sources: answers, no labels"
    return "classify", counted


def is_pictured(values: Sequence[str], folder: str, images: str) -> bool:
    """Whether a column tells of pictures, of which there are some; or, with a file of pictures, of its rows."""
    return names_pictures(values, images) and (bool(images) or any(is_there(value, folder) for value in values))


def names_pictures(values: Sequence[str], images: str) -> bool:
    """Whether a column tells of pictures, be they there or not."""
    if images:
        return bool(values) and all(value.isascii() and value.isdecimal() for value in values)
    return sum(map(looks_like_image, values)) >= max(1, NEARLY_ALL * len(values))


def is_labelled(examples: Sequence[tuple[Row, str]]) -> bool:
    """Whether targets may be labels: few, short, each of many examples."""
    counts = Counter(target for _, target in examples)
    if len(examples) < FEWEST_ROWS or not 2 <= len(counts) <= MOST_LABELS or len(examples) < EACH * len(counts):
        return False
    if max(map(len, counts)) > LONGEST_LABEL:
        return False
    seen = sum(count for count in counts.values() if count >= SEEN)
    return seen >= SEEN_SHARE * len(examples)


def is_copied(examples: Sequence[tuple[Row, str]]) -> bool:
    """Whether nearly every target stands in its source: then it is an answer to be written, and another may come."""
    return sum(holds(source, target) for source, target in examples) >= NEARLY_ALL * len(examples)


def holds(source: Row, target: str) -> bool:
    wanted = set(PART.findall(target.lower()))
    return bool(wanted) and wanted <= {part for text in source for part in PART.findall(text.lower())}


# ── doubts ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def one_class(view: View) -> list[str]:
    """A warning where every example has the same target."""
    targets = {target for _, target in view.rows}
    if len(targets) != 1 or len(view.rows) < 2:
        return []
    return [f"warning: all {len(view.rows):,} targets are {quote(targets.pop())}: one label alone, from which nothing "
            "is learnt but to write it; are the other labels in another file?"]  # fmt: skip


def lost_pictures(view: View, task: str) -> list[str]:
    """A warning where a task that was asked for reads the paths of pictures, none of which is there."""
    if task == "caption" or view.is_pictured or not view.names_pictures:
        return []
    return [f"warning: the source looks like paths of pictures, none of which is there: {task} reads them as text"]


def maybe_header(found: Sample, chosen: Chosen) -> list[str]:
    """A warning where the first line looks like no other: no word of it comes again, as nearly all others' do."""
    if found.headed or found.kind not in ("tsv", "csv") or len(found.rows) < FEWEST_ROWS:
        return []
    first, *rest = [{word.lower() for text in row for word in words(text)} for row in found.rows]
    often = Counter(word for row in rest for word in row)
    names = cleaned(found.rows[0])
    like_names = len(set(names)) == len(names) and all(NAME.fullmatch(name) for name in names)
    alone = sum(all(often[word] == 1 for word in row) for row in rest)
    if not like_names or any(often[word] for word in first) or alone > (1 - NEARLY_ALL) * len(rest):
        return []
    source = [name for name in (names[found.names.index(each)] for each in chosen.source)
              if name.lower() not in ASIDE_NAMES]  # fmt: skip
    flags = f"--source {escape(','.join(source))} --target {escape(names[found.names.index(chosen.target)])}"
    return [f"warning: the first line, {listed(names)}, is read as an example, and looks like a header; if it is one, "
            f"say {flags}"]  # fmt: skip


# ── a config ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def refuse_pictures(path: str, found: Guess, task: str) -> None:
    """A task that reads text would read the paths of pictures, and seem to learn."""
    if found.pictured and task not in ("", "caption"):
        raise ConfigError(f"{escape(path)}: the source holds pictures, and the task {task} reads text: it would learn "
                          "from their paths alone; say --task caption, which writes labels too")  # fmt: skip


def refuse_parted(path: str, found: Guess, task: str) -> None:
    """A file that holds pairs in another form would be learnt as running text, and nobody would notice."""
    if found.parted and not task:
        raise DataError(f"{escape(path)}: this looks like pairs: {found.parted}; or say --task generate, which learns "
                        "to write such lines")  # fmt: skip


def guessed_words(found: Guess, data: config.Tree, open_task: bool, open_tokens: bool) -> Iterator[str]:
    """The settings that a guess stands for, where nothing else was said."""
    if open_task:
        yield f"task={found.task}"
    if found.source and not data.get("source"):
        yield f"data.source={json.dumps(found.source)}"
    if found.target and not data.get("target"):
        yield f"data.target={json.dumps(found.target)}"
    if found.tags and "tags" not in data:
        yield f"data.tags={json.dumps(found.tags)}"
    if open_tokens:
        yield f"tokens.source={found.tokens}"
    if open_tokens and found.longest and "max_source" not in data:
        yield f"data.max_source={found.longest}"
    if open_tokens and found.task == "generate":
        yield f"tokens.target={found.tokens}"
