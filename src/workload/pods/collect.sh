# Tells of each heartbeat file of one run: `container` (or `nameless`), its `span`s, `stopped`, how many heartbeats are
# `lost` and lines `torn`; then `end`.
# Times are hundredths of a second since boot; only as text, because some awks count no further than 2^31.
set -u
files=0
for file in "$dir"/*; do
    [ -f "$file" ] || continue
    awk -v longest="$longest" '
        function flush_span() {
            if (beats) print "span", boot, from, to, beats, gap
            beats = 0
        }
        $1 == "begin" && NF == 5 && !named {
            named = 1; uid = $2
            print "container", $2, $3, $4, $5
            next
        }
        ($1 == "beat" || $1 == "stopped") && NF == 5 && named && $2 == uid && $5 ~ /^[0-9]+\.[0-9][0-9]$/ {
            at = $5; sub(/\./, "", at)
            if (beats && ($4 != boot || at - to > longest || at - to < 0)) flush_span()
            if (!beats) { boot = $4; from = at; to = at; gap = 0 }
            if (at - to > gap) gap = at - to
            to = at; beats++
            if ($1 == "beat") {
                if ($3 > next_seq) lost += $3 - next_seq
                next_seq = $3 + 1
            } else {
                flush_span()
                print "stopped", boot, at
            }
            next
        }
        { torn++ }
        END {
            flush_span()
            # Empty: its container was killed before its first line.
            if (!named) { print "nameless"; exit }
            if (lost) print "lost", lost
            if (torn) print "torn", torn
        }' "$file" || exit 1
    files=$((files + 1))
done
echo "end $files"
