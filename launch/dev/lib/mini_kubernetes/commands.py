"""Commands, and the error that they raise."""

import subprocess


class ClusterError(Exception):
    """Its text is all that a user needs."""


def run(command, seconds, advice="", **options):
    """Returns stdout. Raises ClusterError with the end of stderr, or when the time has passed."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=seconds, stdin=subprocess.DEVNULL, check=False, **options
        )
    except subprocess.TimeoutExpired:
        raise ClusterError(f"'{' '.join(words[:3])} …' did not end within {seconds} s") from None
    except OSError as error:
        raise ClusterError(f"'{words[0]}' cannot be run: {error.strerror}") from error
    if done.returncode:
        said = "\n".join(done.stderr.strip().splitlines()[-5:])
        raise ClusterError(f"'{' '.join(words[:3])} …' failed{f' ({advice})' if advice else ''}: {said}")
    return done.stdout
