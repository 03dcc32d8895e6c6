# The two sides of a run, each in a session of its own: starting, waiting, ending. Sourced by supply-run.

# start_side VARIABLE COMMAND...: runs the command in the background, in a session of its own, so that a terminal's
# Ctrl-C reaches supply-run alone. Sets the variable to the session's id, which is the command's process id.
start_side() {
    local -n session_started=$1
    setsid "${@:2}" < /dev/null &
    session_started=$!
}

# wait_at_most SECONDS PID VARIABLE: sets the variable to its exit status; fails where it has not ended by then.
wait_at_most() {
    local -n status_waited=$3
    local sleeper ended
    sleep "$1" &
    sleeper=$!
    status_waited=0
    wait -n -p ended "$2" "$sleeper" || status_waited=$?
    [[ $ended != "$sleeper" ]] || return 1
    kill "$sleeper"
    wait "$sleeper" || true
}

# end_side PID: TERM to its process group, a bounded wait, KILL to whatever its session still holds: mpirun's ranks have
# process groups of their own. TERM lets mpirun end its ranks, and Spark remove its folders.
end_side() {
    local ignored
    if kill -TERM -- "-$1" 2> /dev/null; then
        wait_at_most 5 "$1" ignored || true
    fi
    pkill -KILL --session "$1" || true
}
