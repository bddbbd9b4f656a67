//! The data that passes between the stages: no I/O, no clock, no randomness.
//!
//! Every later type is complete: optional fields that a person may leave out in a file are gone
//! by the time a value of this module exists.

mod digest;
mod domain;
mod event;
mod host;
mod impairment;
mod instance;
mod lab_paths;
mod mac;
mod metric;
mod name;
mod network_facts;
mod observed;
mod playbook;
mod rate;
mod secret;
mod settings;
mod split;
mod topology;
mod trial;
mod units;
mod vswitch;

pub use digest::{Digest, Digester, ParseDigestError};
pub use domain::{Domain, DomainKind, Endpoint, Guest};
pub use event::{Event, Level as EventLevel, Phase};
pub use host::{Acceleration, HostFacts};
pub use impairment::{Impairment, PortImpairment};
pub use instance::{DatabaseEngine, Instance};
pub use lab_paths::LabPaths;
pub use mac::{MacAddr, ParseMacError};
pub use metric::{Better, Metric, MetricSpec};
pub use name::{Name, ParseNameError};
pub use network_facts::{DeviceKind, NetworkDevice, NetworkFacts};
pub use observed::{
    DomainStats, DomainUses, Observed, ObservedDomain, ObservedNetwork, Reservation,
};
pub use playbook::{
    Design, Factor, Level, Order, Playbook, ServiceVerb, Step, StepAction, WaitFor,
};
pub use rate::{BitRate, Percent};
pub use secret::{LabSecret, Secrets};
pub use settings::{GuestSettings, Limit, LimitRange, ServiceState, User};
pub use split::Split;
pub use topology::{Disk, GuestFile, Image, ImageParts, ImageRecipe, ImageSource, Lab, Topology};
pub use trial::{Failure, FailureKind, Outcome, StepRecord, Trial};
pub use units::{Bytes, ParseUnitError, Seconds};
pub use vswitch::{Addressing, Vnet, VnetModel, Vswitch, VswitchMode};
