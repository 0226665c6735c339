//! Who wants to know of which changes.

use std::collections::HashSet;

use pml_model::json::{Fields, raw};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::caller::Caller;
use crate::message::{self, Id};
use crate::protocol::{edit_meta, meta};
use crate::server::session::Session;
use crate::server::{Change, Client, Incoming, Server};

/// The changes a stateless client asked to hear of.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Filter {
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    tools_list_changed: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    prompts_list_changed: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    resources_list_changed: bool,
    #[serde(skip_serializing_if = "HashSet::is_empty")]
    pub(crate) resource_subscriptions: HashSet<String>,
}

impl Filter {
    /// What a `subscriptions/listen` request asks for.
    pub(crate) fn of(params: Option<&RawValue>) -> Filter {
        params
            .and_then(|p| Fields::parse(p.get()).ok())
            .and_then(|f| f.read("notifications"))
            .unwrap_or_default()
    }

    fn wants(&self, change: &Change) -> bool {
        match change {
            Change::Tools => self.tools_list_changed,
            Change::Prompts => self.prompts_list_changed,
            Change::Resources => self.resources_list_changed,
            Change::Resource(uri) => self.resource_subscriptions.contains(uri),
        }
    }

    /// The first message on a subscription.
    pub(crate) fn acknowledgement(&self, id: &Id) -> String {
        let mut params = Fields::default();
        params.set("notifications", raw(self));
        message::notification("notifications/subscriptions/acknowledged", Some(&marked(params, id)))
    }

    /// The message for a change, if this subscription wants it.
    pub(crate) fn message(&self, change: &Change, id: &Id) -> Option<String> {
        self.wants(change).then(|| {
            let (method, params) = notification(change);
            message::notification(method, Some(&marked(params, id)))
        })
    }
}

fn marked(mut params: Fields<'_>, id: &Id) -> Box<RawValue> {
    edit_meta(&mut params, |meta| meta.set(meta::SUBSCRIPTION, id.raw().to_owned()));
    params.to_raw()
}

fn notification(change: &Change) -> (&'static str, Fields<'static>) {
    let mut params = Fields::default();
    let method = match change {
        Change::Tools => "notifications/tools/list_changed",
        Change::Prompts => "notifications/prompts/list_changed",
        Change::Resources => "notifications/resources/list_changed",
        Change::Resource(uri) => {
            params.set("uri", raw(uri));
            "notifications/resources/updated"
        }
    };
    (method, params)
}

/// The message for a change that a session hears of: lists always, resources if it watches them.
pub(crate) fn session_message(change: &Change, session: &Session) -> Option<String> {
    if let Change::Resource(uri) = change
        && !session.watches(uri)
    {
        return None;
    }
    let (method, params) = notification(change);
    let params = (!params.is_empty()).then(|| params.to_raw());
    Some(message::notification(method, params.as_deref()))
}

impl Server {
    /// The part of a filter that can be honoured: resources are watched where their server allows.
    pub(crate) async fn accept(&self, mut filter: Filter, client: &Client) -> Filter {
        for uri in std::mem::take(&mut filter.resource_subscriptions) {
            let mut params = Fields::default();
            params.set("uri", raw(&uri));
            let request = Incoming {
                method: "resources/subscribe".into(),
                params: params.to_raw(),
                client: client.clone(),
                caller: Caller::silent(),
                cancel: CancellationToken::new(),
                taken_back: CancellationToken::new(),
            };
            match self.handler.handle(request).await {
                Ok(_) => drop(filter.resource_subscriptions.insert(uri)),
                Err(error) => tracing::debug!(%error, uri, "a resource cannot be watched"),
            }
        }
        filter
    }
}
