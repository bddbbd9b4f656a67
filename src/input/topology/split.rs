//! A domain's split as written.

use std::fmt;
use std::str::FromStr;

use super::super::placement::Numa;
use super::super::read::{At, Fields, Written};
use super::super::shape::{Form, Key, SIZE, Shape, Word, words};
use super::size;
use crate::model::{Bytes, CpuSet};

/// CPUs that one domain may have.
const CPUS: Form = Form::Whole {
    least: 1,
    most: 1024,
};
/// A part of what the host has.
const PART: Form = Form::Syntax("^[1-9][0-9]*/[1-9][0-9]*$|^[1-9][0-9]* ?%$");
/// A list of CPUs.
const CPU_LIST: Form = Form::Syntax("^[0-9]+(-[0-9]+)?(, ?[0-9]+(-[0-9]+)?)*$");
/// The least memory that boots anything.
const MEMORY_LEAST: Bytes = Bytes::mib(32);

/// What a split is.
pub(super) const SPLIT: Shape = Shape::merged(
    "A domain's share of the host.",
    &[
        Key::new(
            "cpus",
            Form::Either(&[CPUS, PART]),
            "4",
            "Virtual CPUs: a number, or a part of the host's threads as in 1/4 or 25%.",
        ),
        Key::new(
            "cores",
            CPUS,
            "4",
            "Cores, instead of `cpus`: with `threads_per_core` they make the virtual CPUs.",
        ),
        Key::new(
            "threads_per_core",
            Form::Whole { least: 1, most: 64 },
            "8",
            "Threads of each core; 1 when left out.",
        ),
        Key::required(
            "memory",
            Form::Either(&[SIZE, PART]),
            "512MiB",
            "Memory: a size, or a part of the host's as in 1/4 or 25%.",
        ),
        Key::new(
            "pin",
            Form::Either(&[Form::Words(|| vec!["auto"]), CPU_LIST]),
            "auto",
            "Hardware threads of the host for its virtual CPUs: `auto` for whole cores of its own, or a list.",
        ),
        Key::new(
            "apart",
            Form::Truth,
            "true",
            "Keeps domains that are not pinned off its cores.",
        ),
        Key::new(
            "numa",
            Form::Either(&[
                Form::Words(words::<Numa>),
                Form::Whole {
                    least: 0,
                    most: 1023,
                },
            ]),
            "local",
            "NUMA node of its CPUs and its memory: `local` for any one, or its number.",
        ),
        Key::new(
            "hugepages",
            SIZE,
            "2MiB",
            "Size of the huge pages its memory is made of.",
        ),
        Key::new(
            "emulator",
            CPU_LIST,
            "0-1",
            "Hardware threads for QEMU's own work; when left out, the host's reserve, else those of a pinned domain itself.",
        ),
        Key::new(
            "io_threads",
            Form::Whole { least: 1, most: 64 },
            "1",
            "Threads that serve its disks, beside the virtual CPUs.",
        ),
        Key::new(
            "shares",
            Form::Whole {
                least: 2,
                most: 10_000,
            },
            "2048",
            "Weight against other domains when CPUs are short; 1024 is the kernel's own.",
        ),
        Key::new(
            "quota",
            Form::Syntax("^[1-9][0-9]* ?%$"),
            "150%",
            "CPU time it may take, in percent of one hardware thread.",
        ),
        Key::new(
            "memory_limit",
            SIZE,
            "20GiB",
            "Memory of the host that it may take, QEMU's own included.",
        ),
    ],
);

/// A number, or a part of what the host has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Amount<T> {
    Absolute(T),
    Part(Part),
}

/// A part of what the host has, above nothing and at most all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Part {
    numerator: u64,
    denominator: u64,
}

/// How a domain's CPUs are to be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum PinSpec {
    Auto,
    List(CpuSet),
}

#[derive(Debug, Clone, Default)]
pub(in super::super) struct SplitSpec {
    /// None when it was not understood, or `cores` stand for it.
    pub cpus: Option<Written<Amount<u32>>>,
    /// Cores and threads of each.
    pub cores: Option<(Written<u32>, u32)>,
    pub memory: Option<Written<Amount<Bytes>>>,
    pub pin: Option<Written<PinSpec>>,
    pub apart: Option<Written<bool>>,
    pub numa: Option<Written<Numa>>,
    pub hugepages: Option<Written<Bytes>>,
    pub emulator: Option<Written<CpuSet>>,
    pub io_threads: Option<Written<u32>>,
    pub shares: Option<Written<u64>>,
    pub quota: Option<Written<u32>>,
    pub memory_limit: Option<Written<Bytes>>,
}

impl Part {
    /// This part of a number, rounded down.
    pub fn of(self, whole: u64) -> u64 {
        let part = u128::from(whole) * u128::from(self.numerator) / u128::from(self.denominator);
        u64::try_from(part).unwrap_or(u64::MAX)
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.numerator, self.denominator)
    }
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let form = || format!("{text:?} is no part: write it as in 1/4 or 25%");
        let number = |text: &str| -> Result<u64, String> {
            let digits = text.trim();
            match digits.bytes().all(|b| b.is_ascii_digit()) {
                true => digits.parse().map_err(|_| form()),
                false => Err(form()),
            }
        };
        let (numerator, denominator) = match text.split_once('/') {
            Some((above, below)) => (number(above)?, number(below)?),
            None => (number(text.strip_suffix('%').ok_or_else(form)?)?, 100),
        };
        if denominator == 0 || numerator == 0 {
            return Err(format!("{text:?} is no part of anything"));
        }
        if numerator > denominator {
            return Err(format!("{text:?} is more than all the host has"));
        }
        Ok(Self {
            numerator,
            denominator,
        })
    }
}

impl Word for Numa {
    const WORDS: &'static [(&'static str, Self)] = &[("local", Self::Local)];
}

/// Reads a split, when it is there and is a map.
pub(super) fn split(fields: &Fields<'_>) -> Option<SplitSpec> {
    let fields = fields.get("split")?.fields(&SPLIT)?;
    let get = |key: &str| fields.get(key);
    let number = |key: &str| {
        let at = get(key)?;
        written(&at, at.whole().map(|n| n as u32))
    };
    let (cpus, cores) = (get("cpus"), number("cores"));
    if get("cpus").is_none() && get("cores").is_none() {
        fields.need("cpus", "1");
    } else if get("cpus").is_some() && get("cores").is_some() {
        fields.one_of(&["cpus", "cores"]);
    }
    let threads = number("threads_per_core");
    if let (Some(at), None) = (get("threads_per_core"), get("cores")) {
        at.error(
            "threads of cores that are not given",
            "add cores, as in cores: 4, or use cpus alone",
        );
    }
    Some(SplitSpec {
        cpus: cpus.and_then(|at| self::cpus(&at)),
        cores: cores.map(|cores| (cores, threads.map_or(1, |threads| threads.value))),
        memory: get("memory").and_then(|at| memory(&at)),
        pin: get("pin").and_then(|at| pin(&at)),
        apart: get("apart").and_then(|at| written(&at, at.boolean())),
        numa: get("numa").and_then(|at| numa(&at)),
        hugepages: get("hugepages").and_then(|at| page_size(&at)),
        emulator: get("emulator").and_then(|at| at.parse("0-1")),
        io_threads: number("io_threads"),
        shares: get("shares").and_then(|at| written(&at, at.whole())),
        quota: get("quota").and_then(|at| quota(&at)),
        memory_limit: get("memory_limit").and_then(|at| size(&at, MEMORY_LEAST, "20GiB")),
    })
}

fn written<T>(at: &At<'_>, value: Option<T>) -> Option<Written<T>> {
    Some(Written {
        value: value?,
        spot: at.spot(),
    })
}

fn cpus(at: &At<'_>) -> Option<Written<Amount<u32>>> {
    let amount = match at.is_textual() {
        true => Amount::Part(at.parse::<Part>("1/4")?.value),
        false => Amount::Absolute(at.whole()? as u32),
    };
    written(at, Some(amount))
}

fn memory(at: &At<'_>) -> Option<Written<Amount<Bytes>>> {
    let is_part = at.is_textual() && at.text("512MiB")?.value.contains(['/', '%']);
    let amount = match is_part {
        true => Amount::Part(at.parse::<Part>("1/4")?.value),
        false => Amount::Absolute(size(at, MEMORY_LEAST, "512MiB")?.value),
    };
    written(at, Some(amount))
}

fn pin(at: &At<'_>) -> Option<Written<PinSpec>> {
    let pin = match at.is_text("auto") {
        true => PinSpec::Auto,
        false => PinSpec::List(at.parse("0-3,8, or auto")?.value),
    };
    written(at, Some(pin))
}

fn numa(at: &At<'_>) -> Option<Written<Numa>> {
    let numa = match at.is_textual() {
        true => at.word()?,
        false => Numa::Node(at.whole()? as u32),
    };
    written(at, Some(numa))
}

/// A size of huge pages: a power of two, as every processor has them.
pub(super) fn page_size(at: &At<'_>) -> Option<Written<Bytes>> {
    let size: Written<Bytes> = at.parse("2MiB")?;
    if !size.value.0.is_power_of_two() || size.value < Bytes(64 << 10) {
        at.error(
            format!("there are no huge pages of {}", size.value),
            "x86 has 2MiB and 1GiB",
        );
        return None;
    }
    Some(size)
}

fn quota(at: &At<'_>) -> Option<Written<u32>> {
    let text = at.text("150%")?;
    let percent = text.value.strip_suffix('%').map(str::trim_end);
    let percent = percent.and_then(|digits| digits.parse::<u32>().ok());
    match percent.filter(|percent| (1..=102_400).contains(percent)) {
        Some(percent) => written(at, Some(percent)),
        None => {
            at.error(
                format!("{:?} is no quota", text.value),
                "write percent of one hardware thread, as in 150%",
            );
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_round_down() {
        let of = |text: &str, whole| text.parse::<Part>().map(|part| part.of(whole));
        assert_eq!(of("1/4", 256), Ok(64));
        assert_eq!(of("25%", 10), Ok(2));
        assert_eq!(of("1/3", 2), Ok(0));
        assert_eq!(of("100%", 7), Ok(7));
        for text in ["", "1", "1/", "/2", "a/b", "-1/2", "1.5%", "%", "1/2/3"] {
            assert!(of(text, 1).unwrap_err().contains("no part:"), "{text}");
        }
        for (text, said) in [
            ("0%", "no part of anything"),
            ("1/0", "no part of anything"),
            ("3/2", "more than all"),
            ("101%", "more than all"),
        ] {
            assert!(of(text, 1).unwrap_err().contains(said), "{text}");
        }
    }
}
