"""One cluster: its state, its start and its end."""

import contextlib
import hashlib
import json
import os
import pathlib
import secrets
import shutil
import subprocess
import time

from . import images, parts, settings
from .commands import ClusterError, run
from .namespaces import Namespaces

_CGROUPS = pathlib.Path("/sys/fs/cgroup")
_START_SECONDS = 180
_COMMAND_SECONDS = 60
_IMPORT_SECONDS = 300

# File systems of the node's own for its daemons, and settings of the kernel as the kubelet wants to find them.
# Arguments: the folder of the node, the folder of its images, and the routes, as "ADDRESSES GATEWAY".
_PREPARE_NODE = """
for folder in /run /var/log /var/lib; do mount -t tmpfs tmpfs "$folder"; done
mkdir -p /run/netns /var/lib/kubelet /var/lib/containerd "$1/kubelet" "$2"
mount --bind "$1/kubelet" /var/lib/kubelet
mount --bind "$2" /var/lib/containerd
for setting in kernel/panic=10 kernel/panic_on_oops=1 vm/overcommit_memory=1; do
    echo "${setting#*=}" >"$1/setting-${setting##*/}"
    mount --bind "$1/setting-${setting##*/}" "/proc/sys/${setting%=*}"
done
echo 1 >/proc/sys/net/ipv4/ip_forward
for route in "${@:3}"; do ip route add ${route/ / via }; done
"""


class Cluster:
    def __init__(self, folder=parts.BUILD / "cluster"):
        self.folder = folder
        # From the folder, so that two checkouts differ. The bridge and the control groups have this name.
        number = int(hashlib.sha256(os.fsencode(folder)).hexdigest()[:8], 16)
        self.name = f"kube{number % 0xFFFFFF:06x}"
        self._network = f"10.{128 + number % 100}.{number // 100 % 250}"
        self._pods = f"10.{28 + number % 100}"
        self._namespaces = Namespaces(folder, self.name, self._network)
        self._started = {}

    @property
    def nodes(self):
        """[]: there is no cluster."""
        try:
            count = json.loads((self.folder / "state.json").read_text(encoding="utf-8"))["nodes"]
        except FileNotFoundError:
            return []
        return [f"node-{i}" for i in range(1, count + 1)]

    @property
    def environment(self):
        """Of kubectl, and of a driver on the head."""
        server = f"https://{self._address(f'node-{len(self.nodes) + 1}')}:6443"
        return {
            "KUBECONFIG": str(self._kubeconfig),
            "SPARK_MASTER": f"k8s://{server}",
            "SPARK_LOCAL_IP": f"{self._network}.1",
        }

    @property
    def _kubeconfig(self):
        return self.folder / "admin.json"

    def _address(self, node):
        return f"{self._network}.{10 + int(node.partition('-')[2])}"

    def _pods_of(self, node):
        return f"{self._pods}.{node.partition('-')[2]}.0/24"

    def why_not(self):
        """Why it cannot start on this machine; None: it can."""
        if os.geteuid() == 0 and not (_CGROUPS / "memory" / "cgroup.procs").exists():
            return "this machine has no control groups of version 1, with which alone this has been tried"
        missing = next((name for name in ("openssl", "pgrep", "pkill") if not shutil.which(name)), None)
        if missing:
            return f"there is no {missing} (Debian: openssl, procps)"
        return self._namespaces.why_not() or parts.missing()

    def start(self, count, say):
        self.stop()
        parts.make(say)
        parts.check_binaries()
        archives = images.make_all(say)
        self._refuse_used_network()
        self.folder.mkdir(parents=True, mode=0o700)
        (self.folder / "state.json").write_text(json.dumps({"nodes": count}), encoding="utf-8")
        for name in ("log", "etcd", "own", "nodes"):
            (self.folder / name).mkdir()
        try:
            say(f"starting {count} nodes")
            # The last one has the control plane.
            self._namespaces.make(count + 1)
            self._start_control_plane(f"node-{count + 1}")
            for node in self.nodes:
                self._start_node(node, archives)
            self._wait("the API server did not answer", lambda: self.kubectl("get", "--raw=/readyz") == "ok")
            self._wait("not all nodes were ready", self._all_ready)
            self._wait("there was no service account", lambda: self.kubectl("get", "serviceaccount", "default"))
        except BaseException:
            self.stop()
            raise

    def stop(self):
        """Nothing is left but logs, parts and images."""
        if not (self.folder / "state.json").exists():
            return
        nodes = self.nodes
        self._namespaces.remove()
        for node in nodes:
            for group in _CGROUPS.glob(f"*/{self._cgroup(node)}"):
                _remove_cgroup(group)
        logs = parts.BUILD / "log"
        shutil.rmtree(logs, ignore_errors=True)
        if (self.folder / "log").exists():
            shutil.move(self.folder / "log", logs)
        shutil.rmtree(self.folder)

    def kubectl(self, *arguments, seconds=_COMMAND_SECONDS):
        return run([*self.kubectl_words, *arguments], seconds)

    @property
    def kubectl_words(self):
        return [str(parts.DAEMONS), "kubectl", f"--kubeconfig={self._kubeconfig}"]

    def on(self, node, *command):
        """The words of a command on a node, or on the head, with the environment."""
        return self._namespaces.on(
            node, "env", *(f"{name}={value}" for name, value in self.environment.items()), *command
        )

    def cut(self, node, off=True):
        """Takes the node's cable out, or puts it back."""
        link = f"{self.name}-{node.partition('-')[2]}"
        run(["ip", "link", "set", link, "down" if off else "up"], _COMMAND_SECONDS)

    def _all_ready(self):
        found = json.loads(self.kubectl("get", "nodes", "--output=json"))["items"]
        ready = [each for each in found for condition in each["status"]["conditions"]
                 if condition["type"] == "Ready" and condition["status"] == "True"]  # fmt: skip
        return len(ready) == len(self.nodes)

    def _refuse_used_network(self):
        used = run(["ip", "-4", "route"], _COMMAND_SECONDS)
        for network in (f"{self._network}.", f"{self._pods}."):
            if any(line.startswith(network) for line in used.splitlines()):
                raise ClusterError(
                    f"this machine uses addresses that begin with {network}: use a checkout of another path"
                )

    def _start_control_plane(self, node):
        address = self._address(node)
        self._make_certificates(address)
        tokens = {
            "admin": ("admin", "system:masters"),
            **{each: (f"system:node:{each}", "system:nodes") for each in self.nodes},
        }
        lines = []
        for name, (user, group) in tokens.items():
            token = secrets.token_hex(16)
            lines.append(f'{token},{user},{name},"{group}"\n')
            config = settings.kubeconfig(f"https://{address}:6443", self.folder / "ca.crt", token)
            (self.folder / f"{name}.json").write_text(config, encoding="utf-8")
        (self.folder / "tokens.csv").write_text("".join(lines), encoding="utf-8")
        routes = [f"{self._pods_of(each)} {self._address(each)}" for each in self.nodes]
        script = 'mount -t tmpfs tmpfs "$1"; shift; for route; do ip route add ${route/ / via }; done'
        self._namespaces.run(node, script, self.folder / "etcd", *routes)
        for route in routes:
            run(["ip", "route", "add", *route.replace(" ", " via ").split()], _COMMAND_SECONDS)
        for daemon, options in settings.control_plane(address, self.folder, f"{self._pods}.255.0/24").items():
            self._start_daemon(node, daemon, [parts.DAEMONS, daemon, *options])
            if daemon == "kube-apiserver":
                # The others would fill their logs until it answers.
                self._wait("the API server did not answer", lambda: self.kubectl("get", "--raw=/livez") == "ok")

    def _make_certificates(self, address):
        """An authority, and one certificate that the control plane serves with, and shows to etcd and kubelets."""
        script = """
umask 077
openssl ecparam -name prime256v1 -genkey -noout -out ca.key
openssl req -x509 -new -key ca.key -subj /CN=mini-kubernetes -days 30 -out ca.crt
openssl ecparam -name prime256v1 -genkey -noout -out control.key
openssl req -new -key control.key -subj /O=system:masters/CN=control -out control.csr
printf 'subjectAltName=IP:%s,IP:127.0.0.1,DNS:localhost\\n' "$1" >names
openssl x509 -req -in control.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 30 -extfile names -out control.crt
rm ca.key
"""
        run(["bash", "-euc", script, "bash", address], _COMMAND_SECONDS, cwd=self.folder)

    def _start_node(self, node, archives):
        place = self.folder / "nodes" / node
        others = [f"{self._pods_of(each)} {self._address(each)}" for each in self.nodes if each != node]
        store = parts.BUILD / "images" / node
        self._namespaces.run(node, _PREPARE_NODE, place, store, f"default {self._network}.1", *others)
        for controller in _CGROUPS.iterdir():
            self._make_cgroup(controller, node)
        (place / "network").mkdir()
        (place / "network" / "pods.conflist").write_text(settings.pod_network(self._pods_of(node)), encoding="utf-8")
        (place / "resolv.conf").write_text("nameserver 127.0.0.1\n", encoding="utf-8")
        config = place / "containerd.toml"
        config.write_text(settings.containerd(images.PAUSE, parts.SYSTEM, place / "network"), encoding="utf-8")
        path = f"PATH={parts.SYSTEM}/usr/bin:{parts.SYSTEM}/usr/sbin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
        self._start_daemon(node, "containerd", ["env", path, "containerd", "--config", config])
        self._wait("containerd did not answer", lambda: self._ctr(node, "version"))
        self._load_images(node, archives)
        kubelet = place / "kubelet.json"
        resolver = place / "resolv.conf"
        kubelet.write_text(
            settings.kubelet(self._address(node), f"/{self._cgroup(node)}", self.folder / "ca.crt", resolver),
            encoding="utf-8",
        )
        self._start_daemon(node, "kubelet", [
            "env", path, parts.DAEMONS, "kubelet", f"--config={kubelet}", f"--kubeconfig={self.folder / node}.json",
            f"--hostname-override={node}", f"--node-ip={self._address(node)}",
        ])  # fmt: skip

    def _load_images(self, node, archives):
        """Those that the node does not have from an earlier start. Removes others."""
        listed = [line.split() for line in self._ctr(node, "images", "ls").splitlines()[1:]]
        present = {words[2] for words in listed}
        stale = [words[0] for words in listed if words[2] not in {archive.digest for archive in archives}]
        if stale:
            self._ctr(node, "images", "rm", "--sync", *stale)
        for archive in archives:
            if archive.digest in present:
                continue
            command = self._ctr_command(node, "images", "import", "-")
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as loading:
                with contextlib.suppress(BrokenPipeError):
                    archive.write(loading.stdin)
                loading.communicate(timeout=_IMPORT_SECONDS)
            if loading.returncode:
                raise ClusterError(f"{node} did not take the image {archive.name}: the reason stands above")

    def _ctr(self, node, *arguments):
        return run(self._ctr_command(node, *arguments), _COMMAND_SECONDS)

    def _ctr_command(self, node, *arguments):
        ctr = [parts.SYSTEM / "usr/bin/ctr", "--address", settings.CONTAINERD_SOCKET, "--namespace", "k8s.io"]
        return self._namespaces.on(node, *ctr, *arguments)

    def _cgroup(self, node):
        return f"{self.name}-{node}"

    def _make_cgroup(self, controller, node):
        if controller.is_symlink() or not (controller / "cgroup.procs").exists():
            return
        group = controller / self._cgroup(node)
        group.mkdir(exist_ok=True)
        if controller.name == "cpuset":
            for name in ("cpuset.cpus", "cpuset.mems"):
                (group / name).write_text((controller / name).read_text(encoding="utf-8"), encoding="utf-8")

    def _start_daemon(self, node, name, command):
        with open(self.folder / "log" / f"{node}-{name}", "w", encoding="utf-8") as log:
            self._started[f"{node}-{name}"] = subprocess.Popen(
                self._namespaces.on(node, *command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _wait(self, problem, is_done):
        """Fails if a daemon ends, or after the timeout."""
        end = time.monotonic() + _START_SECONDS
        said = ""
        while True:
            try:
                if is_done():
                    return
            except ClusterError as error:
                said = f": {error}"
            for name, process in self._started.items():
                if process.poll() is not None:
                    log = (self.folder / "log" / name).read_text(encoding="utf-8", errors="replace").splitlines()
                    raise ClusterError("\n".join([f"{name} ended ({parts.BUILD / 'log'} has all of it):", *log[-10:]]))
            if time.monotonic() > end:
                raise ClusterError(f"{problem} within {_START_SECONDS} s (logs: {parts.BUILD / 'log'}){said}")
            time.sleep(0.3)


def _remove_cgroup(group):
    """Its processes are being killed: a group goes when the last one is gone."""
    end = time.monotonic() + 30
    while group.exists():
        for folder, _, _ in os.walk(group, topdown=False):
            try:
                os.rmdir(folder)
            except OSError:
                continue
        if time.monotonic() > end:
            raise ClusterError(f"{group} cannot be removed: it has processes")
        time.sleep(0.05)
