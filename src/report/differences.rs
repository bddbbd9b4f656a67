//! What two locks do not agree on.

use super::number::count;
use super::table::Table;
use crate::archive::{Difference, DifferenceKind};
use crate::model::Digest;

/// Digits of a digest that are shown.
const SHORT: usize = 12;

/// Draws the differences between two locks; at most `width` columns wide where that is known.
pub fn differences_text(differences: &[Difference], width: Option<u16>) -> String {
    if differences.is_empty() {
        return "Nothing differs of all that is locked.\n".to_owned();
    }
    let inputs = differences
        .iter()
        .filter(|d| d.kind == DifferenceKind::Input)
        .count();
    let mut table = Table::new(
        ["differs", "first", "second", "is part of"].map(str::to_owned),
        width,
    )
    .left_aligned();
    for difference in differences {
        let part = match difference.kind {
            DifferenceKind::Input => "the experiment",
            DifferenceKind::Environment => "the environment",
        };
        let value =
            |value: &Option<String>| value.as_deref().map_or_else(|| "-".to_owned(), shorten);
        table.row([
            difference.leaf.clone(),
            value(&difference.before),
            value(&difference.after),
            part.to_owned(),
        ]);
    }
    let verdict = if inputs == 0 {
        "The experiment is the same; what it runs on is not.".to_owned()
    } else {
        format!(
            "It is another experiment: {} changed.",
            count(inputs, "input")
        )
    };
    format!("{}\n{verdict}\n", table.text())
}

/// A digest by its first digits; anything else as it is.
fn shorten(value: &str) -> String {
    value.parse::<Digest>().map_or_else(
        |_| value.to_owned(),
        |digest| format!("{}…", digest.short(SHORT)),
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::archive::Lock;
    use crate::archive::testing::lock;

    #[test]
    fn differences_say_what_they_mean() {
        let before = lock();
        let with = |changes: &[(&str, &str)]| {
            let changes: BTreeMap<_, _> = changes
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect();
            Lock::new(before.leaves.clone().into_iter().chain(changes).collect())
        };
        let input = Digest::of("version: 2\n").to_string();
        let both = with(&[
            ("host.acceleration", "kvm"),
            ("input.topologies/quickstart.yaml", &input),
            ("qemu", "9.2"),
        ]);
        insta::assert_snapshot!(differences_text(&before.diff(&both), None));
        let environment = differences_text(&before.diff(&with(&[("qemu", "9.2")])), None);
        assert!(
            environment.contains("The experiment is the same"),
            "{environment}"
        );
        assert!(differences_text(&before.diff(&before), None).contains("Nothing differs"));
    }
}
