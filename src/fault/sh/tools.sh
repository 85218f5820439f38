# rr_tools: every iptables that there is, one name for each back end and family.
rr_tools() {
    for rr_plain in iptables ip6tables; do
        rr_kinds=
        for rr_kind in nft legacy; do
            if command -v "$rr_plain-$rr_kind-save" >/dev/null 2>&1; then
                rr_kinds="$rr_kinds $rr_kind"
                echo "$rr_plain-$rr_kind"
            fi
        done
        command -v "$rr_plain-save" >/dev/null 2>&1 || continue
        case $("$rr_plain" --version 2>/dev/null) in
        *nf_tables*) rr_kind=nft ;;
        *) rr_kind=legacy ;;
        esac
        case " $rr_kinds " in
        *" $rr_kind "*) ;;
        *) echo "$rr_plain" ;;
        esac
    done
}
