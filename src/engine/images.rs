//! Provides the images of a plan: the part of it that needs no host yet.

use std::sync::Arc;
use std::time::Instant;

use tokio::task::JoinSet;

use super::{Bus, Cancel};
use crate::model::{Event, Image};
use crate::plan::{ActionKind, Plan};
use crate::ports::{ErrorKind, ImageFiles, ImageStore, PortError, chain};

/// Finds, builds or imports all images that a plan provides, side by side; gives them in the plan's
/// order. When the user has had enough it returns at once; what builds then ends with this process.
///
/// # Errors
/// The first failure, in order of time.
pub async fn provide(
    images: &Arc<dyn ImageStore>,
    plan: &Plan,
    bus: &Bus,
    cancel: &Cancel,
) -> Result<Vec<(Image, ImageFiles)>, PortError> {
    let mut running = JoinSet::new();
    for (index, action) in plan.actions.iter().enumerate() {
        let ActionKind::EnsureImage { image, .. } = &action.kind else {
            continue;
        };
        let (images, bus, image) = (Arc::clone(images), bus.clone(), image.clone());
        bus.send(&Event::ActionStarted {
            action: index,
            title: action.title(),
            reason: action.reason.clone(),
            domain: None,
            long: action.is_long(),
        });
        running.spawn_blocking(move || {
            let began = Instant::now();
            let result = ensure(images.as_ref(), index, &image, &bus);
            bus.send(&match &result {
                Ok(_) => Event::ActionDone {
                    action: index,
                    seconds: began.elapsed().as_secs_f64(),
                },
                Err(error) => Event::ActionFailed {
                    action: index,
                    error: chain(error),
                },
            });
            result.map(|files| (index, image, files))
        });
    }
    let mut provided = Vec::new();
    loop {
        let ended = tokio::select! {
            ended = running.join_next() => ended,
            () = cancel.cancelled() => {
                return Err(PortError::new(ErrorKind::Cancelled, "interrupted"));
            }
        };
        let Some(ended) = ended else { break };
        provided.push(ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))?);
    }
    provided.sort_by_key(|(index, ..)| *index);
    Ok(provided
        .into_iter()
        .map(|(_, image, files)| (image, files))
        .collect())
}

/// Provides one image, and tells how that goes on.
pub(super) fn ensure(
    images: &dyn ImageStore,
    index: usize,
    image: &Image,
    bus: &Bus,
) -> Result<ImageFiles, PortError> {
    images.ensure(image, &|detail| {
        bus.send(&Event::ActionProgress {
            action: index,
            detail: detail.to_owned(),
        });
    })
}
