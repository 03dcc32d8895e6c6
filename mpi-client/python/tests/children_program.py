"""A program whose function has pools of processes. Ranks get it by value."""

import contextlib
import enum
import multiprocessing

base = 0
lock = None
seen: list[int] = []


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class OddError(Exception):
    pass


class Point:
    def __init__(self, x):
        self.x = x

    def moved(self):
        return Point(self.x + base)


def init(value):
    global base
    base = value


def plus(value):
    with lock or contextlib.nullcontext():
        seen.append(value)
    return value + base, len(seen)


def twice(value):
    return plus(value)[0] + plus(value)[0]


def objects(value):
    if value:
        raise OddError(value)
    return Color.BLUE, Point(1).moved()


def train(method):
    with multiprocessing.get_context(method).Pool(1, initializer=init, initargs=(10,)) as pool:
        numbers = pool.map(plus, range(3), chunksize=1), pool.map(twice, [1]), pool.apply(lambda: base + 1)
        color, point = pool.apply(objects, [0])
        try:
            pool.apply(objects, [5])
        except OddError as odd:
            raised = odd.args
    return numbers, color is Color.BLUE, type(point) is Point and point.x, raised, base
