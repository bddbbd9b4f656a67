//! The same value in another unit of its kind.

use crate::model::Metric;

/// Units by kind, each as a fraction of the kind's first: `numerator / denominator` of them.
const KINDS: [&[(&str, f64, f64)]; 4] = [
    &[
        ("s", 1.0, 1.0),
        ("ms", 1e3, 1.0),
        ("us", 1e6, 1.0),
        ("ns", 1e9, 1.0),
        ("min", 1.0, 60.0),
    ],
    &[
        ("B", 1.0, 1.0),
        ("kB", 1.0, 1e3),
        ("MB", 1.0, 1e6),
        ("GB", 1.0, 1e9),
        ("KiB", 1.0, 1024.0),
        ("MiB", 1.0, 1_048_576.0),
        ("GiB", 1.0, 1_073_741_824.0),
    ],
    &[
        ("B/s", 1.0, 1.0),
        ("kB/s", 1.0, 1e3),
        ("MB/s", 1.0, 1e6),
        ("GB/s", 1.0, 1e9),
        ("KiB/s", 1.0, 1024.0),
        ("MiB/s", 1.0, 1_048_576.0),
        ("GiB/s", 1.0, 1_073_741_824.0),
        ("bit/s", 8.0, 1.0),
        ("kbit/s", 8.0, 1e3),
        ("Mbit/s", 8.0, 1e6),
        ("Gbit/s", 8.0, 1e9),
    ],
    &[("count", 1.0, 1.0), ("", 1.0, 1.0)],
];

/// The metric in `unit`; none when its own unit is of another kind or unknown.
pub fn convert(metric: &Metric, unit: &str) -> Option<Metric> {
    if metric.unit == unit {
        return Some(metric.clone());
    }
    KINDS.iter().find_map(|kind| {
        let (_, from_n, from_d) = kind.iter().find(|(name, ..)| *name == metric.unit)?;
        let (_, to_n, to_d) = kind.iter().find(|(name, ..)| *name == unit)?;
        let value = (metric.value * (from_d * to_n)) / (from_n * to_d);
        value.is_finite().then(|| Metric {
            name: metric.name.clone(),
            value,
            unit: unit.to_owned(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn converts_within_a_kind_only() {
        let converted = |value, from: &str, to: &str| {
            convert(
                &Metric {
                    name: "m".to_owned(),
                    value,
                    unit: from.to_owned(),
                },
                to,
            )
            .map(|metric| metric.value)
        };
        assert_eq!(converted(0.25, "s", "ms"), Some(250.0));
        assert_eq!(converted(250.0, "ms", "s"), Some(0.25));
        assert_eq!(converted(2.0, "min", "s"), Some(120.0));
        assert_eq!(converted(1.0, "MiB/s", "B/s"), Some(1_048_576.0));
        assert_eq!(converted(1.0, "MB/s", "Mbit/s"), Some(8.0));
        assert_eq!(converted(3.0, "count", ""), Some(3.0));
        assert_eq!(converted(3.0, "furlong", "furlong"), Some(3.0));
        assert_eq!(converted(3.0, "s", "B"), None);
        assert_eq!(converted(3.0, "B", "B/s"), None);
        assert_eq!(converted(3.0, "count", "1/s"), None);
    }
}
