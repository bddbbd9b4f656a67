//! sysbench 1.0.20: OLTP, cpu, memory, threads, mutex and fileio.
//!
//! Everything that counts stands in the report at the end, `… statistics` to `Threads fairness`;
//! interval lines (`[ 1s ] …`) are another span and are not mixed in. sysbench logs to standard
//! output, errors included, and does not tell success by its exit status: a `prepare` ends with 0
//! and so does a run of no events.

use super::feed::Line;
use super::number::decimal;
use super::{Adapter, ReadError, Reading, Verdict};
use crate::model::Metric;

/// Bytes in what sysbench prints as `MiB`.
const MIB: f64 = 1_048_576.0;
/// Milliseconds in a second; latencies are printed in them.
const MILLIS: f64 = 1e3;

/// Reads a sysbench report.
#[derive(Default)]
pub(super) struct Sysbench {
    section: Section,
    metrics: Vec<Metric>,
    /// The line with the count of events, once it was there, and the count.
    events: Option<(String, f64)>,
    /// Whether interval lines were printed.
    intervals: bool,
    /// Whether the last line of the last section was there.
    finished: bool,
    /// The first line that says that it failed.
    fatal: Option<String>,
    /// The first line of standard error.
    complaint: Option<String>,
    /// The first line of the report that cannot be read.
    wrong: Option<(&'static str, String)>,
}

/// Part of the report that a line belongs to.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Section {
    /// Before the report.
    #[default]
    Preamble,
    Sql,
    Cpu,
    Files,
    Throughput,
    General,
    Latency,
    Fairness,
}

impl Section {
    fn of_heading(line: &str) -> Option<Self> {
        Some(match line {
            "SQL statistics:" => Self::Sql,
            "CPU speed:" => Self::Cpu,
            "File operations:" => Self::Files,
            "Throughput:" => Self::Throughput,
            "General statistics:" => Self::General,
            "Latency (ms):" => Self::Latency,
            "Threads fairness:" => Self::Fairness,
            _ => return None,
        })
    }
}

impl Sysbench {
    fn push(&mut self, name: impl Into<String>, value: f64, unit: &str) {
        self.metrics.push(Metric {
            name: name.into(),
            value,
            unit: unit.to_owned(),
        });
    }

    /// Takes a complete line of the report.
    fn report_line(&mut self, line: &str) -> Result<(), &'static str> {
        if let Some(section) = Section::of_heading(line) {
            // Only `General statistics` comes exactly once in every report.
            if section == Section::General && self.events.is_some() {
                return Err("a second report begins: which one is meant?");
            }
            self.section = section;
            return Ok(());
        }
        if self.section == Section::Preamble
            && memory_operations(line).is_none()
            && memory_transfer(line).is_none()
        {
            return Ok(());
        }
        if let Some(rate) = memory_operations(line) {
            self.push("events_per_s", number(rate)?, "1/s");
        } else if let Some((amount, rate)) = memory_transfer(line) {
            self.push("bytes", number(amount)? * MIB, "B");
            self.push("throughput", number(rate)? * MIB, "B/s");
        } else if let Some((key, value)) = line.split_once(':') {
            self.field(key.trim(), value.trim())?;
        }
        Ok(())
    }

    /// Takes `key: value` of the section at hand. Other keys repeat what is known.
    fn field(&mut self, key: &str, value: &str) -> Result<(), &'static str> {
        match (self.section, key) {
            (Section::Sql, "transactions") => self.push("transactions_per_s", rate(value)?, "1/s"),
            (Section::Sql, "queries") => self.push("queries_per_s", rate(value)?, "1/s"),
            (Section::Sql, "ignored errors") => self.push("errors", total(value)?, "count"),
            (Section::Sql, "reconnects") => self.push("reconnects", total(value)?, "count"),
            (Section::Cpu, "events per second") => self.push("events_per_s", number(value)?, "1/s"),
            (Section::Files, "reads/s") => self.push("read_iops", number(value)?, "1/s"),
            (Section::Files, "writes/s") => self.push("write_iops", number(value)?, "1/s"),
            (Section::Files, "fsyncs/s") => self.push("fsync_iops", number(value)?, "1/s"),
            (Section::Throughput, "read, MiB/s") => {
                self.push("read_throughput", number(value)? * MIB, "B/s")
            }
            (Section::Throughput, "written, MiB/s") => {
                self.push("write_throughput", number(value)? * MIB, "B/s")
            }
            (Section::General, "total time") => {
                let seconds = value.strip_suffix('s').ok_or("a total time without unit")?;
                self.push("duration", number(seconds)?, "s");
            }
            (Section::General, "total number of events") => {
                let events = number(value)?;
                self.events = Some((format!("{key}: {value}"), events));
                self.push("events", events, "count");
            }
            (Section::Latency, "min" | "avg" | "max") => {
                self.push(format!("latency_{key}"), number(value)? / MILLIS, "s");
            }
            (Section::Latency, _) => {
                if let Some(percentile) = key.strip_suffix("th percentile") {
                    self.push(
                        format!("latency_p{percentile}"),
                        number(value)? / MILLIS,
                        "s",
                    );
                }
            }
            (Section::Fairness, "execution time (avg/stddev)") => self.finished = true,
            _ => {}
        }
        Ok(())
    }
}

/// `Total operations: 945420 (944644.05 per second)`: the rate.
fn memory_operations(line: &str) -> Option<&str> {
    let (_, rate) = line.strip_prefix("Total operations: ")?.split_once(" (")?;
    rate.strip_suffix(" per second)")
}

/// `3693.05 MiB transferred (3690.02 MiB/sec)`: amount and rate.
fn memory_transfer(line: &str) -> Option<(&str, &str)> {
    let (amount, rate) = line.split_once(" MiB transferred (")?;
    Some((amount, rate.strip_suffix(" MiB/sec)")?))
}

fn number(text: &str) -> Result<f64, &'static str> {
    decimal(text).ok_or("not a number where one must be")
}

/// The total in `1471   (734.32 per sec.)`.
fn total(value: &str) -> Result<f64, &'static str> {
    let (total, _) = value.split_once('(').ok_or("a count without its rate")?;
    number(total.trim())
}

/// The rate in `1471   (734.32 per sec.)`.
fn rate(value: &str) -> Result<f64, &'static str> {
    let (_, rest) = value.split_once('(').ok_or("a count without its rate")?;
    number(
        rest.strip_suffix(" per sec.)")
            .ok_or("a rate that is not per second")?,
    )
}

/// Whether the tool says with this line that it failed.
fn is_fatal(line: &str) -> bool {
    ["FATAL:", "PANIC:", "CRITICAL:"]
        .iter()
        .any(|word| line.starts_with(word))
}

impl Adapter for Sysbench {
    fn stdout(&mut self, line: &Line<'_>) {
        if is_fatal(&line.text) {
            self.fatal.get_or_insert_with(|| line.excerpt());
        }
        if !line.complete {
            // What follows a cut line would be another report than the one that was cut.
            self.finished = false;
            return;
        }
        let trimmed = line.text.trim_end();
        self.intervals |= trimmed.starts_with("[ ") && trimmed.contains("s ] ");
        if self.wrong.is_none()
            && let Err(reason) = self.report_line(trimmed)
        {
            self.wrong = Some((reason, line.excerpt()));
        }
    }

    fn stderr(&mut self, line: &Line<'_>) {
        if is_fatal(&line.text) {
            self.fatal.get_or_insert_with(|| line.excerpt());
        }
        if !line.text.trim().is_empty() {
            self.complaint.get_or_insert_with(|| line.excerpt());
        }
    }

    fn finish(self: Box<Self>, exit: i32) -> Result<Reading, ReadError> {
        if let Some(line) = self.fatal {
            return Err(ReadError::Tool { exit, line });
        }
        if let Some((reason, line)) = self.wrong {
            return Err(ReadError::Line { reason, line });
        }
        if self.metrics.is_empty() && !self.intervals {
            return Err(match self.complaint {
                Some(line) if exit != 0 => ReadError::Tool { exit, line },
                _ => ReadError::Missing {
                    what: "report of a run",
                    exit,
                },
            });
        }
        if let Some((line, 0.0)) = self.events {
            // All other figures are sysbench's defaults then.
            let metrics = self
                .metrics
                .into_iter()
                .filter(|metric| metric.name == "events")
                .collect();
            return Err(ReadError::NothingDone { line, metrics });
        }
        let verdict = if self.metrics.is_empty() {
            Verdict::Partial(format!(
                "it ended with exit status {exit} before its report"
            ))
        } else if !self.finished {
            Verdict::Partial(format!("its report has no end; exit status {exit}"))
        } else if exit != 0 {
            Verdict::Partial(format!("its report is whole but its exit status is {exit}"))
        } else {
            Verdict::Ok
        };
        Ok(Reading {
            metrics: self.metrics,
            verdict,
        })
    }
}

#[cfg(test)]
mod tests;
