//! Glance v2: images, their data, members and tags.

mod data;
mod image;
mod list;
mod members;
mod patch;
mod schema;

use std::collections::{BTreeMap, HashMap, HashSet};

use http::StatusCode;
use jiff::Timestamp;
use serde_json::{Value, json};

pub use self::image::{Image, Member};
use super::{
    SimOptions,
    http::{Answer, Outcome, Refusal, Request},
    service::{Call, Caller, Route, Service},
    table::Table,
};

/// Glance and what it holds.
pub struct Glance {
    images: Table<Image>,
    /// Ids of deleted images: Glance keeps their rows, so they are never given again.
    used: HashSet<String>,
    /// Images that become active, by when.
    saving: BTreeMap<(Timestamp, u64), String>,
    saves: u64,
    /// How many images a project has, and their bytes.
    usage: HashMap<String, (u64, u64)>,
    saving_takes: std::time::Duration,
}

/// The unified limits that Glance asks for.
const COUNT: &str = "image_count_total";
const SIZE: &str = "image_size_total";

impl Glance {
    pub(super) fn new(options: &SimOptions) -> Self {
        Self {
            images: Table::new(options.history),
            used: HashSet::new(),
            saving: BTreeMap::new(),
            saves: 0,
            usage: HashMap::new(),
            saving_takes: options.saving,
        }
    }

    /// All images, the oldest first.
    pub fn images(&self) -> impl Iterator<Item = &Image> {
        self.images.all().map(|image| &**image)
    }

    /// How many images there are.
    pub fn len(&self) -> usize {
        self.images.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.images.is_empty()
    }

    /// An image by its id.
    pub fn image(&self, id: &str) -> Option<&Image> {
        self.images.get(id).map(|image| &**image)
    }

    /// The images of this name, of whoever.
    pub fn named(&self, name: &str) -> impl Iterator<Item = &Image> {
        self.images.by("name", name).map(|image| &**image)
    }

    /// Puts an image there, or another in its place, as if somebody had made it so.
    pub fn put(&mut self, now: Timestamp, image: Image) {
        if let Some(before) = self.images.get(&image.id) {
            let (owner, size) = (before.owner.clone(), before.size);
            self.account(&owner, -1, size.map_or(0, |size| -i128::from(size)));
        }
        let owner = image.owner.clone();
        self.account(&owner, 1, image.size.map_or(0, i128::from));
        self.images.put(now, image);
    }

    /// Changes an image as if somebody had done so. False if there is none.
    pub fn edit(&mut self, now: Timestamp, id: &str, edit: impl FnOnce(&mut Image)) -> bool {
        let Some(mut image) = self.image(id).cloned() else { return false };
        edit(&mut image);
        self.put(now, image);
        true
    }

    /// Deletes an image as if somebody had done so. False if there is none.
    pub fn remove(&mut self, now: Timestamp, id: &str) -> bool {
        let Some(image) = self.images.remove(now, id) else { return false };
        self.used.insert(id.to_owned());
        self.account(&image.owner, -1, image.size.map_or(0, |size| -i128::from(size)));
        true
    }

    fn account(&mut self, owner: &str, images: i128, bytes: i128) {
        let add = |to: u64, more: i128| u64::try_from(i128::from(to) + more).unwrap_or_default();
        let (count, size) = self.usage.get(owner).copied().unwrap_or_default();
        self.usage.insert(owner.to_owned(), (add(count, images), add(size, bytes)));
    }

    fn check_quota(&self, call: &Call<'_>, resource: &str, more: u64) -> Result<(), Refusal> {
        let project = call.caller.project();
        let (count, size) = self.usage.get(project).copied().unwrap_or_default();
        // Glance counts bytes in whole MiB.
        let used = if resource == COUNT { count } else { size >> 20 };
        match call.quotas.exceeded(project, resource, used, more) {
            None => Ok(()),
            Some(limit) => Err(Refusal::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                format!(
                    "The request returned a 413 Request Entity Too Large. This generally means that rate limiting or \
                     a quota threshold was breached.\n\nThe response body:\nProject {project} is over a limit for \
                     [Resource {resource} is over limit of {limit} due to current usage {used} and delta {more}]"
                ),
            )),
        }
    }

    /// An image that the caller may see.
    fn seen(&self, call: &Call<'_>) -> Result<&Image, Refusal> {
        let id = call.param(0);
        self.image(id).filter(|image| image.is_visible_to(&call.caller)).ok_or_else(|| no_image(id))
    }

    /// An image that the caller may change.
    fn own(&self, call: &Call<'_>, action: &str) -> Result<&Image, Refusal> {
        let image = self.seen(call)?;
        if image.is_changeable_by(&call.caller) {
            return Ok(image);
        }
        Err(Refusal::forbidden(format!("You are not authorized to complete {action} action.")))
    }

    fn create(&mut self, call: &mut Call<'_>) -> Outcome {
        let Value::Object(asked) = call.request.json() else {
            return Err(Refusal::bad_request("Body expected in request."));
        };
        let id = call.ids.uuid().to_string();
        let mut image = Image::new(id, call.caller.project(), call.now);
        for (name, value) in asked {
            image.set_initial(&name, value)?;
        }
        if image.visibility == "public" && !call.caller.is_admin() {
            return Err(Refusal::forbidden("You are not authorized to complete publicize_image action."));
        }
        if image.owner != call.caller.project() && !call.caller.is_admin() {
            let words = "You are not permitted to create images owned by";
            return Err(Refusal::forbidden(format!("{words} '{}'.", image.owner)));
        }
        self.check_quota(call, COUNT, 1)?;
        if self.images.get(&image.id).is_some() || self.used.contains(&image.id) {
            return Err(Refusal::conflict(format!("Image ID {} already exists!", image.id)));
        }
        let location = format!("{}/image/v2/images/{}", call.base, image.id);
        let body = image.shown();
        self.put(call.now, image);
        let answer = Answer::json(StatusCode::CREATED, &body).with_header("location", &location);
        Ok(answer.with_header("openstack-image-import-methods", ""))
    }

    fn show(&mut self, call: &mut Call<'_>) -> Outcome {
        let images = self.images.view(call.as_of);
        let id = call.param(0);
        let image = images.get(id).filter(|image| image.is_visible_to(&call.caller)).ok_or_else(|| no_image(id))?;
        Ok(Answer::ok(&image.shown()))
    }

    fn delete(&mut self, call: &mut Call<'_>) -> Outcome {
        let image = match self.own(call, "delete_image") {
            Ok(image) => image,
            Err(refusal) if refusal.status == StatusCode::NOT_FOUND => {
                return Err(Refusal::not_found(format!("Failed to find image {} to delete", call.param(0))));
            }
            Err(refusal) => return Err(refusal),
        };
        if image.protected {
            return Err(Refusal::forbidden(format!("Image {} is protected and cannot be deleted.", image.id)));
        }
        self.remove(call.now, call.param(0));
        Ok(Answer::empty(StatusCode::NO_CONTENT))
    }

    /// Changes an image and shows it.
    fn change(&mut self, call: &Call<'_>, action: &str, change: impl FnOnce(&mut Image)) -> Result<Value, Refusal> {
        let mut image = self.own(call, action)?.clone();
        change(&mut image);
        image.updated_at = call.now;
        let body = image.shown();
        self.put(call.now, image);
        Ok(body)
    }

    fn add_tag(&mut self, call: &mut Call<'_>) -> Outcome {
        let tag = call.param(1).to_owned();
        self.change(call, "modify_image", |image| {
            image.tags.insert(tag);
        })?;
        Ok(Answer::empty(StatusCode::NO_CONTENT))
    }

    fn remove_tag(&mut self, call: &mut Call<'_>) -> Outcome {
        let tag = call.param(1).to_owned();
        if !self.own(call, "modify_image")?.tags.contains(&tag) {
            return Err(Refusal::not_found("The resource could not be found."));
        }
        self.change(call, "modify_image", |image| {
            image.tags.remove(&tag);
        })?;
        Ok(Answer::empty(StatusCode::NO_CONTENT))
    }

    /// Between `active` and `deactivated`, which is an administrator's to decide.
    fn set_status(&mut self, call: &mut Call<'_>, status: &'static str) -> Outcome {
        if !call.caller.is_admin() {
            let action = if status == "active" { "reactivate" } else { "deactivate" };
            self.seen(call)?;
            return Err(Refusal::forbidden(format!("You are not authorized to complete {action} action.")));
        }
        let image = self.seen(call)?;
        if !matches!(image.status, "active" | "deactivated") {
            let (from, words) = (image.status, "Image status transition from");
            return Err(Refusal::forbidden(format!("{words} {from} to {status} is not allowed")));
        }
        self.change(call, "modify_image", |image| image.status = status)?;
        Ok(Answer::empty(StatusCode::NO_CONTENT))
    }
}

impl Service for Glance {
    const TYPE: &'static str = "image";
    const NAME: &'static str = "glance";
    const ROUTES: &'static [Route<Self>] = &[
        Route::new("GET", "/", |_, call| Ok(versions(call, StatusCode::MULTIPLE_CHOICES))).open(),
        Route::new("GET", "/versions", |_, call| Ok(versions(call, StatusCode::OK))).open(),
        Route::new("GET", "/healthcheck", |_, call| Ok(health(call.request))).open(),
        Route::new("GET", "/v2/images", Self::list),
        Route::new("POST", "/v2/images", Self::create),
        Route::new("GET", "/v2/images/{image_id}", Self::show),
        Route::new("PATCH", "/v2/images/{image_id}", Self::patch),
        Route::new("DELETE", "/v2/images/{image_id}", Self::delete),
        Route::new("PUT", "/v2/images/{image_id}/file", Self::upload).streamed(),
        Route::new("GET", "/v2/images/{image_id}/file", Self::download),
        Route::new("PUT", "/v2/images/{image_id}/tags/{tag}", Self::add_tag),
        Route::new("DELETE", "/v2/images/{image_id}/tags/{tag}", Self::remove_tag),
        Route::new("POST", "/v2/images/{image_id}/actions/deactivate", |it, call| it.set_status(call, "deactivated")),
        Route::new("POST", "/v2/images/{image_id}/actions/reactivate", |it, call| it.set_status(call, "active")),
        Route::new("GET", "/v2/images/{image_id}/members", Self::list_members),
        Route::new("POST", "/v2/images/{image_id}/members", Self::add_member),
        Route::new("GET", "/v2/images/{image_id}/members/{member_id}", Self::show_member),
        Route::new("PUT", "/v2/images/{image_id}/members/{member_id}", Self::update_member),
        Route::new("DELETE", "/v2/images/{image_id}/members/{member_id}", Self::remove_member),
        Route::new("GET", "/v2/schemas/image", |_, _| Ok(Answer::ok(&schema::image()))),
        Route::new("GET", "/v2/info/import", |_, _| Ok(Answer::ok(&schema::import_info()))),
    ];

    /// As `webob` words it: by what the client accepts.
    fn refuse(&self, request: &Request, refusal: &Refusal) -> Answer {
        let status = refusal.status;
        let title = match status {
            StatusCode::PAYLOAD_TOO_LARGE => "Request Entity Too Large",
            other => other.canonical_reason().unwrap_or_default(),
        };
        let code = format!("{} {title}", status.as_u16());
        let message = if status == StatusCode::UNAUTHORIZED { UNAUTHORIZED } else { refusal.message.as_str() };
        let detail = refusal.detail.as_deref().unwrap_or_default();
        let accept = request.header("accept").unwrap_or("*/*");
        if accept.contains("text/html") || accept.contains("*/*") {
            let escape = |text: &str| {
                text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
            };
            let (message, detail) = (escape(message), escape(detail));
            let page = format!(
                "<html>\n <head>\n  <title>{code}</title>\n </head>\n <body>\n  <h1>{code}</h1>\n  {message}<br /><br />\n{detail}\n\n\n </body>\n</html>"
            );
            Answer::empty(status).with_body("text/html; charset=UTF-8", page)
        } else if accept.contains("json") {
            let end = if status == StatusCode::UNSUPPORTED_MEDIA_TYPE { "" } else { "\n\n" };
            let message = format!("{message}<br /><br />\n{detail}{end}");
            Answer::json(status, &json!({"message": message, "code": code, "title": title}))
        } else {
            Answer::empty(status)
                .with_body("text/plain; charset=UTF-8", format!("{code}\n\n{message}\n\n{detail}\n   "))
        }
    }

    fn advance(&mut self, now: Timestamp) {
        while let Some(due) = self.saving.first_entry().filter(|due| due.key().0 <= now) {
            let ((at, _), id) = due.remove_entry();
            self.activate(&id, at);
        }
    }

    fn begin(&mut self, call: &mut Call<'_>) -> Result<(), Refusal> {
        self.begin_upload(call)
    }

    fn broken(&mut self, call: &mut Call<'_>) {
        self.restore(call.param(0), call.now);
    }
}

/// Who is not known is told in general words, whatever is wrong with the token.
const UNAUTHORIZED: &str = "This server could not verify that you are authorized to access the document you requested. \
    Either you supplied the wrong credentials (e.g., bad password), or your browser does not understand how to supply \
    the credentials required.";

fn health(request: &Request) -> Answer {
    if request.header("accept").is_some_and(|accept| accept.contains("json")) {
        return Answer::ok(&json!({"detailed": false, "reasons": ["OK"]}));
    }
    Answer::empty(StatusCode::OK).with_body("text/plain; charset=UTF-8", "OK")
}

fn no_image(id: &str) -> Refusal {
    Refusal::not_found(format!("No image found with ID {id}"))
}

fn versions(call: &Call<'_>, status: StatusCode) -> Answer {
    let versions = (0..=17).rev().filter(|minor| !matches!(minor, 8 | 10..=14 | 16));
    let version = |minor| {
        let status = if minor == 17 { "CURRENT" } else { "SUPPORTED" };
        let href = format!("{}/image/v2/", call.base);
        json!({"id": format!("v2.{minor}"), "status": status, "links": [{"rel": "self", "href": href}]})
    };
    let versions: Vec<Value> = versions.map(version).collect();
    Answer::json(status, &json!({"versions": versions}))
}

/// Whether a caller acts for the owner of something.
fn owns(caller: &Caller, owner: &str) -> bool {
    caller.is_admin() || (!owner.is_empty() && caller.project() == owner)
}
