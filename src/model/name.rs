//! Names of labs, domains, vswitches and other things that become file and object names.

use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A name that is safe as a file name, a host name label (RFC 1123) and part of a libvirt name:
/// 1 to 40 characters of `a-z`, `0-9` and `-`, that starts with a letter and does not end in `-`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Name(String);

/// Why a text is not a name.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ParseNameError {
    /// Empty or over the limit.
    #[error("a name has 1 to {max} characters, this has {0}", max = Name::MAX)]
    Length(usize),
    /// A character that is not allowed where it stands.
    #[error(
        "a name holds a-z, 0-9 and -, starts with a letter and does not end in -; {0:?} is not allowed here"
    )]
    Character(char),
}

impl Name {
    /// The longest name, in characters: it leaves room in a 63-character host name label.
    pub const MAX: usize = 40;

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = ParseNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let length = text.chars().count();
        if length == 0 || length > Self::MAX {
            return Err(ParseNameError::Length(length));
        }
        for (i, c) in text.chars().enumerate() {
            let allowed = match c {
                'a'..='z' => true,
                '0'..='9' => i > 0,
                '-' => i > 0 && i + 1 < length,
                _ => false,
            };
            if !allowed {
                return Err(ParseNameError::Character(c));
            }
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for Name {
    type Error = ParseNameError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl std::borrow::Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_plain_names_only() {
        for good in ["db", "dom1", "web-2", "a"] {
            assert!(good.parse::<Name>().is_ok(), "{good}");
        }
        for bad in [
            "",
            "1db",
            "-a",
            "a-",
            "../x",
            "a/b",
            "a.b",
            "Db",
            "a_b",
            "ü",
            &"a".repeat(41),
        ] {
            assert!(bad.parse::<Name>().is_err(), "{bad}");
        }
    }
}
