"""Tables for the terminal and for the report."""


class Table:
    def __init__(self, title, columns, picture=None):
        """`picture`: what engine/picture.py draws of it."""
        self.title = title
        self.columns = columns
        self.rows = []
        self.picture = picture

    def add(self, *cells):
        self.rows.append([str(cell) for cell in cells])

    def text(self):
        widths = [max(map(len, column)) for column in zip(self.columns, *self.rows)]
        lines = [self.title, "  ".join(cell.ljust(width) for cell, width in zip(self.columns, widths)).rstrip()]
        lines += ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in self.rows]
        return "\n".join(lines)

    def markdown(self):
        lines = [" | ".join(self.columns), " | ".join("---" for _ in self.columns)]
        lines += [" | ".join(row) for row in self.rows]
        return "\n".join(f"| {line} |" for line in lines)
