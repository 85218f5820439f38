# All rules. Reads only: `-save` without `-t` loads no table and makes none.
set -u
for tool in $(rr_tools); do
    echo "save=$tool"
    "$tool-save" -c 2>/dev/null || echo "failed=$tool-save"
done
echo end=snapshot
