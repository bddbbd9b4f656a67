//! Numbers as tools print them, and nothing that only looks like one.

/// Reads a plain decimal number: digits, perhaps a point and more digits, perhaps a sign and an
/// exponent. Refuses what [`str::parse`] takes beyond that (`inf`, `nan`) and what is not finite.
pub(super) fn decimal(text: &str) -> Option<f64> {
    let plain = text
        .bytes()
        .all(|b| matches!(b, b'0'..=b'9' | b'.' | b'+' | b'-' | b'e' | b'E'));
    if !plain || !text.ends_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    text.parse().ok().filter(|value: &f64| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_numbers_only() {
        for (text, value) in [
            ("0", 0.0),
            ("12.50", 12.5),
            ("-3", -3.0),
            ("1e3", 1000.0),
            ("2.5E-1", 0.25),
        ] {
            assert_eq!(decimal(text), Some(value), "{text}");
        }
        for text in [
            "", "nan", "-nan", "inf", "1,5", "1.", "1e", "12s", "1e999", "0x10", "--1", "1 2",
        ] {
            assert_eq!(decimal(text), None, "{text}");
        }
    }
}
