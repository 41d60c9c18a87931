"""A table in, the page with the table between its marks out: `<!-- name -->` and `<!-- /name -->`."""

from pathlib import Path

from regard.errors import UsageError


def put(page: Path, name: str, text: str) -> None:
    """Replaces what stands between the marks of this name."""
    first, last = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    before, found, rest = page.read_text(encoding="utf-8").partition(first)
    _, closed, after = rest.partition(last)
    if not found or not closed:
        raise UsageError(f"{page}: expected the marks {first.strip()} and {last} around the place of the table")
    page.write_text(f"{before}{first}{text}\n{last}{after}", encoding="utf-8")
