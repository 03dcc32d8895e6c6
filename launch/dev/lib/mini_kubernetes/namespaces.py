"""The nodes: namespaces, made and removed by lib/nodes.sh as those of launch/dev/mini-cluster."""

import pathlib
import subprocess

from .commands import ClusterError, run

_NODES_SH = pathlib.Path(__file__).resolve().parent.parent / "nodes.sh"
_SECONDS = 60


class Namespaces:
    """folder: of the cluster. bridge: its name. network: the first three numbers of its addresses."""

    def __init__(self, folder, bridge, network):
        self._words = ["bash", "-euc", 'source "$0"; folder=$1 bridge=$2 network=$3; "${@:4}"', str(_NODES_SH),
                       str(folder), bridge, network]  # fmt: skip

    def make(self, count):
        """node-1 to node-COUNT, and the head, which shares this machine's network."""
        # Its stdout stays open in the holders.
        done = subprocess.run([*self._words, "make_nodes", str(count)], stdin=subprocess.DEVNULL, timeout=_SECONDS)
        if done.returncode:
            raise ClusterError("the nodes could not be made: the reason stands above")

    def remove(self):
        run([*self._words, "remove_nodes"], _SECONDS)

    def on(self, node, *command):
        """The words of a command there."""
        return [*self._words, "enter_node", node, *map(str, command)]

    def run(self, node, script, *words):
        return run(self.on(node, "bash", "-euc", script, "bash", *words), _SECONDS)

    def why_not(self):
        """Why there can be none on this machine; None: there can."""
        done = subprocess.run([*self._words, "nodes_allowed"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        return (done.stdout.strip() or done.stderr.strip()) if done.returncode else None
