# rr_root DEVICE: the first line of its root qdisc.
rr_root() {
    tc qdisc show dev "$1" root 2>/dev/null | head -n 1
}
# rr_ours DEVICE: whether the root is ours.
rr_ours() {
    case $(rr_root "$1") in 'qdisc htb 5b00: '*) return 0 ;; esac
    return 1
}
