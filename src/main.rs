//! `rackrift`: cut racks apart, and say with evidence who led and which pods ran twice.

fn main() -> std::process::ExitCode {
    rackrift::command::dispatch::main()
}
