//! What people and programs get to read: every report is a plain value that is drawn as text and
//! serialises as JSON. Nothing is printed here, and nothing is computed that another module could
//! want.

mod comparison;
mod differences;
mod graph;
mod inventory;
mod number;
mod plan_text;
mod result_table;
mod run_report;
mod runs;
mod shares;
mod table;

pub use comparison::comparison_text;
pub use differences::differences_text;
pub use graph::{GraphFormat, graph};
pub use inventory::{Inventory, Reach, hosts_file};
pub use number::number;
pub use plan_text::plan_text;
pub use result_table::{CellRow, FailedAttempt, MetricCell, ResultTable};
pub use run_report::RunReport;
pub use runs::runs_text;
pub use shares::shares_text;
