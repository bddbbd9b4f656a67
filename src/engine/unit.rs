//! Units of work on a guest: their names and the runner's answers about them.

use std::fmt;

use crate::model::Name;

/// What becomes of the background processes that a unit leaves behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// They are ended before the next trial.
    UntilTrialEnds,
    /// They stay: services, and what the setup starts.
    ForGood,
}

/// The name of a unit, unique over all runs, attempts and processes of labrig.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UnitId(String);

impl UnitId {
    /// `session` sets apart attempts that carry the same number because the first was never
    /// committed; `place` says which step of which attempt it is.
    pub fn new(keep: Keep, run: &str, session: &str, place: &str, domain: &Name) -> Self {
        let class = match keep {
            Keep::UntilTrialEnds => "trial",
            Keep::ForGood => "keep",
        };
        let text: String = format!("{class}.{run}.{session}.{place}.{domain}");
        let plain = |c: char| {
            if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') {
                c
            } else {
                '-'
            }
        };
        Self(text.chars().map(plain).collect())
    }
}

impl fmt::Display for UnitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Why a unit is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// Its command ended.
    Exit,
    /// Its deadline passed and it was ended.
    Timeout,
    /// It was told to stop.
    Stopped,
}

impl Why {
    /// One word for files.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Exit => "exit",
            Self::Timeout => "timeout",
            Self::Stopped => "stopped",
        }
    }
}

/// What the runner says about a unit that is over.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Report {
    /// Why it is over.
    pub why: Why,
    /// Exit status of its command; 128 + n after signal n.
    pub exit: i32,
    /// When it began, in seconds since 1970 by the guest's clock.
    pub started: i64,
    /// How long its command ran, in seconds by the guest's uptime (hundredths).
    pub seconds: f64,
    /// Processes that would not end.
    pub left: String,
    /// Whether the guest had no room left in the end: the output may not be all of it.
    pub full: bool,
    /// Bytes it printed to standard output.
    pub stdout: u64,
    /// Bytes it printed to standard error.
    pub stderr: u64,
    /// What it printed, standard output first, when that is little.
    pub inline: Option<Vec<u8>>,
}

/// What the runner answers when it is asked to run a unit.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Answer {
    /// The unit is over.
    Done(Report),
    /// It still works.
    Running,
    /// The command did not come whole; nothing was started.
    Torn,
    /// The guest was started anew.
    Rebooted,
    /// Its supervisor is gone and left no report.
    Lost,
}

/// What the runner says after it made a guest quiet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sweep {
    /// Identifies the boot of the guest.
    pub boot: String,
    /// Whether the marker of the setup is there.
    pub marker: bool,
    /// Units of former attempts that were still at work.
    pub unfinished: Vec<String>,
    /// Number and name of processes that were left behind and are ended.
    pub ended: Vec<String>,
    /// Whether none of them is left.
    pub quiet: bool,
}

/// Header and body of an answer, cut apart at the empty line.
struct Parts<'a> {
    /// Words after `labrig` in the first line.
    title: &'a str,
    fields: Vec<(&'a str, &'a str)>,
    body: &'a [u8],
}

impl<'a> Parts<'a> {
    /// Finds the answer in what a command printed; a guest's login files may print before it.
    fn of(output: &'a [u8]) -> Option<Self> {
        const MAGIC: &[u8] = b"labrig ";
        let starts_line = |at: usize| at == 0 || output[at - 1] == b'\n';
        let start =
            (0..output.len()).find(|at| starts_line(*at) && output[*at..].starts_with(MAGIC))?;
        let answer = &output[start + MAGIC.len()..];
        let end = answer.windows(2).position(|pair| pair == b"\n\n")?;
        let mut lines = std::str::from_utf8(&answer[..end]).ok()?.lines();
        let title = lines.next()?;
        let fields = lines
            .map(|line| line.split_once(' ').unwrap_or((line, "")))
            .collect();
        Some(Self {
            title,
            fields,
            body: &answer[end + 2..],
        })
    }

    fn field(&self, key: &str) -> Option<&'a str> {
        self.fields
            .iter()
            .find(|(known, _)| *known == key)
            .map(|(_, value)| value.trim())
    }

    fn all(&self, key: &str) -> Vec<String> {
        self.fields
            .iter()
            .filter(|(known, _)| *known == key)
            .map(|(_, value)| (*value).to_owned())
            .collect()
    }
}

impl Answer {
    /// Reads the answer to `run`; none when it is none.
    pub fn parse(output: &[u8]) -> Option<Self> {
        let parts = Parts::of(output)?;
        match parts.title {
            "unit running" => Some(Self::Running),
            "unit torn" => Some(Self::Torn),
            "unit rebooted" => Some(Self::Rebooted),
            "unit lost" => Some(Self::Lost),
            "unit done" => Report::parse(&parts).map(Self::Done),
            _ => None,
        }
    }
}

impl Report {
    fn parse(parts: &Parts<'_>) -> Option<Self> {
        let why = match parts.field("why")? {
            "exit" => Why::Exit,
            "timeout" => Why::Timeout,
            "stopped" => Why::Stopped,
            _ => return None,
        };
        let (begin, end) = parts.field("seconds")?.split_once(' ')?;
        let span = end.parse::<f64>().ok()? - begin.parse::<f64>().ok()?;
        let stdout = parts.field("stdout")?.parse().ok()?;
        let stderr = parts.field("stderr")?.parse().ok()?;
        let inline = match parts.field("inline")? {
            "1" if parts.body.len() as u64 == stdout + stderr => Some(parts.body.to_vec()),
            // Cut short on the way.
            "1" => return None,
            _ => None,
        };
        Some(Self {
            why,
            exit: parts.field("exit")?.parse().ok()?,
            started: parts.field("started")?.parse().ok()?,
            seconds: span.max(0.0),
            left: parts.field("left")?.to_owned(),
            full: parts.field("full") == Some("1"),
            stdout,
            stderr,
            inline,
        })
    }
}

impl Sweep {
    /// Reads the answer to `sweep`; none when it is none.
    pub fn parse(output: &[u8]) -> Option<Self> {
        let parts = Parts::of(output).filter(|parts| parts.title == "sweep")?;
        Some(Self {
            boot: parts.field("boot")?.to_owned(),
            marker: parts.field("marker")? == "1",
            unfinished: parts.all("unfinished"),
            ended: parts.all("ended"),
            quiet: parts.field("quiet")? == "1",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DONE: &str = "motd\nlabrig unit done\nwhy exit\nexit 3\nstarted 1796127305\nseconds 10.50 12.75\nleft \nfull 0\nstdout 2\nstderr 1\ninline 1\n\n";

    #[test]
    fn reads_a_report_after_a_greeting() {
        let output = [DONE.as_bytes(), b"\xff\0e"].concat();
        let Some(Answer::Done(report)) = Answer::parse(&output) else {
            panic!("no report")
        };
        assert_eq!(
            (report.why, report.exit, report.started),
            (Why::Exit, 3, 1_796_127_305)
        );
        assert!((report.seconds - 2.25).abs() < 1e-9);
        assert_eq!(report.inline.as_deref(), Some(&b"\xff\0e"[..]));
        assert!(!report.full);
    }

    #[test]
    fn an_answer_that_was_cut_is_none() {
        let output = [DONE.as_bytes(), b"abc"].concat();
        for length in 0..output.len() {
            assert_eq!(Answer::parse(&output[..length]), None, "cut at {length}");
        }
        assert_eq!(
            Answer::parse(b"labrig unit running\n\n"),
            Some(Answer::Running)
        );
        assert_eq!(Answer::parse(b"sh: labrig unit running\n\n"), None);
        assert_eq!(Sweep::parse(b"labrig sweep\nboot x\nmarker 0\n"), None);
    }

    #[test]
    fn unit_names_are_safe_in_paths_and_patterns() {
        let id = UnitId::new(
            Keep::UntilTrialEnds,
            "oltp/2026 *'",
            "s",
            "t1",
            &"db".parse().unwrap(),
        );
        assert_eq!(id.to_string(), "trial.oltp-2026---.s.t1.db");
    }
}
