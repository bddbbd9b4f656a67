//! The data that passes between the stages: no I/O, no clock, no randomness.
//!
//! Every later type is complete: optional fields that a person may leave out in a file are gone
//! by the time a value of this module exists.

mod cpu_set;
mod digest;
mod disk;
mod domain;
mod event;
mod host;
mod host_shape;
mod image;
mod impairment;
mod instance;
mod lab_paths;
mod mac;
mod machine;
mod metric;
mod name;
mod network_facts;
mod observed;
mod placement;
mod playbook;
mod rate;
mod secret;
mod settings;
mod split;
mod topology;
mod trial;
mod units;
mod vswitch;

pub use cpu_set::{CpuSet, ParseCpuSetError};
pub use digest::{Digest, Digester, ParseDigestError};
pub use disk::{Disk, DiskCache, DiskFormat, DiskSource, Filesystem, IoLimits, Medium, Mount};
pub use domain::{Domain, DomainKind, Endpoint, Guest};
pub use event::{Event, Level as EventLevel, Phase};
pub use host::{Acceleration, HostFacts};
pub use host_shape::{HostCore, HostNode, HostShape, HostThread, HugePages, RegularHost};
pub use image::{BuildFile, FileContent, Image, ImageParts, ImageRecipe, ImageSource};
pub use impairment::{Impairment, PortImpairment};
pub use instance::{DatabaseEngine, Instance};
pub use lab_paths::{LabPaths, RAM};
pub use mac::{MacAddr, ParseMacError};
pub use machine::{CpuTopology, Firmware, GuestCpu, Machine, Platform, UefiImage};
pub use metric::{Better, Metric, MetricSpec};
pub use name::{Name, ParseNameError};
pub use network_facts::{DeviceKind, NetworkDevice, NetworkFacts};
pub use observed::{
    DomainStats, DomainUses, Observed, ObservedDomain, ObservedNetwork, Reservation,
};
pub use placement::{Misplaced, Placement};
pub use playbook::{
    Design, Factor, Level, Order, Playbook, ServiceVerb, Step, StepAction, WaitFor,
};
pub use rate::{BitRate, Percent};
pub use secret::{LabSecret, Secrets};
pub use settings::{GuestSettings, Limit, LimitRange, ServiceState, User};
pub use split::{QEMU_OVERHEAD, Quota, Split};
pub use topology::{GuestFile, Lab, LabHost, Topology};
pub use trial::{Failure, FailureKind, Outcome, StepRecord, Trial};
pub use units::{Bytes, ParseUnitError, Seconds};
pub use vswitch::{Addressing, Vnet, VnetModel, Vswitch, VswitchMode};
