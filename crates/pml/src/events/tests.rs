//! The feed: nobody's events reach somebody else, nothing is lost unseen, and a slow reader holds nobody up.

use super::*;

fn run(number: u128) -> RunId {
    RunId::new(number)
}

fn log(feed: &EventFeed, principal: &Principal, run: &RunId, text: &str) {
    feed.publish(principal, run, 1, || FeedEvent::Log { level: "log", text: text.to_owned() });
}

fn texts(events: &[Arc<PublishedEvent>]) -> Vec<String> {
    let text = |event: &Arc<PublishedEvent>| match &event.event {
        FeedEvent::Log { text, .. } => text.clone(),
        other => other.name().to_owned(),
    };
    events.iter().map(text).collect()
}

async fn received(reader: &mut FeedReader) -> Vec<String> {
    match reader.next().await {
        FeedDelivery::Events(events) => texts(&events),
        other => vec![format!("{other:?}")],
    }
}

#[tokio::test]
async fn a_reader_gets_the_events_of_its_principal_and_run() {
    let feed = EventFeed::new();
    let (ours, other) = (Principal::local(), Principal("other".to_owned()));
    feed.publish(&ours, &run(1), 1, || unreachable!("nobody follows"));
    let mut all = feed.subscribe(ours.clone(), None, None);
    let mut one = feed.subscribe(ours.clone(), Some(run(2)), None);
    log(&feed, &ours, &run(1), "a");
    log(&feed, &other, &run(3), "not ours");
    log(&feed, &ours, &run(2), "b");
    assert_eq!(received(&mut all).await, ["a", "b"]);
    assert_eq!(received(&mut one).await, ["b"]);
    feed.close();
    assert_eq!(received(&mut all).await, ["Closed"]);
}

#[tokio::test]
async fn a_reader_that_comes_back_goes_on_where_it_was() {
    let feed = EventFeed::new();
    let ours = Principal::local();
    let mut reader = feed.subscribe(ours.clone(), None, None);
    log(&feed, &ours, &run(1), "seen");
    assert_eq!(received(&mut reader).await, ["seen"]);
    let position = reader.position();
    drop(reader);
    log(&feed, &ours, &run(1), "missed");
    let mut again = feed.subscribe(ours.clone(), None, Some(&position));
    assert_eq!(received(&mut again).await, ["missed"]);
    let mut foreign = feed.subscribe(ours.clone(), None, EventId::parse("0badcafe-1-1").as_ref());
    assert_eq!(received(&mut foreign).await, ["Reset"]);
    for number in [99, u64::MAX] {
        let mut future = feed.subscribe(ours.clone(), None, Some(&feed.id(number, 1)));
        assert_eq!(received(&mut future).await, ["Reset"]);
    }
    log(&feed, &ours, &run(1), "next");
    assert_eq!(received(&mut foreign).await, ["next"]);
}

#[tokio::test]
async fn a_reader_that_falls_behind_is_told_to_load_anew() {
    let feed = EventFeed::new();
    let ours = Principal::local();
    let mut slow = feed.subscribe(ours.clone(), None, None);
    for number in 0..=MAX_EVENTS {
        log(&feed, &ours, &run(1), &number.to_string());
    }
    assert_eq!(received(&mut slow).await, ["Reset"]);
    log(&feed, &ours, &run(1), "afterwards");
    assert_eq!(received(&mut slow).await, ["afterwards"]);
    assert!(feed.ring.lock().events.len() <= MAX_EVENTS);
}

#[tokio::test]
async fn the_gap_while_nobody_watched_is_no_silence() {
    let feed = EventFeed::new();
    let ours = Principal::local();
    let reader = feed.subscribe(ours.clone(), None, None);
    let position = reader.position();
    drop(reader);
    feed.ring.lock().left_at = Instant::now().checked_sub(LINGER * 2);
    log(&feed, &ours, &run(1), "unseen");
    assert!(!feed.is_followed());
    let mut again = feed.subscribe(ours, None, Some(&position));
    assert_eq!(received(&mut again).await, ["Reset"]);
}

#[test]
fn an_id_is_read_as_it_was_written() {
    let id = EventFeed::new().id(7, 1_700_000_000_000);
    assert_eq!(EventId::parse(&id.to_string()), Some(id));
    for other in
        ["", "-", "0badcafe", "0badcafe-1", "0badcafe-x-1", "badcafe-1-1", "0badcafe-1-1-1", "0badcafe--1-1"]
    {
        assert_eq!(EventId::parse(other), None, "{other}");
    }
}
