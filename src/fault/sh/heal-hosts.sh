# What kinds other than partitions leave where a reboot, or a lost folder, does not take it away.
for rr_file in /var/lib/rackrift/*.fill; do
    [ -f "$rr_file" ] || continue
    read -r rr_fill <"$rr_file"
    case $rr_fill in
    */.rackrift-*.fill)
        echo "found=file $rr_fill"
        rm -f "$rr_fill"
        if [ -e "$rr_fill" ]; then echo "left=$rr_fill"; else rm -f "$rr_file"; fi
        ;;
    esac
done
rmdir /var/lib/rackrift 2>/dev/null
for rr_file in /dev/shm/rackrift-*-*; do
    [ -f "$rr_file" ] || continue
    echo "found=file $rr_file"
    rm -f "$rr_file"
    [ -e "$rr_file" ] && echo "left=$rr_file"
done
for rr_file in /etc/kubernetes/rackrift-*.yaml; do
    [ -f "$rr_file" ] || continue
    rr_name=${rr_file##*/rackrift-}
    rr_back=/etc/kubernetes/manifests/${rr_name#*.}
    echo "found=static pod ${rr_name#*.}"
    if [ -e "$rr_back" ]; then rm -f "$rr_file"; else mv "$rr_file" "$rr_back"; fi
    [ -e "$rr_file" ] && echo "left=$rr_file"
done
if command -v tc >/dev/null 2>&1; then
    for rr_device in $(tc qdisc show 2>/dev/null | sed -n 's/^qdisc htb 5b00: dev \([^ ]*\) root .*/\1/p'); do
        echo "found=qdisc 5b00: on $rr_device"
        tc qdisc del dev "$rr_device" root handle 5b00: 2>/dev/null
        case $(tc qdisc show dev "$rr_device" root 2>/dev/null) in *' 5b00: '*) echo "left=qdisc 5b00: on $rr_device" ;; esac
    done
fi
