# shellcheck shell=bash disable=SC2154
# The state of a mini-cluster: its names, its configuration, which daemons run. Sourced by launch/dev/mini-cluster.
#
# A cluster's names come from its folder, so that two clusters on one machine have different names.

# choose_names: sets nodes, workers, master, port, network, bridge.
choose_names() {
    local hash number
    hash=$(printf %s "$folder" | cksum | cut -d ' ' -f 1)
    # Ports below the range that Linux uses for outgoing connections.
    port=$((2000 + hash % 1200))
    network=10.$((128 + hash % 100)).$((hash / 100 % 250))
    bridge=
    master=127.0.0.1
    nodes=(localhost)
    workers=1
    if ((node_count)); then
        bridge=$(printf 'supply%06x' $((hash % 16777216)))
        ! ip -4 address show | grep --quiet --fixed-strings " $network." ||
            die "the network $network.0/24 is in use on this machine: name another --folder (the network comes from its name)"
        master=$network.1
        workers=$node_count
        nodes=(head)
        for ((number = 1; number <= node_count; number++)); do nodes+=("node-$number"); done
    fi
}

save_state() { declare -p nodes workers master port network bridge java_home >"$folder/cluster"; }

# load_state: fails if there is no cluster.
load_state() {
    [[ -r $folder/cluster ]] || return 1
    local declarations
    declarations=$(sed 's/^declare -[a-z-]* //' "$folder/cluster")
    eval "$declarations"
}

write_configuration() {
    local file
    for file in "$root"/configs/dev/hadoop/*-site.xml "$root/configs/dev/hadoop/capacity-scheduler.xml" "$root/configs/dev/hadoop/log4j.properties"; do
        sed -e "s|@MASTER@|$master|g; s|@PORT@|$port|g; s|@FOLDER@|$folder|g" \
            -e "s|@NODE_MEMORY@|$node_memory|g; s|@NODE_CORES@|$node_cores|g" "$file" >"$folder/conf/$(basename "$file")"
    done
}

find_java() {
    local java=${JAVA_HOME:+$JAVA_HOME/bin/java}
    java=$(readlink -f "${java:-$(type -P java)}") && [[ -x $java ]] ||
        die "no Java found: install one (make packages), or set JAVA_HOME"
    dirname "$(dirname "$java")"
}

fetch_jars() {
    [[ $jars/.ready -nt $root/configs/dev/hadoop/pom.xml ]] && return
    echo "mini-cluster: fetching Hadoop's jars" >&2
    rm -rf "$jars"
    # Debian's Maven writes escape sequences, too.
    MAVEN_OPTS=-Djansi.noreset=true mvn --batch-mode --quiet -Dstyle.color=never --file "$root/configs/dev/hadoop/pom.xml" \
        dependency:copy-dependencies -DincludeScope=runtime "-DoutputDirectory=$jars" >&2 || die "Hadoop's jars could not be fetched (see above)"
    touch "$jars/.ready"
}

# Lines of NODE-DAEMON.
running_daemons() {
    local node daemon
    for node in "${nodes[@]}"; do
        for daemon in $(daemons_of "$node"); do
            ! daemon_pid "$node" "$daemon" >/dev/null || echo "$node-$daemon"
        done
    done
}

dead_daemons() {
    local node daemon
    for node in "${nodes[@]}"; do
        for daemon in $(daemons_of "$node"); do
            daemon_pid "$node" "$daemon" >/dev/null || echo "$node-$daemon"
        done
    done
}

# refuse_foreign_files: a start or a stop removes only files of a cluster. The lock is never removed: it marks the logs as a cluster's.
refuse_foreign_files() {
    local name
    [[ ! -e $folder/cluster ]] || return 0
    for name in conf nodes logs; do
        [[ ! -e $folder/$name || $name == logs && -e $folder/lock ]] ||
            die "$folder/$name is not a cluster's, and would be removed: name a --folder that has nothing else in it"
    done
}

# take_down: in the reverse order of a start. Removes everything but the logs and the lock.
take_down() {
    local daemon
    # A node manager ends its containers on TERM.
    for daemon in nodemanager datanode resourcemanager namenode; do
        [[ " $(daemons_of "${nodes[0]}") " != *" $daemon "* ]] || end_daemon "${nodes[0]}" "$daemon"
    done
    remove_nodes
    rm -rf "$folder/conf" "$folder/nodes" "$folder/cluster"
}
