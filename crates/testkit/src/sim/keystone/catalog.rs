//! The catalogue that comes with a token.

use serde_json::{Value, json};

use super::Keystone;
use crate::sim::{http::Answer, service::Call};

impl Keystone {
    pub(super) fn catalog(&self, project_id: &str) -> Value {
        let services = self.all("services").filter(|service| service.is_enabled());
        let listed = services.map(|service| {
            let endpoints = self.all("endpoints").filter(|it| it.text("service_id") == service.id && it.is_enabled());
            let endpoints: Vec<Value> = endpoints
                .map(|endpoint| {
                    let url = endpoint.text("url");
                    let url = url.replace("%(project_id)s", project_id).replace("$(project_id)s", project_id);
                    let region = endpoint.text("region_id");
                    let interface = endpoint.text("interface");
                    json!({"id": endpoint.id, "interface": interface, "region": region, "region_id": region, "url": url})
                })
                .collect();
            let (service_type, name) = (service.text("type"), service.text("name"));
            json!({"id": service.id, "type": service_type, "name": name, "endpoints": endpoints})
        });
        listed.collect()
    }

    pub(super) fn own_catalog(&self, call: &Call<'_>) -> Answer {
        let catalog = self.catalog(call.caller.project());
        let this = format!("{}/identity/v3/auth/catalog", call.base);
        Answer::ok(&json!({"catalog": catalog, "links": {"self": this}}))
    }
}
