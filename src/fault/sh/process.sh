# rr_stat PID: what the kernel tells of a process, from its state on; a program's name may hold anything.
rr_stat() {
    sed 's/^.*) //' "/proc/$1/stat" 2>/dev/null | tail -n 1
}
# rr_began PID: when it was started, in ticks since boot. With the pid this names one process for ever.
rr_began() {
    set -- $(rr_stat "$1")
    echo "${20:-}"
}
# rr_find NAME: pid and start of each process of that program.
rr_find() {
    # The kernel keeps fifteen letters of a name.
    rr_short=$(printf %.15s "$1")
    for rr_p in /proc/[0-9]*; do
        read -r rr_comm 2>/dev/null <"$rr_p/comm" || continue
        [ "$rr_comm" = "$rr_short" ] || continue
        rr_pid=${rr_p#/proc/}
        rr_exe=$(readlink "$rr_p/exe" 2>/dev/null) || continue
        rr_exe=${rr_exe%' (deleted)'}
        rr_arg=$(tr '\0' '\n' 2>/dev/null <"$rr_p/cmdline" | head -n 1)
        [ ${#1} -le 15 ] || [ "${rr_exe##*/}" = "$1" ] || [ "${rr_arg##*/}" = "$1" ] || continue
        rr_when=$(rr_began "$rr_pid")
        [ -n "$rr_when" ] && echo "$rr_pid $rr_when"
    done
}
# rr_same PID START: whether that process still lives; one that only waits for its parent does not.
rr_same() {
    [ "$(rr_began "$1")" = "$2" ] || return 1
    case $(rr_stat "$1") in Z* | X*) return 1 ;; esac
    return 0
}
