# Which faults are in force or prepared, and for how long their dead-man's switches have still to wait. Reads only.
set -u
read -r rr_up _ </proc/uptime
for rr_dir in "$root"/*/; do
    rr_id=${rr_dir%/}
    rr_id=${rr_id##*/}
    case $rr_id in '*' | made) continue ;; esac
    rr_state=prepared
    [ -e "$rr_dir/committed" ] && rr_state='in force'
    rr_left=none
    if read -r rr_watch 2>/dev/null <"$rr_dir/watch.pid" && grep -q "$rr_id/watch.sh" "/proc/$rr_watch/cmdline" 2>/dev/null &&
        read -r rr_until 2>/dev/null <"$rr_dir/until"; then
        rr_left=$((rr_until - ${rr_up%%.*}))
    fi
    echo "fault=$rr_id $rr_left $rr_state"
done
for rr_tool in $(rr_tools); do
    "$rr_tool-save" 2>/dev/null | sed -n "s/^:\(RACKRIFT-[^ ]*\) .*/chain=\1 $rr_tool/p"
done
echo end=status
