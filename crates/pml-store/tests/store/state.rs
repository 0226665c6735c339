//! What running processes say of their servers.

use pml_model::Principal;
use pml_store::BlockingStore;

use super::{fixture, me, open_at, server, this_process};

pub(crate) fn shown(store: &BlockingStore) -> Vec<String> {
    let states = store.server_states(&me(), 1000).unwrap();
    states.iter().map(|state| format!("{} {} {}", state.server, state.state, state.at)).collect()
}

#[test]
fn another_handle_sees_the_latest_state_until_it_is_cleared() {
    let fixture = fixture();
    let other = open_at(&fixture.path).unwrap();
    let process = this_process();
    fixture.store.publish_server_state(&me(), &process, &server("fs"), "starting", 999).unwrap();
    fixture.store.publish_server_state(&me(), &process, &server("fs"), r#"{"ready":true}"#, 1000).unwrap();
    fixture.store.publish_server_state(&me(), &process, &server("db"), "down", 1000).unwrap();
    assert_eq!(shown(&other), ["db down 1000", r#"fs {"ready":true} 1000"#]);
    assert!(other.server_states(&Principal("ann".to_owned()), 1000).unwrap().is_empty());
    other.clear_server_states(&process).unwrap();
    assert!(shown(&fixture.store).is_empty());
}
