# The controller lives: the dead-man's time moves on.
set -u
umask 077
read -r up _ </proc/uptime
if [ ! -f "$dir/until" ]; then
    echo renewed=gone
elif ! { read -r watcher <"$dir/watch.pid" && grep -q "$id/watch.sh" "/proc/$watcher/cmdline"; } 2>/dev/null; then
    echo renewed=unarmed
elif echo $((${up%%.*} + ttl)) >"$dir/until.new" && mv "$dir/until.new" "$dir/until"; then
    echo renewed=yes
else
    echo renewed=no
fi
