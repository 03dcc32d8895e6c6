"""The commands of launch/: they start the Supplier and the ranks, supervise them, and end them.

Standard library only, and Python 3.9: the commands run with the Python of a cluster's nodes.
"""
