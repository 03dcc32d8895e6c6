# The nodes of an allocation of Slurm, and how many tasks each has. Sourced by slurm-run.

# in_allocation: sets nodes and tasks, both in the order of Slurm's ranks, ranks to the number of all, and ranks_a_node to the most that
# one has; else REPLY says what is wrong.
in_allocation() {
    REPLY="this is no job of Slurm: submit it by sbatch (configs/slurm-job), or call it in an salloc"
    [[ -n ${SLURM_JOB_ID-} && -n ${SLURM_JOB_NODELIST-} && -n ${SLURM_TASKS_PER_NODE-} ]] || return 1
    REPLY="no 'scontrol' and 'srun' on PATH: Slurm's commands are needed in the job, too"
    type -P scontrol srun > /dev/null || return 1
    local names
    REPLY="scontrol can not read SLURM_JOB_NODELIST=$SLURM_JOB_NODELIST"
    names=$(scontrol show hostnames "$SLURM_JOB_NODELIST") || return 1
    mapfile -t nodes <<< "$names"
    mapfile -t tasks < <(tasks_of_nodes "$SLURM_TASKS_PER_NODE")
    REPLY="SLURM_TASKS_PER_NODE=$SLURM_TASKS_PER_NODE is not for the ${#nodes[@]} nodes of SLURM_JOB_NODELIST=$SLURM_JOB_NODELIST"
    ((${#tasks[@]} == ${#nodes[@]})) || return 1
    ranks=$(($(IFS=+; echo "${tasks[*]}")))
    ranks_a_node=$(printf '%s\n' "${tasks[@]}" | sort -n | tail -n 1)
}

# tasks_of_nodes TEXT: a line a node; "2(x3),1" are 2, 2, 2 and 1.
tasks_of_nodes() {
    tr , '\n' <<< "$1" | sed 's/[(x)]/ /g' | awk '{ for (i = 0; i < (NF > 1 ? $2 : 1); i++) print $1 }'
}

# write_hosts FILE: a host file in Open MPI's format.
write_hosts() {
    local i
    for ((i = 0; i < ${#nodes[@]}; i++)); do echo "${nodes[i]} slots=${tasks[i]}"; done > "$1"
}
