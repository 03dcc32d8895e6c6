# The mpirun of the ranks, Open MPI's or MPICH's. Sourced by supply-run and run-ranks.

# find_mpirun: sets mpirun to the command, from MPIRUN, and mpi to open-mpi or mpich; else REPLY says what is wrong.
find_mpirun() {
    read -r -a mpirun <<< "${MPIRUN:-mpirun}"
    REPLY="there is no '${mpirun[0]}': install Open MPI (make packages), or set MPIRUN"
    type -P "${mpirun[0]}" > /dev/null || return 1
    mpi=open-mpi
    # Hydra is the launcher of MPICH.
    [[ $("${mpirun[0]}" --version 2> /dev/null < /dev/null) != HYDRA* ]] || mpi=mpich
}

# place_ranks RANKS [HOSTS]: appends to mpirun how many ranks there are and where, and what they take from the environment.
place_ranks() {
    if [[ $mpi == mpich ]]; then
        # It passes the whole environment on, and takes the slots of a node in another form.
        mpirun+=(-n "$1" -bind-to none ${2:+-hosts "$(hydra_hosts "$2")"})
        return
    fi
    # Slot by slot is how the Supplier numbers them, too (plan/Hosts).
    mpirun+=(-n "$1" --oversubscribe --map-by slot --bind-to none ${2:+--hostfile "$2"}
        -x SUPPLY_MAPPED_FILES -x SUPPLY_NAMED_PIPES -x SUPPLY_TIMEOUT)
    ((EUID)) || mpirun+=(--allow-run-as-root)
}

# on_each_node HOSTS COMMAND...: runs the command once on each node of the host file, for at most half a minute.
on_each_node() {
    find_mpirun
    if [[ $mpi == mpich ]]; then
        local hosts=$(hydra_hosts "$1" | sed 's/:[0-9]*//g')
        mpirun+=(-n "$(awk -F, '{ print NF }' <<< "$hosts")" -ppn 1 -hosts "$hosts")
    else
        mpirun+=(--hostfile "$1" --map-by ppr:1:node)
        ((EUID)) || mpirun+=(--allow-run-as-root)
    fi
    timeout 30 "${mpirun[@]}" "${@:2}"
}

# keep_within FOLDER MEMORY: what an mpirun that is killed leaves on this node lies in these folders, MEMORY being on tmpfs.
keep_within() {
    [[ $mpi == mpich ]] || mpirun+=(--mca orte_tmpdir_base "$1" --mca btl_vader_backing_directory "$2")
}

# hydra_hosts FILE: host:slots,… of a host file in Open MPI's format.
hydra_hosts() {
    sed 's/#.*//' "$1" | awk '
        NF { slots = 1; for (i = 2; i <= NF; i++) if ($i ~ /^slots=/) slots = substr($i, 7); printf "%s%s:%s", comma, $1, slots; comma = "," }'
}
