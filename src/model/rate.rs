//! Quantities of a link: bits in a second, and the part of its frames that is lost.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::ParseUnitError;
use super::units::quantity;

/// A rate in bits a second. Text form is a whole number with a unit: `bit/s`, `kbit/s`, `Mbit/s`
/// or `Gbit/s` (powers of 1000).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct BitRate(pub u64);

/// A part of a whole, in millionths. Text form is a number with at most four decimals and `%`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Percent(u32);

const RATE_UNITS: [(&str, u64); 4] = [
    ("bit/s", 1),
    ("kbit/s", 1_000),
    ("Mbit/s", 1_000_000),
    ("Gbit/s", 1_000_000_000),
];

/// Millionths in one percent.
const ONE_PERCENT: u64 = 10_000;
const PERCENT_EXAMPLE: &str = "0.1%";

impl FromStr for BitRate {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = "bit/s, kbit/s, Mbit/s, Gbit/s (x1000; a byte has 8 bits)";
        quantity(text.trim(), &RATE_UNITS, ("100Mbit/s", "Mbit/s", known)).map(Self)
    }
}

impl fmt::Display for BitRate {
    /// The shortest exact form.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, factor) = RATE_UNITS
            .iter()
            .rev()
            .find(|(_, factor)| self.0 >= *factor && self.0.is_multiple_of(*factor))
            .copied()
            .unwrap_or(RATE_UNITS[0]);
        f.pad(&format!("{}{name}", self.0 / factor))
    }
}

impl Percent {
    /// `n` millionths; more than a whole is a whole.
    pub fn millionths(n: u32) -> Self {
        Self(n.min(1_000_000))
    }

    /// In millionths.
    pub const fn as_millionths(self) -> u32 {
        self.0
    }

    /// The part that at least one of two independent parts takes.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let whole = 1_000_000_u64;
        let (a, b) = (u64::from(self.0), u64::from(other.0));
        let left = (whole - a) * (whole - b) / whole;
        Self(u32::try_from(whole - left).unwrap_or(u32::MAX))
    }
}

impl FromStr for Percent {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let form = || ParseUnitError::Form(text.to_owned(), PERCENT_EXAMPLE);
        let trimmed = text.trim();
        let Some(number) = trimmed.strip_suffix('%').map(str::trim_end) else {
            return Err(match trimmed.parse::<f64>() {
                Ok(_) => ParseUnitError::NoUnit(trimmed.to_owned(), "%"),
                Err(_) => form(),
            });
        };
        let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(decimals) || decimals.len() > 4 {
            return Err(form());
        }
        let too_large = || ParseUnitError::TooLarge(text.to_owned());
        let whole: u64 = whole.parse().map_err(|_| too_large())?;
        let decimals: u64 = format!("{decimals:0<4}").parse().map_err(|_| form())?;
        let millionths = whole
            .checked_mul(ONE_PERCENT)
            .and_then(|n| n.checked_add(decimals))
            .filter(|n| *n <= 100 * ONE_PERCENT)
            .ok_or_else(too_large)?;
        u32::try_from(millionths).map(Self).map_err(|_| too_large())
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (
            u64::from(self.0) / ONE_PERCENT,
            u64::from(self.0) % ONE_PERCENT,
        );
        let decimals = format!("{rest:04}");
        match decimals.trim_end_matches('0') {
            "" => f.pad(&format!("{whole}%")),
            decimals => f.pad(&format!("{whole}.{decimals}%")),
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
text_conversions!(BitRate, Percent);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_reads_what_it_writes() {
        for (text, bits, shown) in [
            ("1Gbit/s", 1_000_000_000, "1Gbit/s"),
            ("1500 kbit/s", 1_500_000, "1500kbit/s"),
            ("1000Mbit/s", 1_000_000_000, "1Gbit/s"),
            ("0bit/s", 0, "0bit/s"),
        ] {
            let rate: BitRate = text.parse().unwrap();
            assert_eq!((rate.0, rate.to_string().as_str()), (bits, shown));
        }
    }

    #[test]
    fn a_rate_says_bits_and_seconds() {
        use ParseUnitError as E;
        assert!(matches!("100".parse::<BitRate>(), Err(E::NoUnit(..))));
        for unit in ["100M", "100Mbit", "100MB/s", "100mbit/s", "100 Mbps"] {
            assert!(
                matches!(unit.parse::<BitRate>(), Err(E::UnknownUnit { .. })),
                "{unit}"
            );
        }
        for form in ["", "-1Mbit/s", "1.5Gbit/s"] {
            assert!(
                matches!(form.parse::<BitRate>(), Err(E::Form(..))),
                "{form}"
            );
        }
        assert!(matches!(
            "99999999999Gbit/s".parse::<BitRate>(),
            Err(E::TooLarge(_))
        ));
    }

    #[test]
    fn a_percentage_reads_what_it_writes() {
        for (text, millionths, shown) in [
            ("0.1%", 1_000, "0.1%"),
            ("100%", 1_000_000, "100%"),
            ("12.0050 %", 120_050, "12.005%"),
        ] {
            let part: Percent = text.parse().unwrap();
            assert_eq!(
                (part.as_millionths(), part.to_string().as_str()),
                (millionths, shown)
            );
        }
    }

    #[test]
    fn a_percentage_is_a_part_of_a_whole() {
        use ParseUnitError as E;
        assert!(matches!("0.1".parse::<Percent>(), Err(E::NoUnit(..))));
        for form in ["", "%", ".5%", "1.%", "-1%", "1.00001%", "1e1%", "a"] {
            assert!(
                matches!(form.parse::<Percent>(), Err(E::Form(..))),
                "{form}"
            );
        }
        for large in ["100.0001%", "99999999999999999999%"] {
            assert!(
                matches!(large.parse::<Percent>(), Err(E::TooLarge(_))),
                "{large}"
            );
        }
    }

    #[test]
    fn losses_on_one_way_do_not_add_up() {
        let part = |text: &str| text.parse::<Percent>().unwrap();
        assert_eq!(part("10%").or(part("10%")), part("19%"));
        assert_eq!(part("100%").or(part("1%")), part("100%"));
        assert_eq!(part("0%").or(part("0.1%")), part("0.1%"));
    }
}
