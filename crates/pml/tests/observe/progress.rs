//! Progress bars of long work: on a terminal, and nowhere else.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::Home;

/// An embedding service that takes its time; gives its address.
fn slow_embeddings() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || embed(stream));
        }
    });
    url
}

fn embed(mut stream: TcpStream) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).unwrap_or(0) == 0 {
                return;
            }
        }
        let head = head.to_ascii_lowercase();
        let length = head.split("content-length: ").nth(1).unwrap().split("\r\n").next().unwrap();
        let mut body = vec![0; length.parse().unwrap()];
        reader.read_exact(&mut body).unwrap();
        std::thread::sleep(Duration::from_millis(600));
        let asked: Value = serde_json::from_slice(&body).unwrap();
        let texts = asked["input"].as_array().unwrap().iter().enumerate();
        let data: Vec<Value> =
            texts.map(|(index, _)| json!({"index": index, "embedding": [0.6, 0.8]})).collect();
        let answer = json!({ "data": data }).to_string();
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}", answer.len());
        if stream.write_all(format!("{head}\r\n\r\n{answer}").as_bytes()).is_err() {
            return;
        }
    }
}

#[test]
fn embedding_shows_a_bar_on_a_terminal_only() {
    let config = format!("[embedding]\nurl = \"{}\"\nname = \"slow\"\n", slow_embeddings());
    let discover = ["discover", "days between two dates"];
    let shown = Home::new(&config).run_on_terminal(&discover, &[]);
    let screen = format!("{}{}", shown.stdout, shown.stderr);
    assert_eq!(shown.code, 0, "{screen}");
    let bar = screen.split('\r').find(|line| line.starts_with("embedding tools") && line.contains('%'));
    assert!(bar.is_some(), "{screen:?}");
    let after = screen.rsplit("embedding tools").next().unwrap();
    let (_, after) = after.split_once("\r\u{1b}[K").expect("the bar disappears");
    assert!(after.contains("time:diff"), "{screen:?}");

    let piped = Home::new(&config).run(&discover);
    assert_eq!(piped.code, 0, "{}", piped.stderr);
    assert!(!format!("{}{}", piped.stdout, piped.stderr).contains("embedding tools"), "{}", piped.stderr);
}
