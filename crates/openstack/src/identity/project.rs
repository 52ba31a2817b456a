//! Projects.

use futures::Stream;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::Identity;
use crate::{
    Error,
    service::{Query, given},
};

/// A project: what resources belong to.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Project {
    /// The project's id.
    pub id: String,
    /// The project's name, unique in its domain.
    pub name: String,
    /// The domain it belongs to.
    pub domain_id: String,
    /// A text for people.
    #[serde(default)]
    pub description: Option<String>,
    /// Whether anyone may act in it.
    pub enabled: bool,
    /// Its tags.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Every other attribute, those of our own making among them.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A project to be made.
#[derive(Debug, Clone, Default)]
pub struct NewProject {
    /// Unique in the domain; at most 64 characters.
    pub name: String,
    /// The domain it is to belong to.
    pub domain_id: String,
    /// A text for people.
    pub description: String,
    /// Tags, without `/` and `,`; they can be filtered by.
    pub tags: Vec<String>,
    /// Attributes of our own making. Keystone turns `-` and `:` in their names into `_`.
    pub extra: Map<String, Value>,
}

/// Which projects to list; all of what is set has to fit.
#[derive(Debug, Clone, Default)]
pub struct ProjectFilter {
    /// The name.
    pub name: Option<String>,
    /// The domain.
    pub domain_id: Option<String>,
    /// Tags, all of which a project must have. Keystone looks at them among the first thousand projects only.
    pub tags: Vec<String>,
}

impl Identity {
    /// A project by its id.
    pub async fn get_project(&self, id: &str) -> Result<Option<Project>, Error> {
        self.service.get_member(&["projects", id], "project").await
    }

    /// A project by its name.
    pub async fn find_project(&self, name: &str, domain_id: &str) -> Result<Option<Project>, Error> {
        let query = vec![("name", name.to_owned()), ("domain_id", domain_id.to_owned())];
        self.find("projects", query, |project: &Project| project.name == name).await
    }

    /// The projects that fit: some of them, if they are more than a thousand.
    pub fn list_projects(&self, filter: &ProjectFilter) -> impl Stream<Item = Result<Project, Error>> + Send + use<> {
        self.service.clone().list("projects".into(), filter.query())
    }

    /// Every project of a domain. One that can't be read is left out, and told in the log.
    pub fn survey_projects(&self, domain_id: &str) -> impl Stream<Item = Result<Project, Error>> + Send + use<> {
        self.survey("projects", vec![("domain_id", domain_id.to_owned())])
    }

    /// Makes a project. A name that is taken is a conflict.
    pub async fn create_project(&self, project: &NewProject) -> Result<Project, Error> {
        self.service.post(&["projects"], &json!({"project": project.body()})).await?.member("project")
    }

    /// Deletes a project; false if there is none of that id. What other services keep for it is not touched.
    pub async fn delete_project(&self, id: &str) -> Result<bool, Error> {
        self.service.delete(&["projects", id]).await
    }
}

impl NewProject {
    fn body(&self) -> Map<String, Value> {
        let mut body = self.extra.clone();
        body.insert("name".to_owned(), json!(self.name));
        body.insert("domain_id".to_owned(), json!(self.domain_id));
        body.insert("description".to_owned(), json!(self.description));
        body.insert("tags".to_owned(), json!(self.tags));
        body
    }
}

impl ProjectFilter {
    fn query(&self) -> Query {
        let tags = (!self.tags.is_empty()).then(|| self.tags.join(","));
        given([("name", self.name.clone()), ("domain_id", self.domain_id.clone()), ("tags", tags)])
    }
}
