"""Small files for the doctor, as it sees them."""

from collections.abc import Sequence

from regard.data.doctor.finding import Finding, Sight
from regard.data.read import Example


def sight(rows: Sequence[tuple[str, ...]], task: str = "transduce") -> Sight:
    """Rows of source columns and a target."""
    return Sight([Example(tuple(row[:-1]), row[-1], line) for line, row in enumerate(rows, 1)], task)


def kinds(findings: Sequence[Finding | None]) -> list[str]:
    return [finding.kind for finding in findings if finding is not None]


def only(findings: Sequence[Finding | None]) -> Finding:
    """The one finding that there is."""
    found = [finding for finding in findings if finding is not None]
    assert len(found) == 1, kinds(found)
    return found[0]
