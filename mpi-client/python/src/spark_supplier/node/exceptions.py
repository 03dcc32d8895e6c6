"""Errors for the driver: exceptions of a rank as far as they can travel, and messages in the words of Supplier.run."""

from __future__ import annotations

import contextlib
import pickle
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

# How a user of Supplier.run says an option of the Supplier, which the texts of both sides name as --option.
_OPTIONS = {
    "block-elements": "batch_size",
    "epochs": "epochs",
    "exchange-fraction": "Shuffle(fraction=)",
    "in-place": "inPlace",
    "keep": "Cache(keep=)",
    "partitions": "df.repartition",
    "rank-timeout": "start_timeout",
    "ranks": "ranks",
    "resident": "cache='memory'",
    "resident-folder": "cache",
    "resident-quota": "Cache(quota=)",
    "resume-positions": "resume",
    "seed": "seed",
    "share": "share",
    "shuffle": "shuffle",
    "shuffle-buffer": "Shuffle(buffer=)",
    "timeout": "start_timeout",
    "uneven": "uneven",
}
_OPTION = re.compile(r"--([a-z]+(?:-[a-z]+)*)\b")


def in_words_of_run(text: str) -> str:
    """The message of an error of this project."""
    return _OPTION.sub(lambda found: _OPTIONS.get(found[1], found[0]), text)


# An exception may hold anything, also a model.
_MAX_BYTES = 16 << 20
_MAX_CHAIN = 20


@dataclass
class PickledException:
    """form: pickled; None: it cannot be. The next four are for a stand-in of its name.

    cause, context: as of the exception. hides_context: its __suppress_context__.
    """

    form: bytes | None
    name: str
    module: str
    text: str
    arguments: tuple[str, ...]
    cause: PickledException | None
    context: PickledException | None
    hides_context: bool


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """The exception, and those that it was raised from or while handling."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


# As gloo, NCCL, torch.distributed and its store say that a collective has failed.
_COLLECTIVE = re.compile(
    r"gloo|NCCL|ProcessGroup|torch\.distributed|monitoredBarrier|between collectives|Connection reset by peer|"
    r"Broken pipe|Socket Timeout",
    re.IGNORECASE,
)


def is_of_collective(error: BaseException) -> bool:
    """Whether a collective of torch.distributed has failed, as it does if another rank has gone.

    Also if the function has raised an exception of its own from it.
    """
    return any(
        isinstance(raised, RuntimeError) and _COLLECTIVE.search(f"{type(raised).__module__}: {text_of(raised)}")
        for raised in chain(error)
    )


def text_of(value: Any, text: Callable[[Any], str] = str) -> str:
    """str() or repr() of a value, also if its class has a bad one."""
    try:
        return text(value)
    except Exception:
        return f"<{type(value).__name__}>"


def pickled(error: BaseException) -> PickledException:
    found = _pickled(error, _MAX_CHAIN)
    assert found is not None
    return found


def _pickled(error: BaseException | None, depth: int) -> PickledException | None:
    # A chain may be a circle.
    if error is None or depth == 0:
        return None
    return PickledException(
        _form(error),
        type(error).__qualname__.rpartition(".")[2],
        type(error).__module__,
        text_of(error),
        tuple(text_of(argument, repr) for argument in error.args),
        _pickled(error.__cause__, depth - 1),
        None if error.__context__ is error.__cause__ else _pickled(error.__context__, depth - 1),
        error.__suppress_context__,
    )


def _dumps(value: Any) -> bytes:
    # Spark's also keeps the identity of classes that the driver's program has defined. Ranks elsewhere may have none.
    try:
        from pyspark import cloudpickle
    except ImportError:
        return pickle.dumps(value)
    return bytes(cloudpickle.dumps(value))


def _form(error: BaseException) -> bytes | None:
    def plain() -> bytes:
        return _dumps(error)

    def without_constructor() -> bytes:
        """For a constructor with other arguments than BaseException's, and for what cannot be pickled inside."""
        arguments = tuple(_portable(argument) for argument in error.args)
        state = {name: _portable(value) for name, value in vars(error).items()}
        return _dumps(_Remade(type(error), arguments, state))

    with contextlib.suppress(Exception):
        made = plain()
        again = pickle.loads(made)
        # A constructor may take the text for another argument.
        if len(made) <= _MAX_BYTES and type(again) is type(error) and text_of(again) == text_of(error):
            return made
    with contextlib.suppress(Exception):
        made = without_constructor()
        if type(pickle.loads(made)) is type(error):
            return made
    return None


def _portable(value: Any) -> Any:
    """The value, or its repr() if it cannot be pickled."""
    try:
        if len(_dumps(value)) <= _MAX_BYTES:
            return value
    except Exception:
        pass
    return text_of(value, repr)


class _Remade:
    """Pickles as an exception that is made without its class's constructor."""

    def __init__(self, kind: type[BaseException], arguments: tuple[Any, ...], state: dict[str, Any]) -> None:
        self._made = kind, arguments, state

    def __reduce__(self) -> tuple[Any, ...]:
        return _remake, self._made


def _remake(kind: type[BaseException], arguments: tuple[Any, ...], state: dict[str, Any]) -> BaseException:
    error = kind.__new__(kind, *arguments)
    error.args = arguments
    vars(error).update(state)
    return error


def loaded(found: PickledException) -> BaseException:
    """The exception, or a stand-in. Its causes are those of the original."""
    error = _of_form(found.form) or _stand_in(found)
    error.__cause__ = None if found.cause is None else loaded(found.cause)
    error.__context__ = error.__cause__ if found.context is None else loaded(found.context)
    error.__suppress_context__ = found.hides_context
    return error


def _of_form(form: bytes | None) -> BaseException | None:
    # It may need a module that only the rank has.
    with contextlib.suppress(Exception):
        error = None if form is None else pickle.loads(form)
        return error if isinstance(error, BaseException) else None
    return None


def _stand_in(found: PickledException) -> BaseException:
    kind = type(found.name, (Exception,), {"__module__": found.module, "__str__": lambda _: found.text})
    stand_in: BaseException = kind(*found.arguments)
    return stand_in
