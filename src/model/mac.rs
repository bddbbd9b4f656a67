//! MAC addresses of vnets.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A unicast MAC address; text form is six lowercase hexadecimal pairs with colons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct MacAddr([u8; 6]);

/// Why a text is not the MAC address of a vnet.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ParseMacError {
    /// Not six pairs of hexadecimal digits with colons between.
    #[error("a MAC address is six pairs of hexadecimal digits, as in 52:54:00:12:34:56")]
    Form,
    /// The group bit is set.
    #[error("a vnet's MAC address must be unicast: the first byte must be even")]
    Multicast,
}

impl MacAddr {
    /// Derives a locally administered unicast address from 5 bytes, usually of a digest.
    pub const fn derived(bytes: [u8; 5]) -> Self {
        // 0x52 has the "locally administered" bit set and the "group" bit clear (IEEE 802, 8.2.2).
        Self([0x52, bytes[0], bytes[1], bytes[2], bytes[3], bytes[4]])
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl FromStr for MacAddr {
    type Err = ParseMacError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut bytes = [0; 6];
        let mut pairs = text.split(':');
        for byte in &mut bytes {
            let pair = pairs.next().ok_or(ParseMacError::Form)?;
            if pair.len() != 2 || !pair.bytes().all(|b| b.is_ascii_hexdigit()) {
                return Err(ParseMacError::Form);
            }
            *byte = u8::from_str_radix(pair, 16).map_err(|_| ParseMacError::Form)?;
        }
        if pairs.next().is_some() {
            return Err(ParseMacError::Form);
        }
        if bytes[0] & 1 == 1 {
            return Err(ParseMacError::Multicast);
        }
        Ok(Self(bytes))
    }
}

impl TryFrom<String> for MacAddr {
    type Error = ParseMacError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<MacAddr> for String {
    fn from(mac: MacAddr) -> Self {
        mac.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes_and_folds_case() {
        let mac: MacAddr = "52:54:00:AB:cd:01".parse().unwrap();
        assert_eq!(mac.to_string(), "52:54:00:ab:cd:01");
        assert_eq!(mac.to_string().parse(), Ok(mac));
    }

    #[test]
    fn refuses_other_forms() {
        for text in [
            "",
            "525400123456",
            "52:54:00:12:34",
            "52:54:00:12:34:56:78",
            "+2:54:00:12:34:56",
        ] {
            assert_eq!(text.parse::<MacAddr>(), Err(ParseMacError::Form), "{text}");
        }
        assert_eq!(
            "01:00:5e:00:00:01".parse::<MacAddr>(),
            Err(ParseMacError::Multicast)
        );
    }
}
