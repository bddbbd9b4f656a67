//! The one place where errors become text for people and exit codes for scripts.

use std::process::ExitCode;

use crate::archive::ArchiveError;
use crate::backend::embedded::EmbeddedError;
use crate::backend::libvirt::LibvirtError;
use crate::diag::Notes;
use crate::engine::{ApplyError, EngineError};
use crate::ports::{ErrorKind, PortError};

/// What kind of end it was; README.md documents the codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The command line is wrong.
    Usage,
    /// An input is wrong; nothing was created.
    Input,
    /// The host or a guest failed.
    Host,
    /// The user interrupted.
    Interrupted,
    /// labrig itself is wrong.
    Bug,
}

impl Kind {
    pub(super) const fn code(self) -> u8 {
        match self {
            Self::Usage => 2,
            Self::Input => 3,
            Self::Host => 4,
            Self::Interrupted => 5,
            Self::Bug => 70, // EX_SOFTWARE of sysexits.h
        }
    }

    pub(super) fn exit_code(self) -> ExitCode {
        ExitCode::from(self.code())
    }
}

/// An end that is not good: its kind, its causes, and what to do about it.
#[derive(Debug)]
pub(super) struct Failure {
    kind: Kind,
    error: anyhow::Error,
    hints: Vec<String>,
    /// Lines that help to understand it: a console's last ones.
    context: Vec<String>,
    notes: Option<Notes>,
}

pub(super) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    pub(super) fn new(kind: Kind, error: impl Into<anyhow::Error>) -> Self {
        Self {
            kind,
            error: error.into(),
            hints: Vec::new(),
            context: Vec::new(),
            notes: None,
        }
    }

    pub(super) fn usage(message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, anyhow::Error::msg(message.into()))
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The same with advice on what an interrupted command leaves, unless there is better advice.
    pub(super) fn leaving(self, left: &str) -> Self {
        if self.kind == Kind::Interrupted && self.hints.is_empty() {
            self.hint(left)
        } else {
            self
        }
    }

    /// The error with its causes in one line.
    pub(super) fn line(&self) -> String {
        let chain: Vec<_> = self.error.chain().map(ToString::to_string).collect();
        chain.join(": ")
    }

    /// Says it: in text with causes and hints, or as one JSON object, on standard error.
    pub(super) fn report(self, json: bool) -> ExitCode {
        let causes: Vec<String> = self
            .error
            .chain()
            .skip(1)
            .map(ToString::to_string)
            .collect();
        if json {
            let object = serde_json::json!({
                "error": self.error.to_string(),
                "causes": causes,
                "hints": self.hints,
                "context": self.context,
                "notes": self.notes,
            });
            eprintln!("{object}");
        } else if let Some(notes) = &self.notes {
            super::output::print_notes(notes);
        } else {
            if self.kind == Kind::Interrupted {
                eprintln!("interrupted"); // by the user, who knows why
            } else {
                eprintln!("error: failed to {}", self.error);
                for cause in &causes {
                    eprintln!("  because: {cause}");
                }
            }
            for line in &self.context {
                eprintln!("  | {line}");
            }
            for hint in &self.hints {
                eprintln!("  hint: {hint}");
            }
        }
        self.kind.exit_code()
    }
}

impl From<Notes> for Failure {
    fn from(notes: Notes) -> Self {
        let mut failure = Self::new(
            Kind::Input,
            anyhow::Error::msg("take the input: it has errors"),
        );
        failure.notes = Some(notes);
        failure
    }
}

impl From<PortError> for Failure {
    fn from(mut error: PortError) -> Self {
        let kind = if error.kind == ErrorKind::Cancelled {
            Kind::Interrupted
        } else {
            Kind::Host
        };
        let hint = error.hint.take();
        let mut failure = Self::new(kind, error);
        failure.hints.extend(hint);
        failure
    }
}

impl From<ApplyError> for Failure {
    fn from(mut error: ApplyError) -> Self {
        let kind = if error.is_cancelled() {
            Kind::Interrupted
        } else {
            Kind::Host
        };
        let hint = error.source.hint.take();
        let mut context = std::mem::take(&mut error.console);
        if let (Some(domain), false) = (&error.domain, context.is_empty()) {
            context.insert(0, format!("the last lines of {domain}'s console:"));
        }
        let mut failure = Self::new(kind, error);
        failure.hints.extend(hint);
        failure.context = context;
        failure
    }
}

impl From<ArchiveError> for Failure {
    fn from(error: ArchiveError) -> Self {
        let hint = error.hint();
        let kind = match &error {
            ArchiveError::Io { .. } | ArchiveError::InUse { .. } | ArchiveError::Index { .. } => {
                Kind::Host
            }
            _ => Kind::Input,
        };
        let mut failure = Self::new(kind, anyhow::Error::new(error).context("use the archive"));
        failure.hints.extend(hint);
        failure
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        let kind = match &error {
            EngineError::Cancelled(_) => Kind::Interrupted,
            EngineError::Render { .. } => Kind::Input,
            EngineError::Task(_) => Kind::Bug,
            _ => Kind::Host,
        };
        Self::new(kind, error)
    }
}

impl From<EmbeddedError> for Failure {
    fn from(error: EmbeddedError) -> Self {
        Self::new(Kind::Host, error).hint("`labrig host doctor` shows what this host lacks")
    }
}

impl From<LibvirtError> for Failure {
    fn from(error: LibvirtError) -> Self {
        PortError::from(error).into()
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new(Kind::Host, anyhow::Error::new(error).context("use a file"))
    }
}
