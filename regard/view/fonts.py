"""Text in, families of fonts that can draw it out; what no font of this machine has is drawn as an empty box."""

import os
from collections.abc import Iterable
from functools import cache
from typing import Any

USUAL = "DejaVu Sans"  # comes with matplotlib
BOX = "▯"

registered_paths: dict[str, str] = {}  # of fonts that matplotlib was told of, by their names


def families(texts: Iterable[str]) -> tuple[str, ...]:
    """The usual font, and others for as many of the characters that it lacks as any font has."""
    wanted = {character for text in texts for character in text if character.isprintable()}
    missing = {each for each in wanted if not has(usual(), each)}
    found = [USUAL]
    for path in system_fonts() if missing else ():
        font = opened(path)
        held = {each for each in missing if font is not None and has(font, each)}
        if held:
            found.append(registered(path))
            missing -= held
        if not missing:
            break
    return tuple(found)


def drawable(text: str, chosen: Iterable[str]) -> str:
    """The text with a box for each character that none of the fonts has; what is not seen anyway is left out."""
    fonts = [usual(), *(opened(registered_paths[name]) for name in chosen if name != USUAL)]
    held = {each for each in set(text) if each == "\n" or any(has(font, each) for font in fonts)}
    return "".join(each if each in held else BOX if each.isprintable() else "" for each in text)


def has(font: Any, character: str) -> bool:
    return bool(font.get_char_index(ord(character)))


@cache
def usual() -> Any:
    from matplotlib.font_manager import findfont, get_font

    return get_font(findfont(USUAL))


@cache
def system_fonts() -> tuple[str, ...]:
    """Files of fonts, upright and plain ones first."""
    from matplotlib.font_manager import findSystemFonts

    return tuple(sorted(findSystemFonts(), key=plainness))


def plainness(path: str) -> tuple[bool, bool, str]:
    name = os.path.basename(path)
    return "Regular" not in name, "Sans" not in name, name


@cache
def opened(path: str) -> Any:
    """A font that can be drawn at any size; none = it can not, as those of coloured pictures."""
    from matplotlib.font_manager import get_font

    try:
        font = get_font(path)
    except (OSError, RuntimeError):
        return None
    return font if font.scalable else None


@cache
def registered(path: str) -> str:
    """The name that matplotlib knows a font by, from now on."""
    from matplotlib.font_manager import fontManager

    known = len(fontManager.ttflist)
    fontManager.addfont(path)
    name = str(fontManager.ttflist[known].name)  # a file may hold several, of which the first was opened
    registered_paths[name] = path
    return name
