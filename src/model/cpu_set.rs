//! Sets of a host's hardware threads.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Highest number of a hardware thread that is understood; Linux is built for at most 8192.
const CPU_MAX: u32 = 8191;

/// Hardware threads of a host by the numbers Linux gives them. Text form is Linux's own list, as in
/// `0-3,8`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct CpuSet(BTreeSet<u32>);

/// Why a text is not a set of CPUs.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ParseCpuSetError {
    /// A part is neither a number nor a range.
    #[error("{0:?} is no list of CPUs: write numbers and ranges, as in 0-3,8")]
    Form(String),
    /// A range ends before it begins.
    #[error("{0:?} is a range that ends before it begins")]
    Backwards(String),
    /// A CPU is in it twice.
    #[error("CPU {0} is named twice")]
    Twice(u32),
    /// No host has such a CPU.
    #[error("CPU {0} is beyond {CPU_MAX}, the last one there can be")]
    TooLarge(u64),
}

impl CpuSet {
    /// Its CPUs, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().copied()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a CPU is in it.
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.contains(&cpu)
    }

    /// The CPUs that are in both.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).copied().collect())
    }

    /// The CPUs that are not in `other`.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        Self(self.0.difference(&other.0).copied().collect())
    }

    /// Adds all CPUs of another set.
    pub fn extend(&mut self, other: &Self) {
        self.0.extend(&other.0);
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<T: IntoIterator<Item = u32>>(cpus: T) -> Self {
        Self(cpus.into_iter().collect())
    }
}

impl FromStr for CpuSet {
    type Err = ParseCpuSetError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let form = || ParseCpuSetError::Form(text.to_owned());
        let number = |digits: &str| {
            let digits = digits.trim();
            if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                return Err(form());
            }
            let number: u64 = digits.parse().map_err(|_| form())?;
            u32::try_from(number)
                .ok()
                .filter(|cpu| *cpu <= CPU_MAX)
                .ok_or(ParseCpuSetError::TooLarge(number))
        };
        let mut cpus = BTreeSet::new();
        for part in text.split(',') {
            let (first, last) = match part.split_once('-') {
                Some((first, last)) => (number(first)?, number(last)?),
                None => (number(part)?, number(part)?),
            };
            if first > last {
                return Err(ParseCpuSetError::Backwards(part.trim().to_owned()));
            }
            for cpu in first..=last {
                if !cpus.insert(cpu) {
                    return Err(ParseCpuSetError::Twice(cpu));
                }
            }
        }
        Ok(Self(cpus))
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for cpu in self.iter() {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == cpu => *last = cpu,
                _ => ranges.push((cpu, cpu)),
            }
        }
        let ranges: Vec<_> = ranges
            .into_iter()
            .map(|(first, last)| match first == last {
                true => first.to_string(),
                false => format!("{first}-{last}"),
            })
            .collect();
        f.pad(&ranges.join(","))
    }
}

impl TryFrom<String> for CpuSet {
    type Error = ParseCpuSetError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        match text.is_empty() {
            true => Ok(Self::default()),
            false => text.parse(),
        }
    }
}

impl From<CpuSet> for String {
    fn from(cpus: CpuSet) -> Self {
        cpus.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_what_linux_does() {
        for (text, written) in [
            ("0", "0"),
            ("0-3,8", "0-3,8"),
            ("8,0-1, 2", "0-2,8"),
            ("5-5", "5"),
            ("0,1,3,4", "0-1,3-4"),
        ] {
            assert_eq!(text.parse::<CpuSet>().unwrap().to_string(), written);
        }
        assert_eq!(CpuSet::try_from(String::new()), Ok(CpuSet::default()));
    }

    #[test]
    fn refuses_what_is_no_list() {
        use ParseCpuSetError as E;
        for (text, error) in [
            ("", E::Form(String::new())),
            ("a", E::Form("a".to_owned())),
            ("0-", E::Form("0-".to_owned())),
            ("-1", E::Form("-1".to_owned())),
            ("1,,2", E::Form("1,,2".to_owned())),
            ("^1", E::Form("^1".to_owned())),
            ("3-1", E::Backwards("3-1".to_owned())),
            ("0-3,2", E::Twice(2)),
            ("9000", E::TooLarge(9000)),
            ("0-99999999999", E::TooLarge(99_999_999_999)),
        ] {
            assert_eq!(text.parse::<CpuSet>(), Err(error), "{text}");
        }
    }
}
