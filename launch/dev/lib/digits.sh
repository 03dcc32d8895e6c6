# shellcheck shell=bash disable=SC2154
# A job on digits: it trains, classifies the held-out digits, and checks the counts and the accuracy. Sourced by run-digits
# and run-cluster, which set name (of the make target), root, ranks, epochs, accuracy_wanted, work, and digits, the folder
# of the LMDBs, and have the functions 'usage' and 'supply', a launch/supply-run with their own options.

# Images in build/digits/train_lmdb.
training_images=1437

fail() {
    echo "$name: failed: $1" >&2
    exit "${2-1}"
}

# begin [ARGUMENT]...: --help prints the usage. There is no other argument.
begin() {
    case "${1-}" in
        '') ;;
        -h | --help)
            usage
            exit 0
            ;;
        *)
            usage >&2
            exit 2
            ;;
    esac
    [[ -d $root/build/digits ]] || fail "no $root/build/digits: use 'make $name'"
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
}

# phase NAME EPOCHS LMDB [ARGUMENT]...: one run of train-digits; its stdout goes to $work/NAME, too.
phase() {
    supply --lmdb "$digits/$3" --ranks "$ranks" --epochs "$2" --partitions 8 --seed 1 --block-elements 32 \
        -- "$root/build/mpi-client/train-digits" "${@:4}" | tee "$work/$1" ||
        fail "$1 with $ranks ranks on ${nodes:+$nodes nodes on }${digits#"$root/"}/$3 (see the message above)" "${PIPESTATUS[0]}"
}

# value FILE FIELD: the value after FIELD= in the last line of train-digits.
value() {
    sed -n "s/^train-digits: .*\b$2=\([^ ]*\).*/\1/p" "$1" | tail -n 1
}

# train_and_judge: fails if an image was missed or the accuracy on the held-out images is too low; otherwise REPLY is the
# end of the line with the verdict.
train_and_judge() {
    local elements accuracy wanted=$((10#$epochs * training_images))
    phase training "$epochs" train_lmdb --save "$work/model"
    phase evaluation 1 test_lmdb --evaluate "$work/model"
    elements=$(value "$work/training" elements)
    accuracy=$(value "$work/evaluation" accuracy)
    ((elements == wanted)) || fail "the ranks counted ${elements:-no} elements, not $wanted"
    awk -v accuracy="$accuracy" -v wanted="$accuracy_wanted" 'BEGIN { exit !(accuracy >= wanted) }' ||
        fail "accuracy ${accuracy:-unknown} is below $accuracy_wanted after $epochs epochs: raise EPOCHS"
    REPLY="epochs=$epochs elements=$elements accuracy=$accuracy"
}
