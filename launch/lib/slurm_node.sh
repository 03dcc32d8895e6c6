# What a run has on each node of its allocation: a worker of Spark. When stdin ends, or Slurm ends the job, it ends that, and removes what
# the run has left on the node. Its stdout is a line where the worker ends by itself. Run by slurm-run, by srun.
set -euo pipefail

root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd)
source "$root/launch/lib/sides.sh"

master=$1
cores=$2
memory=$3
mapped_files=$4
named_pipes=$5
scratch=$6
clean=("$root/build/mpi-client/supply-clean" --mapped-files "$mapped_files" --named-pipes "$named_pipes")
# Removed at the end of the allocation, when the config files may be gone.
pairs=$(dirname "$(awk '!/^#/ { print $1; exit }' "$mapped_files")")

worker=
mkdir -p -m 0700 "$scratch"
[[ -O $scratch ]] || { echo "$scratch on $SLURMD_NODENAME belongs to another user (TMPDIR)" >&2; exit 1; }
clean_up() {
    trap '' HUP INT TERM
    [[ -z $worker ]] || end_worker
    gone_within 10 ranks_left || true
    rm -rf "$scratch"
}
end_worker() {
    # It ends its executors.
    kill -TERM "$worker" 2> /dev/null || true
    gone_within 10 kill -0 "$worker" || kill -KILL "$worker" || true
}
# A pair that a living rank has stays.
ranks_left() {
    "${clean[@]}" >&2 || true
    [[ -d $pairs ]] && ! rmdir "$pairs" 2> /dev/null
}
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

export SPARK_LOCAL_DIRS=$scratch
"$SPARK_HOME/bin/spark-class" org.apache.spark.deploy.worker.Worker --host "$SLURMD_NODENAME" --webui-port 0 --cores "$cores" \
    --memory "$memory" --work-dir "$scratch/work" "$master" < /dev/null >&2 &
worker=$!
# A byte never comes: a second's wait is all that there is to see.
while kill -0 "$worker" 2> /dev/null; do
    read -r -t 1 _ && continue
    (($? > 128)) || exit 0
done
echo "the Spark worker on $SLURMD_NODENAME ended"
read -r _ || exit 1
