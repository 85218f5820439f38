# The jumps come and go until this file or its folder does. The first time that they go is after the first `on`.
dir=$1
echo $$ >"$dir/flap.pid"
rr_sleep() { sleep "$1" 2>/dev/null || sleep "$((${1%%.*} + 1))"; }
rr_there() { [ -e "$dir/flap.sh" ]; }
up() {
    :
@UP@
}
down() {
    :
@DOWN@
}
while rr_there; do
    while read -r rr_on rr_off; do
        rr_sleep "$rr_on"
        rr_there || exit 0
        down
        rr_sleep "$rr_off"
        rr_there || exit 0
        up
    done <"$dir/flap.times"
done
