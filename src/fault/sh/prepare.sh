# Undo first, then the dead-man's switch, then the staged fault: nothing acts yet when this ends.
set -u
umask 077
refuse() {
    echo "refused=$1"
    exit 3
}
fail() {
    echo "failed=$1"
    if printf '%s\n' "$undo" | sh >/dev/null 2>&1; then echo undone=yes; else echo undone=no; fi
    exit 4
}
[ "$(id -u)" = 0 ] || refuse 'the script does not run as root'
[ "$(cat /proc/sys/kernel/random/boot_id)" = "$boot" ] || refuse 'the host was booted again since it was surveyed'
client=$(rr_client)
if [ -n "$client" ]; then
    case " $clients " in
    *" $client "*) ;;
    *) refuse "the controller now comes from $client, which the plan does not protect" ;;
    esac
fi
undo=$(cat <<'RACKRIFT-END-OF-UNDO'
@UNDO@
RACKRIFT-END-OF-UNDO
)
mkdir -p "$root/made" "$dir" || refuse "cannot make the folder $dir"
printf '%s\n' "$undo" >"$dir/undo.new" && mv "$dir/undo.new" "$dir/undo.sh" ||
    refuse "cannot write the undo script in $dir"
cat >"$dir/watch.sh" <<'RACKRIFT-END-OF-WATCH' || fail "cannot write the dead-man's switch in $dir"
@WATCH@
RACKRIFT-END-OF-WATCH
read -r up _ </proc/uptime
echo $((${up%%.*} + ttl)) >"$dir/until" || fail "cannot write the dead-man's time in $dir"
armed() {
    read -r watcher 2>/dev/null <"$dir/watch.pid" || return 1
    grep -q "$id/watch.sh" "/proc/$watcher/cmdline" 2>/dev/null
}
await_armed() {
    tries=0
    while [ "$tries" -lt 30 ]; do
        armed && return 0
        sleep 0.1 2>/dev/null || sleep 1
        tries=$((tries + 1))
    done
    return 1
}
by=setsid
if ! armed; then
    if [ "$supervisor" = systemd ]; then
        if systemd-run --quiet --collect --unit="rackrift-$id" --property=Restart=on-failure --property=RestartSec=1 \
            /bin/sh "$dir/watch.sh" </dev/null >/dev/null 2>&1 && await_armed; then
            by=systemd
        else
            systemctl stop "rackrift-$id.service" >/dev/null 2>&1
        fi
    fi
    if ! armed; then
        setsid /bin/sh "$dir/watch.sh" </dev/null >/dev/null 2>&1 &
        await_armed || fail "the dead-man's switch did not start"
    fi
fi
echo "armed=$by"
@STAGE@
# If a heal overtook us, it must not be us who leave something behind.
{ [ -f "$dir/undo.sh" ] && armed; } || fail 'the fault was undone while it was being prepared'
echo staged=yes
