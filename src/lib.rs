//! The rooms of rackrift that touch the world.
//!
//! Data goes one way: inventory → plan → faults + workloads + observers → history → verdict → report.

pub mod cli;
pub mod command;
pub mod exit;
pub mod fault;
pub mod host;
pub mod inventory;
pub mod kube;
pub mod lab;
pub mod length;
pub mod observe;
pub mod run;
pub mod ssh;
pub mod store;
pub mod workload;
pub mod yaml;
