"""Commands of a shell by which another process writes to the file {}, and their statuses if ranks read it in place."""

WRITE = "printf x | dd of={} bs=1 seek=20000 conv=notrunc status=none"

# `truncate` does not wait until the file's readers have ended, and is refused.
WRITERS = {"opened for writing": (": >> {}", 0), "written to": (WRITE, 0), "cut": ("truncate --size 8192 {}", 1)}
