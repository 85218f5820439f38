//! A loop that runs on a host by itself for as long as a fault holds: `NAME.sh` in the fault's folder, its pid in
//! `NAME.pid`.
//!
//! # Invariants
//! * The loop goes on only while its file is there, and writes its own pid as the first thing.
//! * A pid is taken for the loop only if its command line names the file: numbers are used again.

/// Whether the loop runs, as a condition of sh; `rr_loop` is its pid then.
pub(super) fn running(name: &str) -> String {
    format!(
        r#"read -r rr_loop 2>/dev/null <"$dir/{name}.pid" && grep -q "$dir/{name}.sh" "/proc/$rr_loop/cmdline" 2>/dev/null"#
    )
}

/// Starts it, once, in a session of its own: it outlives the connection.
pub(super) fn start(name: &str) -> String {
    format!(
        r#"if [ ! -e "$dir/{name}.pid" ]; then
    setsid /bin/sh "$dir/{name}.sh" "$dir" </dev/null >/dev/null 2>&1 &
fi
"#
    )
}

/// Ends it and what it runs at the moment: it leads its session's group.
pub(super) fn end(name: &str) -> String {
    format!(
        r#"rm -f "$dir/{name}.sh"
if {}; then
    kill -KILL "-$rr_loop" 2>/dev/null
    kill -KILL "$rr_loop" 2>/dev/null
fi
"#,
        running(name)
    )
}

/// Says that it still runs, if it does.
pub(super) fn left(name: &str) -> String {
    format!(
        r#"if {}; then
    echo "the loop with pid $rr_loop still runs"
fi
"#,
        running(name)
    )
}
