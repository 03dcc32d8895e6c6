"""What each figure should reach, and whether it does."""

from engine import quiet

TARGETS = {
    "cycle_ratio_784": 0.8,
    "cycle_ratio_192k": 0.9,
    "cycle_ratio_1m": 0.9,
    "lmdb_ratio_256": 0.95,
    "lmdb_ratio_28": 0.95,
    "small_elements_per_s": 8_000_000,
    "resident_ratio": 0.95,
    "resident_file_ratio": 0.95,
    "df_vs_parquet": 5,
    "df_vs_arrow_socket": 5,
    "df_vs_local_iterator": 5,
    "frames_doubles_vs_noop": 1.2,
    "frames_doubles_vs_arrow": 5,
    "frames_lists_vs_noop": 1.2,
    "frames_lists_vs_arrow": 5,
    "call_vs_partition_files_first_batch": 5,
    "call_vs_partition_files_first_batch_400k": 5,
    "call_vs_partition_files": 2,
    "call_vs_partition_files_400k": 2,
    "results_vs_map_in_pandas": 3,
    "results_vs_map_in_pandas_processor": 3,
    "offload_svd_200k": 3.5,
    "offload_svd_200k_vs_compute_svd": 6,
    "offload_svd_20k": 1,
    "offload_svd_2000_columns": 2.5,
    "offload_pca_2000_columns": 5,
    "offload_kmeans": 8,
    "offload_ridge": 3,
    "offload_gram_vector": 9,
    "offload_transfer_vs_cycle": 0.6,
    "groupby_job_ratio": 4,
    "groupby_rdd_job_ratio": 6,
    "sortby_job_ratio": 2.5,
    "sortby_rdd_job_ratio": 3.5,
}
# Figures that must not be larger.
LIMITS = {
    "lmdb_task_ns_28": 170,
    "df_first_batch_s": 2,
    "df_write_first_block_s": 0.05,
    "call_second_first_batch_s": 0.3,
    "call_disk_bytes": 0,
    "call_disk_bytes_400k": 0,
}
# Where the notebook says what was tried for a figure that misses its target, and what bounds it.
NOTEBOOK = {
    "cycle_ratio_784": "the-cycle-beside-a-plain-c-ring",
    "cycle_ratio_192k": "the-cycle-beside-a-plain-c-ring",
    "cycle_ratio_1m": "the-cycle-beside-a-plain-c-ring",
    "small_elements_per_s": "small-elements",
    "lmdb_ratio_28": "from-an-lmdb-in-place",
    "lmdb_ratio_256": "from-an-lmdb-in-place",
    "lmdb_task_ns_28": "from-an-lmdb-in-place",
    "resident_file_ratio": "resident-epochs",
    "resident_ratio": "resident-epochs",
    "offload_transfer_vs_cycle": "offload",
    "groupby_job_ratio": "exchange",
    "groupby_rdd_job_ratio": "exchange",
    "sortby_job_ratio": "exchange",
    "sortby_rdd_job_ratio": "exchange",
    "df_vs_parquet": "dataframes-to-pytorch",
    "frames_lists_vs_arrow": "rows-or-whole-columns",
    "frames_lists_vs_noop": "rows-or-whole-columns",
}


def target_text(key):
    """The target of a figure; "–" if it has none."""
    if key in LIMITS:
        return f"at most {LIMITS[key]:g}"
    return f"{TARGETS[key]:g}" if key in TARGETS else "–"


def verdict(key, figure):
    """
    met or missed; "–" without a target. figure: of the summary.

    "not quiet": others disturbed too many rounds. "within noise": the target lies in the interval, so another run may
    give the other verdict.
    """
    if (figure["marked"] or 0) > quiet.MARKED_LIMIT * (figure["rounds"] or 0):
        return "not quiet"
    if key not in LIMITS and key not in TARGETS:
        return "–"
    target = LIMITS.get(key, TARGETS.get(key))
    if figure["interval"] and figure["interval"][0] < target < figure["interval"][1]:
        return "within noise"
    return "met" if (figure["value"] <= target if key in LIMITS else figure["value"] >= target) else "missed"
