# On a worker: sums each heartbeat file up. A pause of more than a second begins a new stretch.
# `file`, then the file's own `h`; `s FROM TO BEATS LONGEST-PAUSE` for a stretch; `x WHEN`; `end`.
cd @BEATS@ 2>/dev/null || { echo none; exit 0; }
for file in *.*; do
    [ -f "$file" ] || continue
    echo "file $file"
    awk '
        function out() { if (n) printf "s %s %s %d %.2f\n", from, last, n, pause }
        $1 == "h" { print }
        $1 == "b" && NF == 3 {
            if (n && $2 - last > 1) { out(); n = 0 }
            if (!n) { from = $2; pause = 0 } else if ($2 - last > pause) pause = $2 - last
            last = $2
            n++
        }
        $1 == "x" && NF == 2 { out(); n = 0; print }
        END { out() }' "$file"
done
echo end
