# Runs in each container: a sign of life each 200 ms, appended to a file on the node, which outlives the pod.
# One line `h` says who this is, `b` is a beat, `x` the end by a signal. Times are the node's /proc/uptime.
token=$(cat /proc/sys/kernel/random/uuid)
exec 3>>"/beats/$POD_UID.$token"
# The node's own, where it was left for us: in a container, /proc may show that of a machine round the node.
read -r boot </node/boot-id || read -r boot </proc/sys/kernel/random/boot_id
echo "h $WORKLOAD $POD_NAME $POD_UID $token $boot" >&3
end() {
    read -r up _ </proc/uptime
    echo "x $up" >&3
    exit 0
}
trap end TERM INT
beat=0
while :; do
    read -r up _ </proc/uptime
    echo "b $up $beat" >&3
    beat=$((beat + 1))
    sleep 0.2
done
