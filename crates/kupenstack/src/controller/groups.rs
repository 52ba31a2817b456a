//! The controllers of one account: they work together, and under one lease.

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use kupenstack_runtime::Context;

use super::{Named, Selection};
use crate::{
    cli::ControllerArgs,
    rbac::{self, Account},
};

/// The selected controllers of an account, with what they need that does not watch anything.
pub(super) struct Group {
    account: &'static Account,
    selection: Selection,
    kind: Kind,
}

enum Kind {
    Cloud(kupenstack_deployment::Settings),
    Resources(Box<kupenstack_resources::Settings>),
}

impl Group {
    /// The groups of which something is selected. Fails where their controllers could not work, so that a standby which
    /// could not take over says so before it has to.
    pub(super) async fn prepare(args: &ControllerArgs, selection: &Selection) -> anyhow::Result<Vec<Self>> {
        let mut groups = Vec::new();
        if selection.any_of(&rbac::CLOUD) {
            let kind = Kind::Cloud(cloud(args).await?);
            groups.push(Self { account: &rbac::CLOUD, selection: selection.clone(), kind });
        }
        if selection.any_of(&rbac::RESOURCES) {
            let kind = Kind::Resources(Box::new(resources(args).await?));
            groups.push(Self { account: &rbac::RESOURCES, selection: selection.clone(), kind });
        }
        Ok(groups)
    }

    pub(super) fn name(&self) -> &'static str {
        self.account.name()
    }

    /// The name of the lease that the group works under.
    pub(super) fn lease(&self) -> String {
        self.account.lease().to_owned()
    }

    /// The selected controllers. Watches begin here.
    pub(super) fn controllers(&self, context: &Context) -> anyhow::Result<Vec<Named>> {
        let all = match &self.kind {
            Kind::Cloud(settings) => kupenstack_deployment::controllers(context, settings),
            Kind::Resources(settings) => {
                kupenstack_resources::controllers(context, settings).context("prepare the resource controllers")?
            }
        };
        self.selection.pick(self.account, all)
    }
}

async fn cloud(args: &ControllerArgs) -> anyhow::Result<kupenstack_deployment::Settings> {
    let helm = kupenstack_helm::Cli::new(kupenstack_helm::Settings::from_env()).await.context("find helm")?;
    Ok(kupenstack_deployment::Settings {
        helm: Arc::new(helm),
        charts: args.charts.clone(),
        cloud_namespace: args.cloud_namespace.clone(),
        prober: Arc::new(kupenstack_deployment::Requests),
        patience: kupenstack_deployment::Patience::default(),
    })
}

async fn resources(args: &ControllerArgs) -> anyhow::Result<kupenstack_resources::Settings> {
    let work_dir = args.work_dir.clone();
    tokio::fs::create_dir_all(&work_dir)
        .await
        .with_context(|| format!("use the folder {} (--work-dir) for disk images", work_dir.display()))?;
    Ok(kupenstack_resources::Settings {
        operator_namespace: args.operator_namespace.clone(),
        work_dir,
        work_dir_size: args.work_dir_size,
        sources: args.sources.settings().await,
        observe_every: Duration::from_secs(args.observe_seconds),
    })
}
