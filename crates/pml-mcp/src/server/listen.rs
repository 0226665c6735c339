//! Subscriptions of clients to changes.

use std::collections::HashSet;
use std::sync::Arc;

use pml_model::json::{Fields, raw};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::caller::Caller;
use crate::message::{self, RequestId};
use crate::protocol::{edit_meta, meta};
use crate::server::session::McpSession;
use crate::server::{ChangeNotice, ConnectedClient, IncomingRequest, McpServer};

/// The changes that a stateless client subscribed to.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SubscriptionFilter {
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    tools_list_changed: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    prompts_list_changed: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    resources_list_changed: bool,
    #[serde(skip_serializing_if = "HashSet::is_empty")]
    pub(crate) resource_subscriptions: HashSet<String>,
    /// Ends what the subscriptions need, when the filter is dropped.
    #[serde(skip)]
    end: Option<Arc<DropGuard>>,
}

impl SubscriptionFilter {
    /// The filter of a `subscriptions/listen` request.
    pub(crate) fn from_params(params: Option<&RawValue>) -> SubscriptionFilter {
        params
            .and_then(|p| Fields::parse(p.get()).ok())
            .and_then(|f| f.read("notifications"))
            .unwrap_or_default()
    }

    fn wants(&self, change: &ChangeNotice) -> bool {
        match change {
            ChangeNotice::Tools => self.tools_list_changed,
            ChangeNotice::Prompts => self.prompts_list_changed,
            ChangeNotice::Resources => self.resources_list_changed,
            ChangeNotice::Resource(uri) => self.resource_subscriptions.contains(uri),
        }
    }

    /// The first message on a subscription.
    pub(crate) fn acknowledgement(&self, id: &RequestId) -> String {
        let mut params = Fields::default();
        params.set("notifications", raw(self));
        message::encode_notification("notifications/subscriptions/acknowledged", Some(&marked(params, id)))
    }

    /// The notification of a change; `None` if this subscription does not cover it.
    pub(crate) fn message(&self, change: &ChangeNotice, id: &RequestId) -> Option<String> {
        self.wants(change).then(|| {
            let (method, params) = notification(change);
            message::encode_notification(method, Some(&marked(params, id)))
        })
    }
}

fn marked(mut params: Fields<'_>, id: &RequestId) -> Box<RawValue> {
    edit_meta(&mut params, |meta| meta.set(meta::SUBSCRIPTION, id.raw().to_owned()));
    params.to_raw()
}

fn notification(change: &ChangeNotice) -> (&'static str, Fields<'static>) {
    let mut params = Fields::default();
    let method = match change {
        ChangeNotice::Tools => "notifications/tools/list_changed",
        ChangeNotice::Prompts => "notifications/prompts/list_changed",
        ChangeNotice::Resources => "notifications/resources/list_changed",
        ChangeNotice::Resource(uri) => {
            params.set("uri", raw(uri));
            "notifications/resources/updated"
        }
    };
    (method, params)
}

/// The notification of a change for a session: lists always, a resource if the session watches it.
pub(crate) fn session_message(change: &ChangeNotice, session: &McpSession) -> Option<String> {
    if let ChangeNotice::Resource(uri) = change
        && !session.watches(uri)
    {
        return None;
    }
    let (method, params) = notification(change);
    let params = (!params.is_empty()).then(|| params.to_raw());
    Some(message::encode_notification(method, params.as_deref()))
}

impl McpServer {
    /// The part of a filter that can be honoured: a resource is watched only if its server allows it.
    pub(crate) async fn accept_subscription(
        &self,
        mut filter: SubscriptionFilter,
        client: &ConnectedClient,
    ) -> SubscriptionFilter {
        let end = CancellationToken::new();
        filter.end = Some(Arc::new(end.clone().drop_guard()));
        for uri in std::mem::take(&mut filter.resource_subscriptions) {
            let mut params = Fields::default();
            params.set("uri", raw(&uri));
            let request = IncomingRequest {
                method: "resources/subscribe".into(),
                params: params.to_raw(),
                client: client.clone(),
                caller: Caller::silent_until(end.clone()),
                cancel: CancellationToken::new(),
                cancelled_by_sender: CancellationToken::new(),
                wire: None,
            };
            match self.handler.handle(request).await {
                Ok(_) => drop(filter.resource_subscriptions.insert(uri)),
                Err(error) => tracing::debug!(%error, uri, "a resource cannot be watched"),
            }
        }
        filter
    }
}
