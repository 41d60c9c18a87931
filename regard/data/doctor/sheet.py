"""What the doctor found in, the text for a terminal out: what the file is, and each finding with its cure."""

import textwrap
from collections.abc import Iterable, Iterator

from regard.data.check import Alphabets, Lengths, Report, Survey
from regard.data.doctor.baselines import Baselines
from regard.data.doctor.finding import Finding
from regard.data.read import escape

BLOCKS = " ▁▂▃▄▅▆▇█"
SHOWN_SIZES = 3
LABEL = 12  # characters before the text of a line
METRICS = {"chrf": "chrF", "bleu": "BLEU", "f1": "F1"}  # as they are written


def render(report: Report, width: int = 80) -> str:
    """The report for a terminal; what comes from data can not steer it."""
    lines: list[str] = []
    for label, text in _sections(report):
        first = f"{label:<{LABEL}}"
        room = max(width, 2 * LABEL)
        lines += textwrap.wrap(text, room, initial_indent=first, subsequent_indent=" " * LABEL) or [first.rstrip()]
    return "\n".join(lines) + "\n"


def _sections(report: Report) -> Iterator[tuple[str, str]]:
    """The lines of the report, each a label and a text that may be wrapped."""
    columns = [escape(name) for name in (*report.source_names, report.target_name or "")]
    arrow = f" → {columns[-1]}" if report.target_name is not None else ""
    yield "file", escape(report.path)
    for number, line in enumerate(report.why):
        yield "" if number else "train", escape(line)
    yield "examples", f"{report.examples:,} (columns {', '.join(columns[:-1])}{arrow}), {report.skipped:,} skipped"
    for note in report.notes:
        yield "note", escape(note)
    if report.source_lengths:
        yield "source", _length_text(report.source_lengths)
    if report.target_lengths:
        yield "target", _length_text(report.target_lengths)
    if report.source_lengths:
        yield "characters", _alphabet_text(report.alphabets)
    if report.pictures:
        yield from _picture_sections(report.pictures)
    if report.overlap and not report.overlap.examples:
        yield "overlap", f"no source of {escape(report.overlap.path)} is here too"
    if report.ceiling is not None:
        yield "ceiling", f"{percent(report.ceiling)} exact match is the best there can be on these examples"
    if report.baselines:
        yield from _baseline_sections(report.baselines)
    yield from _finding_sections(report.findings)


def _baseline_sections(found: Baselines) -> Iterator[tuple[str, str]]:
    """What can be had without learning, and on what that was measured."""
    some = f"{found.held:,}" if found.held == found.of else f"{found.held:,} of {found.of:,}"
    known = f"; neighbours among {found.searched:,} of {found.known:,}" if 0 < found.searched < found.known else ""
    yield "baselines", f"without learning, on {some} held-out examples{known}:"
    wide = max(len(rule.name) for rule in found.rules)
    for rule in found.rules:
        scores = ", ".join(f"{METRICS.get(name, name)} {value:.1f}" for name, value in rule.scores)
        yield "", f"{rule.name:<{wide}}  {scores}".replace(" ", "\u00a0")


def _finding_sections(findings: Iterable[Finding]) -> Iterator[tuple[str, str]]:
    found = list(findings)
    if not found:
        yield "found", "nothing that stands out"
        return
    yield "found", f"{len(found)} things to look at, the worst first:" if len(found) > 1 else "one thing to look at:"
    for finding in found:
        share = f"{finding.count:,} of {finding.of:,}"
        share += f" ({percent(finding.share)})" if finding.share >= 0.0005 else ""
        lines = ", ".join(f"{line:,}" for line in finding.lines) + (" …" if finding.count > len(finding.lines) else "")
        yield finding.level, f"{finding.kind}: {share} {escape(finding.said)}"
        yield "", f"line{'s' * (len(finding.lines) > 1)} {lines}: {escape(finding.example)}"
        yield "", f"cure: {escape(finding.cure)}"


def _picture_sections(pictures: Survey) -> Iterator[tuple[str, str]]:
    sizes = ", ".join(f"{size} ({count:,} of them)" for size, count in pictures.sizes[:SHOWN_SIZES])
    more = f" and {len(pictures.sizes) - SHOWN_SIZES:,} other sizes" if len(pictures.sizes) > SHOWN_SIZES else ""
    tried = f"{pictures.opened:,} tried, of {pictures.of:,}: " if pictures.opened < pictures.of else ""
    opened = f"{pictures.opened - pictures.failed:,} opened"
    yield "pictures", f"{tried}{opened}, {pictures.failed:,} can not be read{': ' if sizes else ''}{sizes}{more}"
    for line in pictures.shown:
        yield "", escape(line)


def _length_text(lengths: Lengths) -> str:
    numbers = (
        f"{lengths.shortest:,} to {lengths.longest:,} characters, median {lengths.median:,}, 95 % ≤ {lengths.p95:,}"
    )
    return f"▕{bars(lengths.counts)}▏ {numbers}"


def bars(counts: Iterable[int]) -> str:
    """Counts as blocks of an eighth; what is not zero is seen."""
    heights = list(counts)
    top = max(heights, default=0) or 1
    # Rounded up, so that a single long line still shows. A no-break space keeps an empty bin from being wrapped away.
    return "".join(BLOCKS[-(-height * (len(BLOCKS) - 1) // top)] for height in heights).replace(" ", "\u00a0")


def _alphabet_text(alphabets: Alphabets) -> str:
    seen = f", {alphabets.once:,} seen once" if alphabets.once else ""
    return f"{alphabets.source:,} in source, {alphabets.target:,} in target, {alphabets.shared:,} in both{seen}"


def percent(share: float) -> str:
    """One decimal, but never 100 or 0 for what is not quite."""
    rounded = min(max(round(100 * share, 1), 0.1), 99.9) if 0 < share < 1 else 100 * share
    return f"{rounded:.1f} %"
