# shellcheck shell=bash disable=SC2154
# Nodes of a cluster on one machine: each a set of namespaces (network, mounts, host name, processes) with its own
# /dev/shm and /var/tmp, all on one bridge. The head shares this machine's network and processes, and knows the nodes'
# names. Sourced by launch/dev/mini-cluster.
#
# A node lives as long as its holder, process 1 of its process namespace: all its processes end with the holder. A
# cluster without nodes of its own is this machine: then every command runs here.
#
# Inputs: folder, of the cluster; bridge, the name of its bridge; network, the first three numbers of its addresses.

# The pid of a node's holder as this machine sees it.
holder_of() { cat "$folder/nodes/$1/holder" 2>/dev/null; }

# node_lives NODE: whether it has a holder, and no other process has the holder's number now.
node_lives() {
    local holder
    holder=$(holder_of "$1") && grep --quiet --fixed-strings "hold_node" "/proc/$holder/cmdline" 2>/dev/null
}

# on_node NODE COMMAND...: runs the command on the node, in the present folder.
on_node() { (enter_node "$@"); }

# enter_node NODE COMMAND...: the same, but the command replaces this shell, so that signals reach it.
enter_node() {
    local node=$1
    shift
    case "$node" in
        localhost) exec "$@" ;;
        head) exec nsenter --target "$(holder_of head)" --mount --uts env --chdir="$PWD" "$@" ;;
        *) exec nsenter --target "$(holder_of "$node")" --mount --uts --net --pid env --chdir="$PWD" "$@" ;;
    esac
}

# nodes_allowed: whether nodes can be made on this machine; otherwise prints why not.
nodes_allowed() {
    ((EUID == 0)) || {
        echo "namespaces need root"
        return 1
    }
    local tool why
    for tool in ip mount unshare nsenter; do
        type -P "$tool" >/dev/null || {
            echo "there is no '$tool' (Debian: iproute2, mount, util-linux)"
            return 1
        }
    done
    why=$(unshare --net --mount --uts --pid --fork --mount-proc mount -t tmpfs tmpfs /dev/shm 2>&1) ||
        {
            echo "this machine does not allow namespaces with mounts of their own: $why"
            return 1
        }
    # A command on a node begins at the root of the node's mounts.
    [[ $(nsenter --target $$ --mount stat --format %d:%i /) == "$(stat --format %d:%i /)" ]] ||
        {
            echo "this shell's root folder is not that of its mounts (chroot)"
            return 1
        }
    unshare --net ip link add bridge type bridge 2>/dev/null ||
        {
            echo "this machine's kernel has no network bridges"
            return 1
        }
}

# make_node NODE NUMBER: number 0 is the head.
make_node() {
    local node=$1 number=$2 place=$folder/nodes/$1 of_its_own=(--net --pid --mount-proc)
    ((number)) || of_its_own=()
    mkdir -p "$place/var-tmp"
    chmod 1777 "$place/var-tmp"
    # hold_node is the name that node_lives expects.
    # shellcheck disable=SC2016
    setsid unshare --mount --uts "${of_its_own[@]}" --fork --kill-child \
        bash -c '
            set -e
            hostname "$2"
            mount -t tmpfs -o size=50%,mode=1777 tmpfs /dev/shm
            mount --bind "$3/nodes/hosts" /etc/hosts
            mount --bind "$3/nodes/$2/var-tmp" /var/tmp
            ((!$4)) || ip link set lo up
            touch "$3/nodes/$2/ready"
            # Process 1 inherits the processes that lose their parents, and bash reaps them.
            while :; do sleep 3600; done' \
        hold_node hold_node "$node" "$folder" "$number" </dev/null >"$place/holder.log" 2>&1 9>&- &
    local unshare=$! tries=100 holder=
    # Otherwise the shell would print its command when it is killed.
    disown "$unshare"
    echo "$unshare" >"$place/unshare"
    until [[ -e $place/ready ]]; do
        if ! { ((tries--)) && kill -0 "$unshare" 2>/dev/null; }; then
            cat "$place/holder.log" >&2
            return 1
        fi
        sleep 0.05
    done
    holder=$(pgrep --parent "$unshare")
    echo "$holder" >"$place/holder"
    ((number)) || return 0
    ip link add "$bridge-$number" type veth peer name node netns "$holder"
    ip link set "$bridge-$number" master "$bridge" up
    nsenter --target "$holder" --net ip addr add "$network.$((10 + number))/24" dev node
    nsenter --target "$holder" --net ip link set node up
}

# make_nodes COUNT: node-1 to node-COUNT, and the head.
make_nodes() {
    local number
    ip link add "$bridge" type bridge
    ip addr add "$network.1/24" dev "$bridge"
    ip link set "$bridge" up
    {
        echo "127.0.0.1 localhost"
        echo "$network.1 head"
        for ((number = 1; number <= $1; number++)); do echo "$network.$((10 + number)) node-$number"; done
    } >"$folder/nodes/hosts"
    make_node head 0
    for ((number = 1; number <= $1; number++)); do make_node "node-$number" "$number"; done
}

# remove_nodes: ends all processes on the nodes. Their mounts go with their holders.
remove_nodes() {
    local place node tries link
    for place in "$folder"/nodes/*/; do
        node=$(basename "$place")
        # Its session: the head's processes are in no namespace that ends with its holder.
        node_lives "$node" && pkill -KILL --session "$(<"$place/unshare")" || true
        tries=100
        while node_lives "$node" && ((tries--)); do sleep 0.05; done
        rm -f "$place/holder" "$place/unshare" "$place/ready"
    done
    [[ -n ${bridge-} ]] || return 0
    # A network would live for minutes if a connection still waits to be closed.
    for link in $(ip -brief link | grep --only-matching "^${bridge}[-0-9]*"); do
        ip link delete "$link" 2>/dev/null || true
    done
}
