//! "Did you mean": the nearest of the words that would have been right.

/// How many candidates are compared, so that thousands of slips among thousands of names stay quick.
const COMPARED: usize = 200;

/// The candidate nearest to `word`, when it is near enough to be a slip.
pub(super) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    // Comparing is quadratic in the length; nobody slips in a word this long.
    if word.len() > 64 {
        return None;
    }
    let lower = word.to_lowercase();
    candidates
        .into_iter()
        .take(COMPARED)
        .filter(|c| c.len().abs_diff(word.len()) <= word.len() / 3 + 1)
        .map(|c| (strsim::damerau_levenshtein(&lower, &c.to_lowercase()), c))
        .filter(|(distance, c)| *distance <= (c.len().min(word.len()) / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, c)| c)
}

/// Advice for a word that is not one of `candidates`: the nearest, else some of them.
pub(super) fn advice<'a>(
    word: &str,
    what: &str,
    candidates: impl IntoIterator<Item = &'a str> + Clone,
) -> String {
    if let Some(near) = nearest(word, candidates.clone()) {
        return format!("did you mean {near:?}?");
    }
    let all: Vec<&str> = candidates.into_iter().collect();
    match all.len() {
        0 => format!("there are no {what}"),
        1..=12 => format!("{what}: {}", all.join(", ")),
        n => format!("{what}: {}, … ({n} in all)", all[..10].join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_slips_only() {
        let words = ["subnet", "mode", "mtu"];
        assert_eq!(nearest("subnett", words), Some("subnet"));
        assert_eq!(nearest("MTU", words), Some("mtu"));
        assert_eq!(nearest("bandwidth", words), None);
        assert_eq!(advice("x", "keys", words), "keys: subnet, mode, mtu");
    }
}
