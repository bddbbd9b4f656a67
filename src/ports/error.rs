//! What can go wrong out there.

/// What kind of thing went wrong, which decides what is done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// Not there yet; asking again later may help.
    NotYet,
    /// A deadline passed.
    Timeout,
    /// The way to the thing broke; the thing itself may be well.
    Connection,
    /// It will not work, however often it is tried.
    Fatal,
    /// The user asked to stop.
    Cancelled,
}

/// An error of the outside world.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct PortError {
    /// The kind.
    pub kind: ErrorKind,
    /// What failed, as a fragment fit for "failed to …".
    pub what: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// Why.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl PortError {
    /// An error without a deeper cause.
    pub fn new(kind: ErrorKind, what: impl Into<String>) -> Self {
        Self {
            kind,
            what: what.into(),
            hint: None,
            source: None,
        }
    }

    /// A fatal error with its cause.
    pub fn fatal(
        what: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self {
            kind: ErrorKind::Fatal,
            what: what.into(),
            hint: None,
            source: Some(source.into()),
        }
    }

    /// The same with a cause.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The same with advice.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<std::io::Error> for PortError {
    fn from(error: std::io::Error) -> Self {
        // fs-err puts the verb and the path into the text.
        Self::fatal("use a file", error)
    }
}

/// An error with all its causes in one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |e| e.source());
    causes
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}
