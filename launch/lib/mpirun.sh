# The mpirun of the ranks. Sourced by supply-run and run-ranks.

# find_mpirun: sets mpirun to the command, from MPIRUN; else REPLY says what is wrong.
find_mpirun() {
    read -r -a mpirun <<< "${MPIRUN:-mpirun}"
    REPLY="there is no '${mpirun[0]}': install Open MPI (make packages), or set MPIRUN"
    type -P "${mpirun[0]}" > /dev/null
}

# place_ranks RANKS [HOSTS]: appends to mpirun how many ranks there are and where, and what they take from the environment.
place_ranks() {
    # Slot by slot is how the Supplier numbers them, too (plan/Hosts).
    mpirun+=(-n "$1" --oversubscribe --map-by slot --bind-to none ${2:+--hostfile "$2"}
        -x SUPPLY_MAPPED_FILES -x SUPPLY_NAMED_PIPES -x SUPPLY_TIMEOUT)
    ((EUID)) || mpirun+=(--allow-run-as-root)
}

# on_each_node HOSTS COMMAND...: runs the command once on each node of the host file, for at most half a minute.
on_each_node() {
    find_mpirun
    mpirun+=(--hostfile "$1" --map-by ppr:1:node)
    ((EUID)) || mpirun+=(--allow-run-as-root)
    timeout 30 "${mpirun[@]}" "${@:2}"
}
