//! No bytes a peer can send make the reader fail in any way but with an error.

use pml_mcp::message::RpcMessage;
use pml_model::json::Fields;

/// A small generator, so that a failure can be repeated from its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

const SEEDS: &[&str] = &[
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":[1,2.5e10,"\u00e9"]}}}"#,
    r#"{"jsonrpc":"2.0","id":"x","result":{"content":[{"type":"text","text":"hi"}],"isError":false}}"#,
    r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"m","data":{"k":[]}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":0.5}}"#,
];

#[test]
fn a_hundred_thousand_broken_frames_are_read_without_a_panic() {
    let mut random = Random(0x5eed);
    let (mut read, mut refused) = (0, 0);
    for _ in 0..100_000 {
        let mut bytes = SEEDS[random.below(SEEDS.len())].as_bytes().to_vec();
        for _ in 0..=random.below(4) {
            if bytes.len() < 2 {
                break;
            }
            let at = random.below(bytes.len());
            match random.below(4) {
                0 => bytes[at] = u8::try_from(random.below(256)).unwrap(),
                1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, b"{}[]\",:\\\0\xff"[random.below(10)]),
                _ => bytes.truncate(at.max(1)),
            }
        }
        match RpcMessage::parse(&bytes) {
            Ok(_) => read += 1,
            Err(_) => refused += 1,
        }
        RpcMessage::salvage_id(&bytes);
        if let Ok(text) = std::str::from_utf8(&bytes)
            && let Ok(mut fields) = Fields::parse(text)
        {
            fields.set("added", pml_model::json::empty_object());
            assert!(Fields::parse(fields.to_raw().get()).is_ok(), "{text}");
        }
    }
    assert!(read > 1_000 && refused > 1_000, "{read} read, {refused} refused: the generator makes both");
}
