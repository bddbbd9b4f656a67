//! What libvirt says when it refuses.

use virt::error::ErrorNumber;

use crate::ports::{ErrorKind, PortError};

/// Why a call to libvirt, or a file it needs, failed.
#[derive(Debug, thiserror::Error)]
pub enum LibvirtError {
    /// The URI cannot be passed to libvirt.
    #[error("use {0:?} as a libvirt URI: it has a NUL character")]
    Uri(String),
    /// libvirt refused.
    #[error("{call}")]
    Call {
        /// What was asked.
        call: String,
        /// Its answer.
        source: virt::error::Error,
    },
    /// libvirt gave XML that is none.
    #[error("read the definition of {name}")]
    Xml {
        /// Of what.
        name: String,
        /// Why.
        source: roxmltree::Error,
    },
    /// An object of this name exists and is not of this lab.
    #[error("take over {kind} {name}: it belongs to {owner}")]
    Foreign {
        /// `domain` or `network`.
        kind: &'static str,
        /// Its name.
        name: String,
        /// Whose it is.
        owner: String,
    },
    /// A file could not be used; fs-err names it.
    #[error("use the lab's files")]
    File(#[from] std::io::Error),
}

impl LibvirtError {
    /// A refused call.
    pub(super) fn call(call: impl Into<String>) -> impl FnOnce(virt::error::Error) -> Self {
        let call = call.into();
        |source| Self::Call { call, source }
    }

    /// Whether libvirt does not know the object.
    pub(super) fn is_not_found(error: &virt::error::Error) -> bool {
        error
            .code()
            .is_known_and(|code| matches!(code, ErrorNumber::NoDomain | ErrorNumber::NoNetwork))
    }

    fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Call { source, .. } => {
                let text = source.message();
                if text.contains("Permission denied") {
                    Some(
                        "the user QEMU runs as must be able to read the image and to search every directory above it",
                    )
                } else if text.contains("emulator") || text.contains("domain type") {
                    Some("`labrig host doctor` shows what this host lacks")
                } else {
                    None
                }
            }
            Self::Foreign { .. } => Some("give this lab another name with --name"),
            _ => None,
        }
    }
}

impl From<LibvirtError> for PortError {
    fn from(error: LibvirtError) -> Self {
        let hint = error.hint();
        let what = error.to_string();
        let kind = ErrorKind::Fatal;
        let source = match error {
            // Its text alone: the numbers around it say nothing to people.
            LibvirtError::Call { source, .. } => Some(without_command(source.message()).into()),
            LibvirtError::Xml { source, .. } => Some(source.into()),
            LibvirtError::File(source) => Some(source.into()),
            _ => None,
        };
        Self {
            kind,
            what,
            hint: hint.map(ToOwned::to_owned),
            source,
        }
    }
}

/// The same without the command line that libvirt repeats of a program that failed: QEMU's has
/// thousands of characters, and hides what happened.
fn without_command(message: &str) -> String {
    const BEFORE: &str = "Child process (";
    const AFTER: &str = ") unexpected";
    let cut = || {
        let begin = message.find(BEFORE)? + BEFORE.len();
        let end = begin + message[begin..].rfind(AFTER)?;
        let mut words = message[begin..end].split_whitespace();
        // Settings of the environment come before the program.
        let program = words.find(|word| !word.contains('='))?;
        Some(format!(
            "{}{program} …{}",
            &message[..begin],
            &message[end..]
        ))
    };
    cut().unwrap_or_else(|| message.to_owned())
}

#[cfg(test)]
mod tests {
    use super::without_command;

    #[test]
    fn a_message_does_not_hide_behind_a_command_line() {
        let long = "internal error: Child process (LC_ALL=C PATH=/bin /usr/bin/qemu-system-x86_64 -name a -m (1)) unexpected exit status 1: no room";
        assert_eq!(
            without_command(long),
            "internal error: Child process (/usr/bin/qemu-system-x86_64 …) unexpected exit status 1: no room"
        );
        for other in [
            "no domain",
            "Child process (",
            ") unexpected Child process (",
        ] {
            assert_eq!(without_command(other), other);
        }
    }
}
