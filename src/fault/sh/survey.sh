# What the host is and has. Reads only: `-save` without `-t` loads no table and makes none.
set -u
echo "boot=$(cat /proc/sys/kernel/random/boot_id)"
echo "uid=$(id -u)"
echo "client=$(rr_client)"
if [ -d /run/systemd/system ] && command -v systemd-run >/dev/null 2>&1 &&
    [ "$(readlink /proc/self/ns/net)" = "$(readlink /proc/1/ns/net)" ]; then
    # A unit of systemd would run in systemd's network, so only where that is also ours.
    echo supervisor=systemd
elif command -v setsid >/dev/null 2>&1; then
    echo supervisor=setsid
fi
for tool in iptables-nft iptables-legacy iptables ip6tables-nft ip6tables-legacy ip6tables; do
    command -v "$tool" >/dev/null 2>&1 || continue
    command -v "$tool-save" >/dev/null 2>&1 || continue
    command -v "$tool-restore" >/dev/null 2>&1 || continue
    hints=$("$tool-save" 2>/dev/null | grep -c -e KUBE-IPTABLES-HINT -e KUBE-KUBELET-CANARY)
    echo "tool=$tool $hints $("$tool" --version 2>/dev/null | head -n 1)"
done
for tool in ping ping6 bash perl python3 timeout busybox nft logger; do
    command -v "$tool" >/dev/null 2>&1 && echo "have=$tool"
done
ip -o addr show scope global 2>/dev/null | while read -r _ device family address _; do
    case $family in inet | inet6) echo "address=$device ${address%%/*}" ;; esac
done
echo end=survey
