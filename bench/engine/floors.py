"""Figures that must not fall below a floor given on the command line."""

import argparse


def parse(text):
    key, equals, value = text.partition("=")
    try:
        return key, float(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not KEY=VALUE with a number") from None


def missed(floors, summary):
    """One line for each floor that is missed, or has no figure."""
    lines = []
    for key, floor in floors:
        if key not in summary:
            lines.append(f"--floor {key}: no such figure in this run: {', '.join(sorted(summary)) or 'there are none'}")
        elif summary[key] < floor:
            lines.append(f"{key} is {summary[key]:.4g}, below its floor {floor:g}")
    return lines
