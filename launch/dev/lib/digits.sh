# shellcheck shell=bash
# Checks the counts and the accuracy of a job on digits. Sourced by run-digits and run-cluster, which keep the stdout of
# train-digits in FOLDER/training and FOLDER/evaluation, and have a function 'fail'.

# Images in build/digits/train_lmdb.
training_images=1437

# value FILE FIELD: the value after FIELD= in the last line of train-digits.
value() {
    sed -n "s/^train-digits: .*\b$2=\([^ ]*\).*/\1/p" "$1" | tail -n 1
}

# judge FOLDER EPOCHS ACCURACY: fails if an image was missed or the accuracy on the held-out images is below ACCURACY;
# otherwise REPLY is the end of the line with the verdict.
judge() {
    local elements accuracy
    elements=$(value "$1/training" elements)
    accuracy=$(value "$1/evaluation" accuracy)
    ((elements == 10#$2 * training_images)) ||
        fail "the ranks counted ${elements:-no} elements, not $((10#$2 * training_images))"
    awk -v accuracy="$accuracy" -v wanted="$3" 'BEGIN { exit !(accuracy >= wanted) }' ||
        fail "accuracy ${accuracy:-unknown} is below $3 after $2 epochs: raise EPOCHS"
    REPLY="epochs=$2 elements=$elements accuracy=$accuracy"
}
