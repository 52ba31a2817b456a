//! What a kind declares to join the suite.

use crate::{check::Census, point::Phase, stage::Stage};

/// The life of one object: how it is made, edited and deleted, and what has to be true of it.
///
/// Every function may fail by panicking: that fails the point which the life is for. An API server that is gone for a
/// moment is no reason to.
pub(crate) trait Life: Clone + Send + Sync + 'static {
    /// Name of the kind in reports.
    const KIND: &'static str;
    /// Whether a stage sees one life only, because the stage is what lives.
    const ENDS_ITS_STAGE: bool = false;
    /// The controllers that it is about; all, when none is named.
    const CONTROLLERS: &'static [&'static str] = &[];

    /// Makes what has to be there before, with an operator at work that nothing happens to.
    fn prepare(&self, stage: &Stage) -> impl Future<Output = ()> + Send;

    /// Declares the object.
    fn create(&self, stage: &Stage) -> impl Future<Output = ()> + Send;

    /// Changes it.
    fn edit(&self, stage: &Stage) -> impl Future<Output = ()> + Send;

    /// Deletes it.
    fn delete(&self, stage: &Stage) -> impl Future<Output = ()> + Send;

    /// Has it looked at without a change.
    fn nudge(&self, stage: &Stage) -> impl Future<Output = ()> + Send;

    /// Waits until the object says that it is as the phase declared it, or is gone.
    fn settled(&self, stage: &Stage, phase: Phase) -> impl Future<Output = ()> + Send;

    /// What there is more of while it lives.
    fn adds(&self) -> Census;

    /// What is wrong with what it stands for, while it lives.
    fn check(&self, stage: &Stage, phase: Phase) -> impl Future<Output = Result<(), String>> + Send;

    /// All that users can read of it.
    fn shown(&self, stage: &Stage) -> impl Future<Output = String> + Send;
}
