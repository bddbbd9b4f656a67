//! People's own scripts: `metric NAME VALUE UNIT` on a line of its own; all other lines are theirs.

use super::feed::Line;
use super::number::decimal;
use super::{Adapter, ReadError, Reading, Verdict};
use crate::model::Metric;

/// Reads `metric` lines.
#[derive(Default)]
pub(super) struct Lines {
    metrics: Vec<Metric>,
    /// The first line that is wrong.
    wrong: Option<ReadError>,
    /// Whether output ends in the middle of a line.
    cut: bool,
    /// The last line of standard error, for the case that nothing else says what went wrong.
    complaint: Option<String>,
}

impl Lines {
    fn metric(&self, text: &str) -> Result<Option<Metric>, &'static str> {
        let mut words = text.split_whitespace();
        if words.next() != Some("metric") || text.starts_with(char::is_whitespace) {
            return Ok(None);
        }
        let (Some(name), Some(value), unit, None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err("a metric line is `metric NAME VALUE UNIT`");
        };
        if !name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/'))
        {
            return Err("a metric's name holds letters, digits, _, -, . and / only");
        }
        if self.metrics.iter().any(|known| known.name == name) {
            return Err("a metric is printed twice");
        }
        let value = decimal(value).ok_or("a metric's value is a finite decimal number")?;
        Ok(Some(Metric {
            name: name.to_owned(),
            value,
            unit: unit.unwrap_or_default().to_owned(),
        }))
    }
}

impl Adapter for Lines {
    fn stdout(&mut self, line: &Line<'_>) {
        self.cut = !line.complete;
        if self.cut || self.wrong.is_some() {
            return;
        }
        match self.metric(&line.text) {
            Ok(metric) => self.metrics.extend(metric),
            Err(reason) => {
                self.wrong = Some(ReadError::Line {
                    reason,
                    line: line.excerpt(),
                })
            }
        }
    }

    fn stderr(&mut self, line: &Line<'_>) {
        if !line.text.trim().is_empty() {
            self.complaint = Some(line.excerpt());
        }
    }

    fn finish(self: Box<Self>, exit: i32) -> Result<Reading, ReadError> {
        if let Some(wrong) = self.wrong {
            return Err(wrong);
        }
        if self.metrics.is_empty() {
            return Err(match self.complaint {
                Some(line) if exit != 0 => ReadError::Tool { exit, line },
                _ => ReadError::Missing {
                    what: "complete line `metric NAME VALUE UNIT`",
                    exit,
                },
            });
        }
        let verdict = if self.cut {
            Verdict::Partial("the last line has no line end".to_owned())
        } else if exit != 0 {
            Verdict::Partial(format!("the script ended with exit status {exit}"))
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
mod tests {
    use super::super::read;
    use super::*;

    fn ok(stdout: &str) -> Vec<(String, f64, String)> {
        let reading = read("lines", stdout.as_bytes(), b"", 0).unwrap();
        assert_eq!(reading.verdict, Verdict::Ok);
        reading
            .metrics
            .into_iter()
            .map(|m| (m.name, m.value, m.unit))
            .collect()
    }

    #[test]
    fn takes_metric_lines_and_leaves_the_rest_alone() {
        assert_eq!(
            ok("hello\nmetric rate 12.5 1/s\r\n  metric indented 1 s\nmetrics 3\nmetric left 7\n"),
            [
                ("rate".to_owned(), 12.5, "1/s".to_owned()),
                ("left".to_owned(), 7.0, String::new())
            ]
        );
    }

    #[test]
    fn refuses_what_is_no_measurement() {
        let cases = [
            ("", "no complete line"),
            ("metric a 1", "no complete line"),
            ("metric a\n", "`metric NAME VALUE UNIT`"),
            ("metric a 1 s extra\n", "`metric NAME VALUE UNIT`"),
            ("metric a nan s\n", "finite"),
            ("metric a 1e999 s\n", "finite"),
            ("metric a 1,5 s\n", "finite"),
            ("metric a$b 1 s\n", "name holds"),
            ("metric a 1 s\nmetric a 2 s\n", "twice"),
        ];
        for (stdout, reason) in cases {
            let error = read("lines", stdout.as_bytes(), b"", 0)
                .unwrap_err()
                .to_string();
            assert!(error.contains(reason), "{stdout:?}: {error}");
        }
    }

    #[test]
    fn says_when_it_is_not_the_whole_story() {
        let cut = read("lines", b"metric a 1 s\nmetric b 2", b"", 0).unwrap();
        assert_eq!(
            (cut.metrics.len(), cut.verdict),
            (
                1,
                Verdict::Partial("the last line has no line end".to_owned())
            )
        );
        let failed = read("lines", b"metric a 1 s\n", b"", 3).unwrap();
        assert_eq!(
            failed.verdict,
            Verdict::Partial("the script ended with exit status 3".to_owned())
        );
        let silent = read("lines", b"", b"no such file\n", 2).unwrap_err();
        assert_eq!(
            silent.to_string(),
            "the tool failed with exit status 2: no such file"
        );
    }
}
