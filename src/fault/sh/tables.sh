# The nft back end makes a table and a base chain at the first rule, and leaves them behind.

# note_made TOOL FAMILY TABLE BASE: writes down that the base chain, or its whole table, is not there yet.
note_made() {
    rr_key="$root/made/$1.$3.$4"
    [ -e "$rr_key" ] && return 0
    if ! "$1-save" 2>/dev/null | grep -q "^\*$3\$"; then
        echo table >"$rr_key"
    elif command -v nft >/dev/null 2>&1 && ! nft list chain "$2" "$3" "$4" >/dev/null 2>&1; then
        echo chain >"$rr_key"
    fi
    return 0
}

# restore_made: removes what was written down, unless somebody uses it by now. Both steps are refused by the kernel
# itself if a foreign rule or chain comes in between: `iptables -X` deletes no chain that has rules (`nft delete
# chain` would), and the table goes in one transaction that first makes the chains that others would make, which
# fails if one exists.
restore_made() {
    for rr_key in "$root"/made/*; do
        [ -f "$rr_key" ] || continue
        rr_name=${rr_key##*/}
        rr_tool=${rr_name%%.*}
        rr_rest=${rr_name#*.}
        rr_table=${rr_rest%%.*}
        rr_base=${rr_rest#*.}
        rr_now=$("$rr_tool-save" -t "$rr_table" 2>/dev/null) || continue
        # Another fault still hangs on it: the last one out cleans up.
        case $rr_now in *RACKRIFT-*) continue ;; esac
        case $rr_now in *":$rr_base ACCEPT "*) "$rr_tool" -t "$rr_table" -X "$rr_base" 2>/dev/null ;; esac
        if [ "$(cat "$rr_key")" = table ] && command -v nft >/dev/null 2>&1; then
            case $rr_tool in ip6*) rr_family=ip6 ;; *) rr_family=ip ;; esac
            rr_now=$(nft list table "$rr_family" "$rr_table" 2>/dev/null)
            case $rr_now in
            '' | *chain* | *' set '* | *' map '*) ;;
            *)
                {
                    for rr_chain in PREROUTING INPUT FORWARD OUTPUT POSTROUTING \
                        KUBE-KUBELET-CANARY KUBE-PROXY-CANARY KUBE-IPTABLES-HINT; do
                        echo "create chain $rr_family $rr_table $rr_chain"
                    done
                    echo "delete table $rr_family $rr_table"
                } | nft -f - 2>/dev/null
                ;;
            esac
        fi
        rm -f "$rr_key"
    done
}
