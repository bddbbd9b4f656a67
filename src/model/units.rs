//! Quantities with units: sizes in bytes, times in seconds.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A size in bytes. Text form is a whole number with a unit: `B`, `kB`, `MB`, `GB`, `TB` (powers
/// of 1000) or `KiB`, `MiB`, `GiB`, `TiB` (powers of 1024).
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(into = "String", try_from = "String")]
pub struct Bytes(pub u64);

/// A time span. Text form is a friendly duration with units, as in `30s`, `1m 30s` or `200ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Seconds(pub Duration);

/// Why a text is not a quantity.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ParseUnitError {
    /// A number stands alone.
    #[error("{0} has no unit: write {0}{1}, say")]
    NoUnit(String, &'static str),
    /// The unit is not one of ours.
    #[error("unknown unit {unit:?} in {text:?}: use one of {known}")]
    UnknownUnit {
        /// The whole text.
        text: String,
        /// The part read as the unit.
        unit: String,
        /// The units that are known.
        known: &'static str,
    },
    /// Not a number, negative, or a fraction of a byte.
    #[error("{0:?} is not a quantity: write a number and a unit, as in {1}")]
    Form(String, &'static str),
    /// Does not fit.
    #[error("{0:?} is too large")]
    TooLarge(String),
}

const SIZE_UNITS: [(&str, u64); 9] = [
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

impl Bytes {
    /// `n` MiB.
    pub const fn mib(n: u64) -> Self {
        Self(n << 20)
    }

    /// Whole KiB, rounded up: what libvirt counts memory in.
    pub const fn kib_rounded_up(self) -> u64 {
        self.0.div_ceil(1 << 10)
    }
}

/// A whole number with one of `units`, as the unit's value times the number. `example` is a whole
/// quantity, `usual` the unit that is offered where there is none, `known` what is said of all units.
pub(super) fn quantity(
    text: &str,
    units: &[(&str, u64)],
    (example, usual, known): (&'static str, &'static str, &'static str),
) -> Result<u64, ParseUnitError> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim_start();
    if number.is_empty() {
        return Err(ParseUnitError::Form(text.to_owned(), example));
    }
    if unit.is_empty() {
        return Err(ParseUnitError::NoUnit(number.to_owned(), usual));
    }
    if !unit.bytes().all(|b| b.is_ascii_alphabetic() || b == b'/') {
        return Err(ParseUnitError::Form(text.to_owned(), example));
    }
    let Some((_, factor)) = units.iter().find(|(name, _)| *name == unit) else {
        return Err(ParseUnitError::UnknownUnit {
            text: text.to_owned(),
            unit: unit.to_owned(),
            known,
        });
    };
    let product = number
        .parse::<u64>()
        .ok()
        .and_then(|n| n.checked_mul(*factor));
    product.ok_or_else(|| ParseUnitError::TooLarge(text.to_owned()))
}

impl FromStr for Bytes {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = "B, kB, MB, GB, TB (x1000), KiB, MiB, GiB, TiB (x1024)";
        quantity(text, &SIZE_UNITS, ("2GiB", "MiB", known)).map(Self)
    }
}

impl fmt::Display for Bytes {
    /// The shortest exact form: the largest binary unit that divides the size, else bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, factor) = SIZE_UNITS
            .iter()
            .filter(|(name, _)| name.ends_with("iB") || *name == "B")
            .rev()
            .find(|(_, factor)| self.0 >= *factor && self.0.is_multiple_of(*factor))
            .copied()
            .unwrap_or(("B", 1));
        f.pad(&format!("{}{name}", self.0 / factor))
    }
}

impl FromStr for Seconds {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let trimmed = text.trim();
        if !trimmed.is_empty() && trimmed.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
            return Err(ParseUnitError::NoUnit(trimmed.to_owned(), "s"));
        }
        let form = || ParseUnitError::Form(text.to_owned(), "30s or 1m 30s");
        let span: jiff::SignedDuration = trimmed.parse().map_err(|_| form())?;
        Duration::try_from(span).map(Self).map_err(|_| form())
    }
}

impl From<Seconds> for Duration {
    fn from(seconds: Seconds) -> Self {
        seconds.0
    }
}

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::SignedDuration::try_from(self.0) {
            Ok(span) => f.pad(&format!("{span:#}")),
            Err(_) => f.pad(&format!("{}s", self.0.as_secs())),
        }
    }
}

macro_rules! text_conversions {
    ($($type:ty),*) => {$(
        impl TryFrom<String> for $type {
            type Error = ParseUnitError;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }

        impl From<$type> for String {
            fn from(value: $type) -> Self {
                value.to_string()
            }
        }
    )*};
}
text_conversions!(Bytes, Seconds);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_and_decimal_units_differ() {
        assert_eq!("1GiB".parse(), Ok(Bytes(1 << 30)));
        assert_eq!("1 GB".parse(), Ok(Bytes(1_000_000_000)));
        assert_eq!("512MiB".parse::<Bytes>().unwrap().to_string(), "512MiB");
        assert_eq!(Bytes(1_000_000_000).to_string(), "1000000000B");
    }

    #[test]
    fn a_size_needs_a_known_unit() {
        use ParseUnitError as E;
        assert!(matches!("10".parse::<Bytes>(), Err(E::NoUnit(..))));
        assert!(matches!("10G".parse::<Bytes>(), Err(E::UnknownUnit { .. })));
        assert!(matches!(
            "10gb".parse::<Bytes>(),
            Err(E::UnknownUnit { .. })
        ));
        assert!(matches!("-1GiB".parse::<Bytes>(), Err(E::Form(..))));
        assert!(matches!("1.5GiB".parse::<Bytes>(), Err(E::Form(..))));
        assert!(matches!(
            "99999999999TiB".parse::<Bytes>(),
            Err(E::TooLarge(_))
        ));
    }

    #[test]
    fn a_time_needs_a_unit() {
        assert_eq!("1m 30s".parse(), Ok(Seconds(Duration::from_secs(90))));
        assert_eq!("200ms".parse(), Ok(Seconds(Duration::from_millis(200))));
        assert!(matches!(
            "30".parse::<Seconds>(),
            Err(ParseUnitError::NoUnit(..))
        ));
        assert!("-3s".parse::<Seconds>().is_err());
    }
}
