//! The data that passes between the stages: no I/O, no clock, no randomness.
//!
//! Every later type is complete: optional fields that a person may leave out in a file are gone
//! by the time a value of this module exists.

mod digest;
mod domain;
mod event;
mod host;
mod lab_paths;
mod mac;
mod metric;
mod name;
mod observed;
mod playbook;
mod secret;
mod split;
mod topology;
mod trial;
mod units;
mod workplace;

pub use digest::{Digest, Digester, ParseDigestError};
pub use domain::{Domain, DomainKind, Endpoint, Guest};
pub use event::{Event, Level as EventLevel, Phase};
pub use host::{Acceleration, HostFacts};
pub use lab_paths::LabPaths;
pub use mac::{MacAddr, ParseMacError};
pub use metric::{Better, Metric, MetricSpec};
pub use name::{Name, ParseNameError};
pub use observed::{
    DomainStats, DomainUses, Observed, ObservedDomain, ObservedMachine, ObservedNetwork,
    Reservation,
};
pub use playbook::{
    Design, Factor, Level, Order, Playbook, ServiceVerb, Step, StepAction, WaitFor,
};
pub use secret::{LabSecret, Secrets};
pub use split::Split;
pub use topology::{
    Disk, GuestFile, Image, ImageParts, ImageRecipe, ImageSource, Lab, Topology, Vnet, Vswitch,
    VswitchMode,
};
pub use trial::{Failure, FailureKind, Outcome, StepRecord, Trial};
pub use units::{Bytes, ParseUnitError, Seconds};
pub use workplace::Workplace;
