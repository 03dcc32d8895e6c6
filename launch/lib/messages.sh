# What the two sides of a run say on stderr: passing it on, and finding which side failed first, and why.
# Sourced by supply-run, which keeps the last lines of each side in FOLDER/supplier and FOLDER/ranks.

# relay FILE: passes stdin on to stderr as it comes, and leaves its last lines in FILE. It does not end with a Ctrl-C,
# so that the last words of the sides are heard.
relay() {
    trap '' INT TERM HUP
    tee >(exec tail -n 100 > "$1") >&2
    wait $!
}

# failed_side FIRST: the side that failed first; nothing where none did. FIRST is the side that ended first; a side without a
# status did not end by itself.
#
# Where both failed, the order of their ends does not tell: mpirun takes a second to end the other ranks, Spark a
# second to stop. But a failure travels through the pairs, and the Supplier's status 3 says that it came from a rank.
failed_side() {
    local second=ranks
    [[ $1 == supplier ]] || second=supplier
    if ((status[$1] == 0)); then
        [[ ${status[$second]-} == 0 ]] || echo "$second"
    elif ((${status[ranks]-0})) && [[ ${status[supplier]-3} == [03] ]]; then
        echo ranks
    else
        echo supplier
    fi
}

# last_words_of_supplier FOLDER: its last line that is not blank.
last_words_of_supplier() {
    tr '\r' '\n' < "$1/supplier" | sed '/^[[:space:]]*$/d' | tail -n 1
}

# last_words_of_ranks FOLDER STATUS: the last line that a rank wrote before mpirun said, between two lines of dashes, that
# it ends the others, which may have words of their own on that. On a busy machine mpirun's come first: then, unless a rank was
# killed and could say nothing, the first line behind them. Lines that begin with [HOST:PID] are mpirun's, too; so are MPICH's, which also repeats every MPI_Abort. Where there is none,
# what the status says.
last_words_of_ranks() {
    local words
    words=$(awk -v killed=$(($2 > 128)) '
        /^-+$/ && length($0) == 74 { if (last != "" || killed) exit; inside = !inside; behind = 1; next }
        inside { next }
        /[^[:space:]]/ && !/^\[[^ ]+:[0-9]+\] / && !/^\[(mpiexec|proxy)[^ ]*\] / && !/^Abort\(-?[0-9]+\) on node / {
            last = $0
            if (behind) exit
        }
        END { print last }' "$1/ranks")
    if [[ -z $words ]]; then
        words="no message on stderr"
        (($2 <= 128)) || words="a rank was ended by SIG$(kill -l "$2")"
    fi
    echo "$words"
}
