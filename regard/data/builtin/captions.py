"""A part and a count in, small pictures of one or two shapes and a sentence about each picture out.

A picture is 32 × 32 pixels, red, green and blue. Kind, colour, size and place are told; background, shade and a pixel
of shift are not. Shapes never touch and are told in reading order, so a picture has one sentence, and two drawings
that differ in any number differ in a pixel: parts that share no drawing share no picture.
"""

import random
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.data.builtin.parts import distinct, generator

SIDE = 32
KINDS = ("circle", "cross", "ring", "square", "triangle")
COLOURS = {
    "red": (230, 40, 40),
    "green": (40, 190, 60),
    "blue": (50, 90, 250),
    "yellow": (250, 225, 40),
    "white": (255, 255, 255),
    "purple": (170, 60, 210),
}
SHADES = (1.0, 0.95, 0.9, 0.85)
SIZES = {"small": (2, 3), "large": (5,)}  # pixels from the middle to the rim; nothing between, so that a size is clear
BACKGROUNDS = tuple(range(5, 45, 2)) + tuple(range(140, 180, 2))  # dark and light greys, darker than any white
PLACES = (
    "at the top left",
    "at the top",
    "at the top right",
    "at the left",
    "in the centre",
    "at the right",
    "at the bottom left",
    "at the bottom",
    "at the bottom right",
)
MIDDLES = (5, 16, 26)  # rows and columns of the nine places


@dataclass(frozen=True)
class Shape:
    """One shape of a drawing; `place` counts the nine places in reading order, `down` and `right` are the shift."""

    kind: str
    colour: str
    size: str
    place: int
    radius: int
    shade: float
    down: int
    right: int

    @property
    def middle(self) -> tuple[int, int]:
        return MIDDLES[self.place // 3] + self.down, MIDDLES[self.place % 3] + self.right

    @property
    def words(self) -> str:
        return f"a {self.size} {self.colour} {self.kind} {PLACES[self.place]}"


@dataclass(frozen=True)
class Drawing:
    """Everything that decides a picture."""

    background: int
    shapes: tuple[Shape, ...]

    @property
    def caption(self) -> str:
        return " and ".join(shape.words for shape in self.shapes)


def drawings(count: int, seed: int, part: str) -> list[Drawing]:
    """`count` different drawings of the part."""
    random_ = generator("captions", str(seed), part)
    return distinct(lambda: draw(random_), repr, "captions", part, count)


def draw(random_: random.Random) -> Drawing:
    """One or two shapes, in two places, in reading order."""
    while True:
        places = sorted(random_.sample(range(len(PLACES)), random_.randint(1, 2)))
        shapes = tuple(shape(place, random_) for place in places)
        if len(shapes) == 1 or not touch(*shapes):
            return Drawing(random_.choice(BACKGROUNDS), shapes)


def shape(place: int, random_: random.Random) -> Shape:
    size = random_.choice(tuple(SIZES))
    return Shape(
        kind=random_.choice(KINDS),
        colour=random_.choice(tuple(COLOURS)),
        size=size,
        place=place,
        radius=random_.choice(SIZES[size]),
        shade=random_.choice(SHADES),
        down=random_.randint(-1, 1),
        right=random_.randint(-1, 1),
    )


def touch(first: Shape, second: Shape) -> bool:
    """No row or column of background between the squares around the two shapes."""
    apart = max(abs(a - b) for a, b in zip(first.middle, second.middle, strict=True))
    return apart <= first.radius + second.radius + 1


def paint(drawing: Drawing) -> NDArray[np.uint8]:
    """The picture: (32, 32, 3), 0 to 255."""
    picture = np.full((SIDE, SIDE, 3), drawing.background, dtype=np.uint8)
    for one in drawing.shapes:
        picture[covered(one)] = colour(one)
    return picture


def colour(one: Shape) -> tuple[int, ...]:
    return tuple(round(channel * one.shade) for channel in COLOURS[one.colour])


def covered(one: Shape) -> NDArray[np.bool_]:
    """The pixels of a shape: (32, 32), True inside."""
    top, left = one.middle
    down, right = np.ogrid[-top : SIDE - top, -left : SIDE - left]
    radius = one.radius
    inside = np.maximum(abs(down), abs(right)) <= radius
    distance = down**2 + right**2
    match one.kind:
        case "circle":
            inside = distance <= (radius + 0.3) ** 2
        case "ring":
            inside = (distance <= (radius + 0.3) ** 2) & (distance > (radius / 2) ** 2)
        case "cross":
            inside = inside & (np.minimum(abs(down), abs(right)) <= radius // 3)
        case "triangle":
            inside = inside & (2 * abs(right) <= down + radius)
    return np.asarray(inside, dtype=np.bool_)
