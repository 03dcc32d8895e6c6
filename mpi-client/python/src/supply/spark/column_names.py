"""Names of columns in Spark's expressions."""


def quoted(name: str) -> str:
    """The column of that name. Without the quotes, Spark takes a dot for the field of a struct."""
    return "`" + name.replace("`", "``") + "`"
