"""The errors that discodso raises on purpose; each message says what was wrong and what to change."""

_LONGEST = 4000  # characters of a message


class DiscodsoError(Exception):
    """Base of every error of this package; the command line prints it as one line."""

    def __str__(self) -> str:
        # It may quote a file that somebody else has made.
        words = " ".join(super().__str__().splitlines())
        return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"


class DeclarationError(DiscodsoError, ValueError):
    """A token, library, space, task or setting was declared in a way that cannot work."""


class InvalidDesignError(DiscodsoError, ValueError):
    """A design that was handed in does not belong to the space."""


class DeadEndError(DiscodsoError):
    """A prefix was reached that no token may continue; the message names the constraints involved."""


class DeadEndWarning(UserWarning):
    """Many designs are drawn again: a rule of one's own left a prefix that no token may continue, or few designs
    meet a condition."""


class TrainingError(DiscodsoError):
    """The loss or its gradient became non-finite; the message says where that came from."""


class EvaluationError(DiscodsoError):
    """An evaluation failed in a run that was asked to stop at the first failure."""


class CheckpointError(DiscodsoError):
    """A checkpoint is damaged, foreign, or belongs to another run."""


class ExecutorError(DiscodsoError):
    """The executor that evaluates designs cannot be started, or was lost."""


class SettingsError(DeclarationError):
    """A settings file cannot be used; the message names the key."""
