"""The one exception that means: the input is wrong, and the message says what to change."""


class InputError(ValueError):
    """Bad input. At the command line: one line on stderr and exit code 2, never a traceback."""
