# The two sides of a run, each in a session of its own: starting, waiting, ending. Sourced by supply-run and slurm-run.

declare -A session=() # side -> id of its session, which is the process id of its leader
declare -A status=()  # side -> its exit status, once it has ended by itself

# prepare_sides FOLDER: opens descriptor 3, on which the sides say that they have ended.
prepare_sides() {
    mkfifo "$1/events"
    exec 3<> "$1/events"
}

# start_side SIDE COMMAND...: runs the command in the background, in a session of its own, so that a terminal's Ctrl-C
# reaches supply-run alone. The session's leader outlives the command, to pass its exit status on.
start_side() {
    setsid bash -c '"${@:2}" 3>&-; echo "$1 $?" >&3' leader "$@" < /dev/null &
    session[$1]=$!
    # Before that there is no session to end.
    gone_within 10 not_leading "$!" || true
}

# not_leading PID: whether the process lives and leads no session yet.
not_leading() {
    local session
    session=$(ps -o sid= -p "$1") && ((session != $1))
}

# wait_for_side [SECONDS]: waits until a side has ended, and sets its status, and REPLY to its name. Fails where none has
# ended after SECONDS. A "signal" is a side, too: its status is what to end with.
wait_for_side() {
    local code
    REPLY=
    read -r ${1:+-t "$1"} -u 3 REPLY code || return 1
    status[$REPLY]=$code
}

# end_sides [SECONDS]: TERM to their process groups, a bounded wait (5 s), KILL to whatever their sessions still hold: mpirun's
# ranks have process groups of their own. TERM lets mpirun end its ranks, and Spark remove its folders.
end_sides() {
    local id
    for id in "${session[@]}"; do
        kill -TERM -- "-$id" 2> /dev/null || true
    done
    for id in "${session[@]}"; do
        gone_within "${1-5}" pgrep --session "$id" || pkill -KILL --session "$id" || true
    done
    session=()
}

# gone_within SECONDS PROBE...: waits until the probe fails; fails itself where it does not.
gone_within() {
    local tries=$(($1 * 10))
    while "${@:2}" > /dev/null 2>&1; do
        ((tries--)) || return 1
        sleep 0.1
    done
}

# remove_folders FOLDER...: what a run has made; behind its sides. NFS keeps a file that is open, and with it its folder, which is no failure.
remove_folders() {
    exec 3>&-
    rm -rf "$@" || true
}
