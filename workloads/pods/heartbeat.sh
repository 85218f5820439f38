# One line each 200 ms until told to end. All but `sleep` is the shell's own: no other process is started.
# /proc/uptime is the finest clock that a shell can read by itself: hundredths of a second since boot, sleep of the
# machine included (CLOCK_BOOTTIME). It is read before the line is written: at that moment the container ran.
read -r boot </node/boot_id
read -r token </node/uuid
seq=0
exec >>"/beats/$POD_UID.$token" || exit 1
# Not 0: a job's pod that was told to end has not done its work.
trap 'read -r up _ </proc/uptime; echo "stopped $POD_UID $seq $boot $up"; exit 143' TERM INT
echo "begin $POD_UID $POD_NAME $WORKLOAD $token"
while :; do
    read -r up _ </proc/uptime
    echo "beat $POD_UID $seq $boot $up"
    seq=$((seq + 1))
    sleep 0.2
done
