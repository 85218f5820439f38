# rr_offset: the wall clock less the time since boot, s. Jumps of the wall clock show in it, the passing of time does not.
rr_offset() {
    read -r rr_up _ </proc/uptime
    awk -v n="$(date +%s.%N)" -v u="$rr_up" 'BEGIN { printf "%.3f", n - u }'
}
# rr_set OFFSET: sets the wall clock so that its offset is this.
rr_set() {
    read -r rr_up _ </proc/uptime
    date -s "@$(awk -v o="$1" -v u="$rr_up" 'BEGIN { printf "%.3f", o + u }')" >/dev/null
}
# rr_off_by A B: |A - B| in whole milliseconds.
rr_off_by() {
    awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; if (d < 0) d = -d; printf "%d", d * 1000 }'
}
# rr_tick: microseconds by which the clock goes on a hundred times a second.
rr_tick() {
    adjtimex --print 2>/dev/null | sed -n 's/^ *tick: *\([0-9]*\).*/\1/p'
}
