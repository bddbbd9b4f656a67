//! From a load tool's raw output to metrics: pure functions over bytes, repeatable on any archive.
//!
//! A number counts only in a complete line, a report only when its last section is there, and exit
//! status 0 proves nothing. Tools print what they like in whatever amount, so output is read line
//! by line in constant memory.

mod feed;
mod lines;
mod number;
mod reading;
mod sysbench;
mod unit;

use std::io::Read;

pub use reading::{ReadError, Reading, Verdict};
pub use unit::convert;

use feed::Line;

/// The adapters there are, as playbooks name them.
pub const NAMES: [&str; 2] = ["lines", "sysbench"];

/// What turns one tool's output into metrics, fed line by line.
trait Adapter {
    /// Takes a line of standard output.
    fn stdout(&mut self, line: &Line<'_>);

    /// Takes a line of standard error.
    fn stderr(&mut self, line: &Line<'_>);

    /// Says what was measured, now that all lines are in.
    fn finish(self: Box<Self>, exit: i32) -> Result<Reading, ReadError>;
}

/// Reads what a tool printed; `exit` is 128 + n after signal n.
///
/// # Errors
/// When the output is no usable measurement, or no adapter has that name.
pub fn read(adapter: &str, stdout: &[u8], stderr: &[u8], exit: i32) -> Result<Reading, ReadError> {
    read_streams(adapter, stdout, stderr, exit)
}

/// As [`read`], in constant memory whatever the tool printed.
///
/// # Errors
/// As [`read`]; also what a reader fails with.
pub fn read_streams(
    adapter: &str,
    stdout: impl Read,
    stderr: impl Read,
    exit: i32,
) -> Result<Reading, ReadError> {
    let mut adapter: Box<dyn Adapter> = match adapter {
        "lines" => Box::new(lines::Lines::default()),
        "sysbench" => Box::new(sysbench::Sysbench::default()),
        unknown => return Err(ReadError::UnknownAdapter(unknown.to_owned())),
    };
    feed::each_line(stdout, |line| adapter.stdout(&line))?;
    feed::each_line(stderr, |line| adapter.stderr(&line))?;
    adapter.finish(exit)
}
