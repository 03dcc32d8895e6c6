# shellcheck shell=bash disable=SC2154
# Starts, counts and ends the daemons of HDFS and YARN. Sourced by launch/dev/mini-cluster, after lib/nodes.sh.
#
# Inputs: folder, of the cluster; jars, the folder of Hadoop's jars; java_home.

declare -A daemon_class=(
    [namenode]=org.apache.hadoop.hdfs.server.namenode.NameNode
    [datanode]=org.apache.hadoop.hdfs.server.datanode.DataNode
    [resourcemanager]=org.apache.hadoop.yarn.server.resourcemanager.ResourceManager
    [nodemanager]=org.apache.hadoop.yarn.server.nodemanager.NodeManager
)

# daemons_of NODE: its daemons, in the order of a start.
daemons_of() {
    case "$1" in
        localhost) echo namenode resourcemanager datanode nodemanager ;;
        head) echo namenode resourcemanager ;;
        *) echo datanode nodemanager ;;
    esac
}

# hadoop_java NODE LEVEL CLASS [ARGUMENT]...: a program of Hadoop on a node, in a session of its own, with that log level.
hadoop_java() {
    on_node "$1" env NODE="$1" HADOOP_CONF_DIR="$folder/conf" JAVA_HOME="$java_home" setsid --wait "$java_home/bin/java" \
        -Xmx192m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData --add-opens=java.base/java.lang=ALL-UNNAMED \
        "-Djava.io.tmpdir=$folder/nodes/$1" "-Dyarn.log.dir=$folder/logs" "-Dhadoop.log.level=$2" \
        -cp "$folder/conf:$jars/*" "${@:3}"
}

# start_daemon NODE DAEMON: in the background, without the lock of a start (descriptor 9). Its log is logs/NODE-DAEMON.log.
start_daemon() {
    hadoop_java "$1" INFO "${daemon_class[$2]}" </dev/null >"$folder/logs/$1-$2.log" 2>&1 9>&- &
    local started=$!
    # On a busy machine it could be taken for a dead one before its program runs.
    until daemon_pid "$@" >/dev/null || ! kill -0 "$started" 2>/dev/null; do sleep 0.05; done
}

# daemon_pid NODE DAEMON: its process number on its node; nothing if it does not run.
daemon_pid() {
    local find=(pgrep --full -- "-Dyarn.log.dir=$folder/logs .* ${daemon_class[$2]}\$")
    # The head's processes are this machine's, even if its holder does not live.
    if [[ $1 == node-* ]]; then node_lives "$1" && on_node "$1" "${find[@]}"; else "${find[@]}"; fi
}

# end_daemon NODE DAEMON: TERM, a bounded wait, KILL. For this machine and the head; processes on another node end with its holder.
end_daemon() {
    local pid tries=100
    pid=$(daemon_pid "$@") || return 0
    kill -TERM "$pid" || true
    while daemon_pid "$@" >/dev/null; do
        ((tries--)) || {
            kill -KILL "$pid" || true
            return 0
        }
        sleep 0.1
    done
}

# count_of URL FIELD: the number after "FIELD" in the answer of a daemon's web server; 0 if it does not answer.
count_of() {
    local answer
    answer=$(curl --silent --max-time 5 "$1") || answer=
    answer=$(sed -n "s/.*\"$2\" *: *\([0-9]*\).*/\1/p" <<<"$answer" | head -n 1)
    echo "${answer:-0}"
}

# The data nodes and node managers that the NameNode and the ResourceManager know.
live_data_nodes() {
    count_of "http://$master:${port}1/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState" NumLiveDataNodes
}
active_node_managers() { count_of "http://$master:${port}6/ws/v1/cluster/metrics" activeNodes; }

# The applications of YARN that have logs, by name. (The ResourceManager's web service lists one alone.)
all_applications() {
    hadoop_java "${nodes[0]}" WARN org.apache.hadoop.fs.FsShell -ls -d -C '/logs/*/*/*/application_*' | sed 's|.*/||'
}
