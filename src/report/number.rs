//! Numbers and texts as people read them.

/// A value with its metric's unit in mind: a whole number without a unit is a count and has no point.
pub(super) fn figure(value: f64, unit: &str) -> String {
    if unit.is_empty() && value.fract() == 0.0 && value.abs() < 1e6 {
        return format!("{:.0}", value + 0.0); // + 0.0: not "-0"
    }
    number(value)
}

/// A number with four significant digits: `31.90`, `0.05120`, `12346`, `1.235e9`. Below a million the
/// digits before the point are never cut.
pub fn number(value: f64) -> String {
    const DIGITS: i32 = 4;
    let size = value.abs();
    if !value.is_finite() {
        return "-".to_owned();
    }
    if size == 0.0 {
        return "0".to_owned();
    }
    if !(1e-4..1e6).contains(&size) {
        return format!("{value:.3e}");
    }
    // Rounding may carry: 9.9999 is 10.00, which has its point elsewhere.
    let magnitude = size.log10().floor() as i32;
    let round = |decimals: i32| format!("{value:.0$}", decimals.max(0) as usize);
    let text = round(DIGITS - 1 - magnitude);
    let carried = text
        .parse::<f64>()
        .is_ok_and(|v| v.abs() >= 10_f64.powi(magnitude + 1));
    if carried {
        round(DIGITS - 2 - magnitude)
    } else {
        text
    }
}

/// A text without control characters: output of tools must not drive the terminal.
pub(super) fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if c == '\t' { ' ' } else { c })
        .flat_map(|c| {
            if c.is_control() {
                c.escape_default().collect()
            } else {
                vec![c]
            }
        })
        .collect()
}

/// `1 trial`, `2 trials`.
pub(super) fn count(n: usize, one: &str) -> String {
    if n == 1 {
        format!("1 {one}")
    } else {
        format!("{n} {one}s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_digits_that_mean_something() {
        let cases = [
            (31.9, "31.90"),
            (0.0512, "0.05120"),
            (9.99996, "10.00"),
            (99_999.6, "100000"),
            (12_345.67, "12346"),
            (-2.71849, "-2.718"),
            (5.0, "5.000"),
            (160_000.0, "160000"),
            (1_234_567_890.0, "1.235e9"),
            (0.000_012_345, "1.234e-5"),
            (0.0, "0"),
            (-0.0, "0"),
            (0.000_999_999, "0.001000"),
            (f64::INFINITY, "-"),
        ];
        for (value, expected) in cases {
            assert_eq!(number(value), expected, "{value:?}");
        }
        let counts = [
            (5.0, "", "5"),
            (-0.0, "", "0"),
            (5.5, "", "5.500"),
            (5.0, "ms", "5.000"),
        ];
        for (value, unit, expected) in counts {
            assert_eq!(figure(value, unit), expected);
        }
    }

    #[test]
    fn texts_cannot_drive_the_terminal() {
        assert_eq!(plain("a\x1b[2J\tü\r"), "a\\u{1b}[2J ü\\r");
    }
}
