//! SSH to guests, through the `ssh2` crate: the only place that knows it.

mod channel;
mod dialer;
mod error;
mod login;
mod remote;
mod session;

pub use dialer::Dialer;
pub use error::SshError;
pub use login::{Key, Login};
pub use remote::SshRemote;
