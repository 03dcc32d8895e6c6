"""Fields of the header of a mapped file, by the tests of the Python package."""

from layout import SIZES, get


def read(mapped_file, field):
    """The number in a field; 0 if the file does not exist yet."""
    try:
        with open(mapped_file, "rb") as file:
            return get(file.read(SIZES["mapped_file_header"]), "mapped_file_header", field)
    except FileNotFoundError:
        return 0
