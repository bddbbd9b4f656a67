//! What was found about one thing.

use serde::Serialize;

/// How a thing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// As it should be.
    Good,
    /// Labs work, but slower or with less than they could.
    Poor,
    /// Not there: labs do not work, or those that need it.
    Missing,
}

/// What was found about one thing of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The thing.
    pub name: String,
    /// How it is.
    pub state: State,
    /// What was found.
    pub detail: String,
    /// What to do about it; none when nothing need be done.
    pub advice: Option<String>,
}

impl Finding {
    /// A thing that is as it should be.
    pub fn good(name: &str, detail: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            state: State::Good,
            detail: detail.into(),
            advice: None,
        }
    }

    /// A thing that could be better.
    pub fn poor(name: &str, detail: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            state: State::Poor,
            advice: Some(advice.into()),
            ..Self::good(name, detail)
        }
    }

    /// A thing that is not there.
    pub fn missing(name: &str, detail: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            state: State::Missing,
            ..Self::poor(name, detail, advice)
        }
    }
}
