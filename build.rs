//! Rebuild when a file is added to an embedded folder: `include_dir!` alone does not see new files.

fn main() {
    for folder in ["workloads", "inventories", "lab"] {
        println!("cargo::rerun-if-changed={folder}");
    }
}
