# Takes away every fault that is left, known or not. Only what carries our name is touched.
set -u
umask 077
rr_bad=
rr_stubborn=
for rr_dir in "$root"/*/; do
    rr_dir=${rr_dir%/}
    rr_name=${rr_dir##*/}
    case $rr_name in '*' | made) continue ;; esac
    if [ -f "$rr_dir/undo.sh" ]; then
        echo "found=fault $rr_name"
        sh "$rr_dir/undo.sh" </dev/null >/dev/null 2>&1 || rr_stubborn=1
    else
        echo "found=folder $rr_name"
    fi
done
# rr_removal: from a save to what takes our chains, and all jumps to them, away again; whole rules, by their text.
rr_removal() {
    awk '
        /^\*/ { table = $0; jumps = flushes = deletes = "" }
        /^:RACKRIFT-/ { c = substr($1, 2); flushes = flushes "-F " c "\n"; deletes = deletes "-X " c "\n" }
        /^-A / && !/^-A RACKRIFT-/ && / -j RACKRIFT-/ { sub(/^-A/, "-D"); jumps = jumps $0 "\n" }
        /^COMMIT/ && (jumps != "" || deletes != "") { printf "%s\n%s%s%sCOMMIT\n", table, jumps, flushes, deletes }'
}
rr_any=
for rr_tool in $(rr_tools); do
    rr_any=1
    rr_pass=0
    while :; do
        if ! rr_saved=$("$rr_tool-save" 2>&1); then
            # A kernel without this back end can hold none of its rules.
            case $rr_saved in *'not supported'*) break ;; esac
            if [ "$rr_pass" -ge 3 ]; then
                echo "left=the rules of $rr_tool cannot be read"
                rr_bad=1
                break
            fi
            rr_pass=$((rr_pass + 1))
            sleep 1
            continue
        fi
        case $rr_saved in *RACKRIFT-*) ;; *) break ;; esac
        [ "$rr_pass" = 0 ] && printf '%s\n' "$rr_saved" | sed -n "s/^:\(RACKRIFT-[^ ]*\) .*/found=chain \1 ($rr_tool)/p"
        rr_pass=$((rr_pass + 1))
        if [ "$rr_pass" -gt 5 ]; then
            printf '%s\n' "$rr_saved" | grep RACKRIFT- | sed "s/^/left=$rr_tool: /"
            rr_bad=1
            break
        fi
        printf '%s\n' "$rr_saved" | rr_removal | "$rr_tool-restore" --noflush 2>/dev/null || sleep 1
    done
done
if [ -n "$rr_stubborn" ] && [ -z "$rr_any" ]; then
    echo 'left=an undo script failed, and there is no iptables to look with'
    rr_bad=1
fi
@HOSTS@
# Only now the folders: they hold the undo script and keep the dead-man's switch running, which must go on trying
# as long as a rule may stand.
for rr_dir in "$root"/*/; do
    case $rr_dir in */'*/' | */made/) continue ;; esac
    [ -z "$rr_bad" ] && rm -rf "$rr_dir"
done
restore_made
rmdir "$root/made" "$root" 2>/dev/null
[ -d "$root" ] && ls "$root" | sed "s|^|left=$root/|"
echo end=heal
