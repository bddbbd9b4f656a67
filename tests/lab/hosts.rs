//! Hosts other than the embedded one of root.
