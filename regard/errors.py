"""Everything regard refuses or fails at, as one tree; each error knows the exit code of the command line.

RegardError 1 ── UsageError 2 ── ConfigError 2
              ├─ DataError 65
              ├─ MissingError 66
              ├─ FolderError 1
              ├─ DivergedError 70
              ├─ Stopped 1
              └─ Interrupted 130 / 138 / 143
"""


class RegardError(Exception):
    """Something that a person can mend; the message says where, what was found and what was expected."""

    exit_code = 1


class UsageError(RegardError):
    """The words of the command do not fit together."""

    exit_code = 2


class ConfigError(UsageError):
    """A setting is unknown, of the wrong type, or contradicts another."""


class DataError(RegardError):
    """The data file is there but can not be used as it is."""

    exit_code = 65


class MissingError(RegardError):
    """The input is not there."""

    exit_code = 66


class FolderError(RegardError):
    """A model folder is incomplete, damaged, or not one of ours."""


class DivergedError(RegardError):
    """Training does not give numbers any more; the last checkpoint with numbers in it is kept."""

    exit_code = 70


class Stopped(RegardError):
    """A search was told that nobody waits for its result."""


class Interrupted(RegardError):
    """A signal ended the run; what was trained is saved."""

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + signal_number
