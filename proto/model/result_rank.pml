/* The rank: O1 as far as results are concerned, W1 to W5. And the cleaner. */

proctype Rank(byte me; byte nth) {
    byte file = NONE, mine = NONE;
    bool had_sealed;

begin:
    ONE_STEP {
        atomic { pair_lock[me] == FREE -> pair_lock[me] = ME; opened[me] = nth };
#ifdef MUTATION_O1_LISTS_THE_FOLDER_ONCE
        had_sealed = (sealed_name[me] != NONE);
#else
        had_sealed = true;
#endif
        remove_old(unsealed_name[me]);
#ifndef MUTATION_O1_KEEPS_SEALED_FILES
        if
        :: had_sealed -> remove_old(sealed_name[me])
        :: else
        fi;
#endif
        atomic { file = NONE; published[me] = nth }
    };

write:
    ONE_STEP {
        /* W1: creates the file, takes the remover's lock, checks the name, and takes the rank's lock. A cleaner may come first. */
        atomic {
            unsealed_name[me] == NONE -> MAY_DIE;
            file = files;
            files++;
            run_of[file] = nth;
            unsealed_name[me] = file
        };
        atomic { remover_lock[file] == FREE -> MAY_DIE; remover_lock[file] = ME };
        atomic {
            MAY_DIE;
            if
            :: unsealed_name[me] != file -> remover_lock[file] = FREE; goto write
            :: else
            fi
        };
        atomic { MAY_DIE; rank_lock[file] = true; mine = file };
        atomic { MAY_DIE; remover_lock[file] = FREE; file = NONE };
#ifndef MUTATION_O1_KEEPS_SEALED_FILES
        assert(sealed_name[me] == NONE);
#endif
        atomic { MAY_DIE; magic[mine] = true }
    };
    /* A result may outlive its pair, and the next run may begin meanwhile. */
#if RUNS > 1 && RANKS == 1
    atomic {
        MAY_DIE;
        if
        :: pair_lock[me] = FREE
        :: true
        fi
    };
#endif
    ONE_STEP {
        /* W3 */
        do
        :: written[mine] < BLOCKS ->
            atomic {
                MAY_DIE;
                if
                :: aborts < ABORTS -> aborts++; goto abort
                :: written[mine]++
                fi
            }
        :: else -> break
        od;
        /* W4 */
#ifdef MUTATION_W4_DROPS_THE_LOCK_FIRST
        atomic { MAY_DIE; rank_lock[mine] = false };
#endif
#ifdef MUTATION_W4_RENAMES_FIRST
        atomic { MAY_DIE; unsealed_name[me] = NONE; sealed_name[me] = mine };
        atomic { MAY_DIE; sealed[mine] = COMPLETE };
#else
        atomic { MAY_DIE; sealed[mine] = COMPLETE };
        atomic { MAY_DIE; assert(unsealed_name[me] == mine); unsealed_name[me] = NONE; sealed_name[me] = mine };
#endif
        atomic { MAY_DIE; rank_lock[mine] = false; mine = NONE }
    };
#if AGAIN
    if
    :: atomic { is_released && sealed_name[me] == NONE && pair_lock[me] == ME && !is_again -> is_again = true };
        goto write
    :: true
    fi;
#endif
    goto close;

abort:
    /* W5: the text is written before. */
    atomic { MAY_DIE; sealed[mine] = ABORTED };
    atomic { MAY_DIE; rank_lock[mine] = false; mine = NONE };
close:
    atomic {
        if
        :: pair_lock[me] == ME -> pair_lock[me] = FREE
        :: else
        fi;
        running--
    };
    goto end;

in_use:
    /* Opening fails. A user starts the rank again. */
    atomic { drop_remover_lock(); pair_lock[me] = FREE };
    atomic { !rank_lock[file] -> file = NONE };
    goto begin;

died:
    /* The kernel closes the files one after the other. */
    atomic {
        if
        :: mine != NONE -> is_dead[mine] = (unsealed_name[me] == mine && sealed[mine] != ABORTED); rank_lock[mine] = false
        :: else
        fi
    };
    atomic {
        drop_remover_lock();
        if
        :: pair_lock[me] == ME -> pair_lock[me] = FREE
        :: else
        fi;
        running--
    };
end:
}

/* supply-clean, of one pair. */
proctype Cleaner(byte me) {
    byte file = NONE;

    take(unsealed_name[me]);
    if
    :: file == NONE
    :: file != NONE && rank_lock[file] -> atomic { MAY_DIE; remover_lock[file] = FREE }
    :: file != NONE && !rank_lock[file] -> unlink(unsealed_name[me], !rank_lock[file], true)
    fi;
    take(sealed_name[me]);
    if
    :: file == NONE
    :: file != NONE && (rank_lock[file] || is_alive[0]) -> atomic { MAY_DIE; remover_lock[file] = FREE }
    :: file != NONE && !rank_lock[file] && !is_alive[0] ->
        if
        :: readers[file] -> atomic { MAY_DIE; remover_lock[file] = FREE }
        :: atomic {
            !readers[file] -> MAY_DIE;
#ifndef MUTATION_A_CLEANER_ONLY_TESTS_THE_LOCK
            no_readers[file] = true
#endif
            };
            unlink(sealed_name[me], !readers[file] && !is_alive[0], true)
        fi
    fi;
    running--;
    goto end;
died:
    atomic {
        drop_remover_lock();
        if
        :: file != NONE -> no_readers[file] = false
        :: else
        fi;
        running--
    };
end:
}
