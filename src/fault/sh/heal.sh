# Takes away every fault that is left, known or not. Only what carries our name is touched.
set -u
umask 077
for rr_undo in "$root"/*/undo.sh; do
    [ -f "$rr_undo" ] || continue
    rr_dir=${rr_undo%/undo.sh}
    echo "found=fault ${rr_dir##*/}"
    sh "$rr_undo" </dev/null >/dev/null 2>&1
    [ -d "$rr_dir" ] && echo "stubborn=its own undo script did not succeed: ${rr_dir##*/}"
done
# Folders whose undo script was never written, or was lost: nothing can act without it but the chains below.
for rr_dir in "$root"/*/; do
    rr_name=${rr_dir%/}
    rr_name=${rr_name##*/}
    case $rr_name in '*' | made) continue ;; esac
    echo "found=folder $rr_name"
    rm -rf "$rr_dir"
done
# rr_removal: from a save to what takes our chains, and all jumps to them, away again; whole rules, by their text.
rr_removal() {
    awk '
        /^\*/ { table = $0; jumps = flushes = deletes = "" }
        /^:RACKRIFT-/ { c = substr($1, 2); flushes = flushes "-F " c "\n"; deletes = deletes "-X " c "\n" }
        /^-A / && !/^-A RACKRIFT-/ && / -j RACKRIFT-/ { sub(/^-A/, "-D"); jumps = jumps $0 "\n" }
        /^COMMIT/ && (jumps != "" || deletes != "") { printf "%s\n%s%s%sCOMMIT\n", table, jumps, flushes, deletes }'
}
for rr_tool in $(rr_tools); do
    rr_pass=0
    while rr_saved=$("$rr_tool-save" 2>/dev/null); do
        case $rr_saved in *RACKRIFT-*) ;; *) break ;; esac
        [ "$rr_pass" = 0 ] && printf '%s\n' "$rr_saved" | sed -n "s/^:\(RACKRIFT-[^ ]*\) .*/found=chain \1 ($rr_tool)/p"
        rr_pass=$((rr_pass + 1))
        if [ "$rr_pass" -gt 5 ]; then
            printf '%s\n' "$rr_saved" | grep RACKRIFT- | sed "s/^/left=$rr_tool: /"
            break
        fi
        printf '%s\n' "$rr_saved" | rr_removal | "$rr_tool-restore" --noflush 2>/dev/null || sleep 1
    done
done
restore_made
rmdir "$root/made" "$root" 2>/dev/null
[ -d "$root" ] && ls "$root" | sed "s|^|left=$root/|"
echo end=heal
