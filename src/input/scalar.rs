//! What scalars mean.

use serde_json::Value;

/// What a plain scalar means: serde_yaml decides. A number that JSON cannot hold comes out as null.
pub(super) fn meaning(text: &str) -> Value {
    // Most scalars are words; only these beginnings can be anything else.
    let other = |b: u8| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'~');
    let word = matches!(text.len(), 4 | 5);
    match text.bytes().next() {
        None => Value::Null,
        Some(first) if other(first) || word => match serde_yaml::from_str(text) {
            Ok(value @ (Value::Null | Value::Bool(_) | Value::Number(_))) => value,
            _ => Value::String(text.to_owned()),
        },
        Some(_) => Value::String(text.to_owned()),
    }
}

/// What a text means that stands alone, outside of YAML: where `meaning` has nothing to give, it is a
/// text.
pub(super) fn value(text: &str) -> Value {
    match meaning(text) {
        Value::Null if !is_null(text) || text.is_empty() => Value::String(text.to_owned()),
        value => value,
    }
}

/// Whether a plain scalar is YAML's null, written or left out.
pub(super) fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars_mean_what_yaml_1_2_says() {
        let cases = [
            ("1", Value::from(1)),
            ("-1.5", Value::from(-1.5)),
            ("1.0", Value::from(1.0)),
            ("0x1F", Value::from(31)),
            ("true", Value::Bool(true)),
            ("null", Value::Null),
            ("~", Value::Null),
            ("", Value::Null),
            ("yes", Value::from("yes")),
            ("off", Value::from("off")),
            ("0755", Value::from("0755")),
            ("12:34:56", Value::from("12:34:56")),
            ("10.10.0.1", Value::from("10.10.0.1")),
            ("2026-12-01", Value::from("2026-12-01")),
        ];
        for (text, value) in cases {
            assert_eq!(meaning(text), value, "{text}");
        }
    }

    #[test]
    fn a_value_of_the_command_line_is_never_lost() {
        for (text, wanted) in [
            ("100", Value::from(100)),
            ("true", Value::from(true)),
            ("~", Value::Null),
            ("", Value::from("")),
            (".nan", Value::from(".nan")),
            ("64M", Value::from("64M")),
            ("a: b", Value::from("a: b")),
        ] {
            assert_eq!(value(text), wanted, "{text}");
        }
    }
}
