# The staged fault begins to act, if the dead-man's switch stands and has time left.
set -u
if [ ! -f "$dir/undo.sh" ]; then
    echo 'refused=nothing is prepared here: the dead-man may have undone it'
    exit 3
fi
read -r watcher 2>/dev/null <"$dir/watch.pid"
if ! grep -q "$id/watch.sh" "/proc/${watcher:-none}/cmdline" 2>/dev/null; then
    echo "refused=the dead-man's switch does not run"
    exit 3
fi
read -r up _ </proc/uptime
read -r until <"$dir/until"
if [ $((until - ${up%%.*})) -lt 3 ]; then
    echo "refused=the dead-man's switch is about to fire"
    exit 3
fi
bad=
@COMMIT@
if [ -n "$bad" ]; then
    echo "failed=it did not take effect:$bad"
    exit 4
fi
: >"$dir/committed"
echo committed=yes
