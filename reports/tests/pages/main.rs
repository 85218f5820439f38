//! Tests of whole reports: what people read, what must not act, and runs of every size.

mod hostile;
mod markup;
mod shapes;
mod snapshots;
mod support;
