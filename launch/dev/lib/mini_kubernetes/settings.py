"""The configuration of the control plane and of a node's daemons."""

import json

# On a node, as containerd and the kubelet have them on any machine: each is a file system of the node's own.
CONTAINERD_SOCKET = "/run/containerd/containerd.sock"


def kubeconfig(server, authority, token):
    return json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "mini",
        "clusters": [{"name": "mini", "cluster": {"server": server, "certificate-authority": str(authority)}}],
        "users": [{"name": "user", "user": {"token": token}}],
        "contexts": [{"name": "mini", "context": {"cluster": "mini", "user": "user"}}],
    })  # fmt: skip


def kubelet(address, cgroup, client_authority, resolver):
    return json.dumps({
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
        "address": address, "cgroupDriver": "cgroupfs", "cgroupRoot": cgroup, "failCgroupV1": False,
        "enforceNodeAllocatable": ["pods"], "failSwapOn": False, "protectKernelDefaults": True,
        "makeIPTablesUtilChains": False, "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": False},
                           "x509": {"clientCAFile": str(client_authority)}},
        "authorization": {"mode": "AlwaysAllow"},
        "resolvConf": str(resolver), "nodeStatusUpdateFrequency": "5s", "syncFrequency": "5s", "maxPods": 50,
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "nodefs.inodesFree": "1%",
                         "imagefs.available": "1%"},
    })  # fmt: skip


def pod_network(subnet):
    return json.dumps({
        "cniVersion": "0.4.0", "name": "mini", "plugins": [{
            "type": "bridge", "bridge": "pods", "isGateway": True, "ipMasq": False, "hairpinMode": True,
            "ipam": {"type": "host-local", "dataDir": "/run/pod-addresses", "ranges": [[{"subnet": subnet}]],
                     "routes": [{"dst": "0.0.0.0/0"}]},
        }],
    })  # fmt: skip


def containerd(pause, system, network_folder):
    """system: the folder with Debian's packages."""
    left_out = ", ".join(
        f'"io.containerd.{name}"'
        for name in ("snapshotter.v1.aufs", "snapshotter.v1.btrfs", "snapshotter.v1.devmapper", "snapshotter.v1.zfs",
                     "internal.v1.opt", "tracing.processor.v1.otlp")
    )  # fmt: skip
    return f"""\
version = 2
disabled_plugins = [{left_out}]
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  disable_hugetlb_controller = true
  tolerate_missing_hugetlb_controller = true
  disable_apparmor = true
  restrict_oom_score_adj = true
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{system}/usr/lib/cni"
    conf_dir = "{network_folder}"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      BinaryName = "{system}/usr/sbin/runc"
      SystemdCgroup = false
"""


def control_plane(address, folder, services):
    """The daemons with their options, in the order of a start. folder: of certificates, tokens and data."""
    own = ["--cert-file", "--key-file", "--trusted-ca-file"]
    certificate, key, authority = (f"{folder}/{name}" for name in ("control.crt", "control.key", "ca.crt"))
    etcd = f"https://{address}:2379"
    return {
        "etcd": ["--name=mini", f"--data-dir={folder}/etcd/data", "--log-level=warn", "--unsafe-no-fsync",
                 f"--listen-client-urls={etcd}", f"--advertise-client-urls={etcd}", "--client-cert-auth",
                 *(f"{option}={file}" for option, file in zip(own, (certificate, key, authority))),
                 "--listen-peer-urls=http://127.0.0.1:2380", "--initial-advertise-peer-urls=http://127.0.0.1:2380",
                 "--initial-cluster=mini=http://127.0.0.1:2380"],
        "kube-apiserver": [
            f"--etcd-servers={etcd}", f"--etcd-cafile={authority}", f"--etcd-certfile={certificate}",
            f"--etcd-keyfile={key}", f"--bind-address={address}", f"--advertise-address={address}",
            "--secure-port=6443", f"--tls-cert-file={certificate}", f"--tls-private-key-file={key}",
            f"--kubelet-client-certificate={certificate}", f"--kubelet-client-key={key}",
            "--kubelet-preferred-address-types=InternalIP", f"--client-ca-file={authority}",
            f"--token-auth-file={folder}/tokens.csv", "--authorization-mode=Node,RBAC", "--allow-privileged",
            f"--service-cluster-ip-range={services}", "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}",
            "--enable-priority-and-fairness=false", f"--cert-dir={folder}/own"],
        "kube-controller-manager": [
            f"--kubeconfig={folder}/admin.json", "--leader-elect=false", f"--root-ca-file={authority}",
            f"--service-account-private-key-file={key}", "--bind-address=127.0.0.1", f"--cert-dir={folder}/own",
            "--node-monitor-grace-period=20s"],
        "kube-scheduler": [f"--kubeconfig={folder}/admin.json", "--leader-elect=false", "--bind-address=127.0.0.1",
                           f"--cert-dir={folder}/own"],
    }  # fmt: skip
