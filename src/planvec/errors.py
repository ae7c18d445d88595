"""The exceptions whose message is all that a person needs."""


class InputError(ValueError):
    """Bad input; the message says what to change. At the command line: one line on stderr and exit code 2."""


class Failure(RuntimeError):
    """What was asked for cannot be done, through no fault of the input. At the command line: one line, exit code 1."""
