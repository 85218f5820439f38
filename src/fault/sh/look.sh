# What stands of the fault. Reads only.
set -u
echo "boot=$(cat /proc/sys/kernel/random/boot_id)"
read -r up _ </proc/uptime
if [ -d "$dir" ]; then
    echo prepared=yes
    [ -e "$dir/committed" ] && echo committed=yes
    if read -r watcher 2>/dev/null <"$dir/watch.pid" && grep -q "$id/watch.sh" "/proc/$watcher/cmdline" 2>/dev/null; then
        echo armed=yes
    fi
    read -r until 2>/dev/null <"$dir/until" && echo "left=$((until - ${up%%.*}))"
fi
@LOOK@
echo end=look
