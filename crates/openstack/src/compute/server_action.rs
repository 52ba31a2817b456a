//! What is done with a server that is there: its power, its size, its console, its ports.

use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Compute;
use crate::Error;

/// Something that Nova is asked to do with a server. It takes a while, which the server's status tells. In a state that
/// does not allow for it, it is a [`ErrorKind::Conflict`](crate::ErrorKind::Conflict).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerAction {
    /// Switches it on: from `SHUTOFF` to `ACTIVE`.
    Start,
    /// Has it shut down, or switches it off if it does not: from `ACTIVE` to `SHUTOFF`.
    Stop,
    /// Writes its memory to its host's disk: from `ACTIVE` to `SUSPENDED`.
    Suspend,
    /// Takes it up again: from `SUSPENDED` to `ACTIVE`.
    Resume,
    /// Lets it go on: from `PAUSED` to `ACTIVE`.
    Unpause,
    /// Restarts it.
    Reboot {
        /// Whether by its power, instead of asking it to.
        hard: bool,
    },
    /// Gives it another flavor: from `ACTIVE` or `SHUTOFF` to `VERIFY_RESIZE`, where it waits for one of the next two.
    Resize {
        /// Id of the flavor. The one it has is a [`ErrorKind::BadRequest`](crate::ErrorKind::BadRequest).
        flavor_id: String,
    },
    /// Keeps the new flavor, and gives up what is left of the former one. Nova is at it for a while in which its status is
    /// `VERIFY_RESIZE` still and nothing tells of it, and to be asked again is a
    /// [`ErrorKind::BadRequest`](crate::ErrorKind::BadRequest).
    ConfirmResize,
    /// Goes back to the former flavor.
    RevertResize,
}

impl ServerAction {
    fn body(&self) -> Value {
        match self {
            Self::Start => json!({"os-start": null}),
            Self::Stop => json!({"os-stop": null}),
            Self::Suspend => json!({"suspend": null}),
            Self::Resume => json!({"resume": null}),
            Self::Unpause => json!({"unpause": null}),
            Self::Reboot { hard } => json!({"reboot": {"type": if *hard { "HARD" } else { "SOFT" }}}),
            Self::Resize { flavor_id } => json!({"resize": {"flavorRef": flavor_id}}),
            Self::ConfirmResize => json!({"confirmResize": null}),
            Self::RevertResize => json!({"revertResize": null}),
        }
    }
}

#[derive(Deserialize)]
struct Attachment {
    port_id: String,
}

impl Compute {
    /// Asks for something to be done with a server.
    pub async fn act_on_server(&self, id: &str, action: &ServerAction) -> Result<(), Error> {
        self.service.post(&["servers", id, "action"], &action.body()).await.map(drop)
    }

    /// What a server has written to its console: the last lines of it, or all that its host still has.
    pub async fn console_output(&self, id: &str, lines: Option<u32>) -> Result<String, Error> {
        let wanted = lines.map_or_else(|| json!({}), |lines| json!({"length": lines}));
        let body = json!({"os-getConsoleOutput": wanted});
        self.service.post(&["servers", id, "action"], &body).await?.member("output")
    }

    /// Ids of the ports that a server is connected by.
    pub async fn attached_ports(&self, id: &str) -> Result<Vec<String>, Error> {
        let call = self.service.call(Method::GET, &["servers", id, "os-interface"]).await?;
        let attached: Vec<Attachment> = self.service.send(&call).await?.member("interfaceAttachments")?;
        Ok(attached.into_iter().map(|attachment| attachment.port_id).collect())
    }

    /// Connects a server by one more port. One that something is connected to is refused.
    pub async fn attach_port(&self, id: &str, port_id: &str) -> Result<(), Error> {
        let body = json!({"interfaceAttachment": {"port_id": port_id}});
        self.service.post(&["servers", id, "os-interface"], &body).await.map(drop)
    }

    /// Has a server's port disconnected, which takes a while; the port stays. False if there is no such server. Nova takes
    /// it also for a port that the server is not connected by.
    pub async fn detach_port(&self, id: &str, port_id: &str) -> Result<bool, Error> {
        self.service.delete(&["servers", id, "os-interface", port_id]).await
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(ServerAction::Stop, json!({"os-stop": null}))]
    #[case(ServerAction::Reboot { hard: false }, json!({"reboot": {"type": "SOFT"}}))]
    #[case(ServerAction::Resize { flavor_id: "2".to_owned() }, json!({"resize": {"flavorRef": "2"}}))]
    fn an_action_is_asked_for_in_novas_words(#[case] action: ServerAction, #[case] body: Value) {
        assert_eq!(action.body(), body);
    }
}
