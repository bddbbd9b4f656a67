//! A connection to a libvirtd.

use virt::connect::Connect;

use super::LibvirtError;

/// A connection to a libvirtd; calls of several threads run side by side on it.
pub struct Connection {
    connect: Connect,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// When the URI has a NUL (virt 0.5.0 would panic) or libvirt refuses.
    pub fn open(uri: &str) -> Result<Self, LibvirtError> {
        if uri.contains('\0') {
            return Err(LibvirtError::Uri(uri.to_owned()));
        }
        // libvirt prints every error to stderr by itself; ours are shown in one place.
        virt::error::clear_error_callback();
        let connect =
            Connect::open(Some(uri)).map_err(LibvirtError::call(format!("connect to {uri}")))?;
        Ok(Self { connect })
    }

    pub(super) fn get(&self) -> &Connect {
        &self.connect
    }

    /// The libvirtd's version as libvirt counts: 1,000,000 * major + 1,000 * minor + release.
    pub(super) fn number(&self) -> Result<u32, LibvirtError> {
        self.connect
            .lib_version()
            .map_err(LibvirtError::call("ask for libvirt's version"))
    }

    /// libvirt's version, as in `9.0.0`.
    ///
    /// # Errors
    /// When the connection is gone.
    pub fn version(&self) -> Result<String, LibvirtError> {
        let version = self.number()?;
        Ok(format!(
            "{}.{}.{}",
            version / 1_000_000,
            version / 1_000 % 1_000,
            version % 1_000
        ))
    }
}
